"""Verdicts and numbers in words, the same in every report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from merilo.judging.verdicts import (
    AddressesVerdict,
    AnsweredVerdict,
    ChoiceVerdict,
    CompletionVerdict,
    EntitiesVerdict,
    Failure,
    MatrixVerdict,
    MentionsVerdict,
    NoncommittalVerdict,
    PartsVerdict,
    RelevanceVerdict,
    StatementsVerdict,
    SufficiencyVerdict,
    SupportLabel,
    SupportVerdict,
    UsefulnessVerdict,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.judging.ask import Answer

NONE = "-"
"""What stands where a number is not known or makes no sense."""
OWN_ERROR = "over questions; the judge's own error is not in it"
"""What an interval does not hold, until labels of people are attached."""
_YES: dict[type, str] = {
    RelevanceVerdict: "relevant",
    UsefulnessVerdict: "useful",
    SupportVerdict: "supported",
    SufficiencyVerdict: "sufficient",
    AddressesVerdict: "to the point",
    NoncommittalVerdict: "declines",
    AnsweredVerdict: "answered",
    MentionsVerdict: "mentioned",
}
_SUPPORT = {
    SupportLabel.SUPPORTED: "supported",
    SupportLabel.CONTRADICTED: "contradicted",
    SupportLabel.NOT_STATED: "not stated",
    SupportLabel.UNSUPPORTED: "not supported",
}


def said(answer: Answer) -> str:
    """What a judge answered, in a few words, and its probability of a "yes" where it gives one."""
    if isinstance(answer, Failure):
        return f"no verdict ({answer.kind.value}): {answer.message}"
    probability = getattr(answer, "probability", None)  # every verdict type has it, their base has not
    yes = _YES.get(type(answer), "yes")
    tail = "" if probability is None else f", p({yes}) = {probability:.2f}"
    return _verdict(answer) + tail


def reason_of(answer: Answer) -> str:
    """The reason that a judge gave for its verdict; empty where it gave none."""
    return "" if isinstance(answer, Failure) else str(getattr(answer, "reason", ""))


def number(value: float | None) -> str:
    """A score with three decimals."""
    return NONE if value is None else f"{value:.3f}"


def span(ends: tuple[float | None, float | None] | None) -> str:
    """An interval, such as `0.361 - 0.463`; `any` at an end without a limit."""
    return NONE if ends is None else " - ".join("any" if end is None else f"{end:.3f}" for end in ends)


def count(amount: int, thing: str, plural: str = "") -> str:
    """`1 sample`, `1,200 samples`."""
    return f"{amount:,} {thing if amount == 1 else plural or thing + 's'}"


def listed(indices: Sequence[int], thing: str) -> str:
    """Things by their 0-based indices, as people count them: `context 2`, `contexts 1, 3`."""
    return f"{thing}{'s' if len(indices) > 1 else ''} {', '.join(str(index + 1) for index in indices)}"


def _verdict(answer: Answer) -> str:
    match answer:
        case RelevanceVerdict():
            return f"grade {answer.grade} of 2"
        case UsefulnessVerdict():
            return "useful" if answer.useful else "not useful"
        case StatementsVerdict():
            return count(len(answer.statements), "statement")
        case SupportVerdict():
            where = f" by {listed(answer.evidence, 'context')}" if answer.evidence else ""
            return _SUPPORT[answer.label] + where
        case SufficiencyVerdict():
            missing = f" (missing: {answer.missing})" if answer.missing else ""
            return answer.label.value + missing
        case AddressesVerdict():
            return "to the point" if answer.addresses else "beside the point"
        case NoncommittalVerdict():
            return "declines to answer" if answer.noncommittal else "answers"
        case MatrixVerdict():
            return f"a matrix of {answer.rows} by {answer.columns}"
        case CompletionVerdict():
            return f'"{answer.text}"'
        case _:
            return _more(answer)


def _more(answer: Answer) -> str:
    """As `_verdict`, for the kinds that fewer metrics ask."""
    match answer:
        case PartsVerdict():
            return count(len(answer.parts), "part")
        case AnsweredVerdict():
            return f"answered by {listed(answer.evidence, 'sentence')}" if answer.answered else "not answered"
        case EntitiesVerdict():
            return count(len(answer.entities), "entity", "entities")
        case MentionsVerdict():
            return f"mentioned in {listed(answer.evidence, 'context')}" if answer.mentioned else "not mentioned"
        case ChoiceVerdict():
            return answer.label
        case _:
            return type(answer).__name__
