"""The decision in a verdict of any kind (yes or no), and the judge's confidence in it."""

from __future__ import annotations

from typing import Final

from merilo.judging.verdicts import (
    AddressesVerdict,
    AnsweredVerdict,
    MentionsVerdict,
    NoncommittalVerdict,
    RelevanceVerdict,
    SufficiencyLabel,
    SufficiencyVerdict,
    SupportVerdict,
    UsefulnessVerdict,
    Verdict,
)

DECISIONS: Final[tuple[type[Verdict], ...]] = (
    RelevanceVerdict,
    UsefulnessVerdict,
    SupportVerdict,
    SufficiencyVerdict,
    AddressesVerdict,
    NoncommittalVerdict,
    AnsweredVerdict,
    MentionsVerdict,
)
"""The types of verdict that are decisions; all others are texts, lists or numbers."""


def same_decision(first: Verdict, second: Verdict) -> bool:
    """Return True if two verdicts on one question decide the same: grade, label or yes and no.

    Reasons, evidence and probabilities are not compared. If one of the judges does not distinguish contradicted from
    not stated, only supported or not is compared. Raises TypeError for a verdict that is not a decision.
    """
    match first, second:
        case RelevanceVerdict(), RelevanceVerdict():
            return first.grade == second.grade
        case SufficiencyVerdict(), SufficiencyVerdict():
            return first.label is second.label
        case SupportVerdict(), SupportVerdict() if first.tells_contradicted and second.tells_contradicted:
            return first.label is second.label
        case _:
            return says_yes(first) == says_yes(second)


def says_yes(verdict: Verdict) -> bool:
    """Whether a verdict says relevant (grade 1 or 2), useful, supported, sufficient, to the point and the like.

    Raises TypeError for one that is no decision, such as a list of statements.
    """
    match verdict:
        case RelevanceVerdict():
            return verdict.grade >= 1
        case UsefulnessVerdict():
            return verdict.useful
        case SupportVerdict():
            return verdict.supported
        case SufficiencyVerdict():
            return verdict.label is SufficiencyLabel.SUFFICIENT
        case AddressesVerdict():
            return verdict.addresses
        case NoncommittalVerdict():
            return verdict.noncommittal
        case AnsweredVerdict():
            return verdict.answered
        case MentionsVerdict():
            return verdict.mentioned
        case _:
            raise TypeError(f"a verdict of type {type(verdict).__name__} says neither yes nor no")


def chance_of(verdict: Verdict) -> float | None:
    """The judge's probability of yes; None where it gives none."""
    found: float | None = getattr(verdict, "probability", None)  # every verdict type has it, their base has not
    return found


def sureness_of(verdict: Verdict) -> float | None:
    """The judge's probability that what its verdict says, yes or no, is right; None where it gives none.

    Below one half where the judge says yes from a lower probability on than that.
    """
    chance = chance_of(verdict)
    if chance is None:
        return None
    return chance if says_yes(verdict) else 1.0 - chance
