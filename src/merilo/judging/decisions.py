"""The decision in a verdict of any kind (yes or no), and the judge's confidence in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.judging.kinds.addresses import AddressesVerdict
from merilo.judging.kinds.answered import AnsweredVerdict
from merilo.judging.kinds.mentions import MentionsVerdict
from merilo.judging.kinds.noncommittal import NoncommittalVerdict
from merilo.judging.kinds.relevance import RelevanceVerdict
from merilo.judging.kinds.sufficiency import SufficiencyLabel, SufficiencyVerdict
from merilo.judging.kinds.support import SupportVerdict
from merilo.judging.kinds.usefulness import UsefulnessVerdict

if TYPE_CHECKING:
    from merilo.judging.verdicts import Verdict

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
"""Verdict types that are decisions; all others are texts, lists or numbers."""


def same_decision(first: Verdict, second: Verdict) -> bool:
    """Return True if two verdicts on one question decide the same: grade, label or yes and no.

    Reasons, evidence and probabilities are not compared. If one of the judges does not distinguish contradicted from
    not stated, the comparison is supported or not supported. Raises TypeError for a verdict that is not a decision.
    """
    match first, second:
        case RelevanceVerdict(), RelevanceVerdict():
            return first.grade == second.grade
        case SufficiencyVerdict(), SufficiencyVerdict():
            return first.label is second.label
        case SupportVerdict(), SupportVerdict() if first.tells_contradicted and second.tells_contradicted:
            return first.label is second.label
        case _:
            return is_positive(first) == is_positive(second)


def is_positive(verdict: Verdict) -> bool:
    """Return True if a verdict is positive: relevant (grade 1 or 2), useful, supported, sufficient, addressing the
    question.

    A noncommittal verdict is positive if the response is noncommittal. Raises TypeError for a verdict that is not a
    decision, such as a list of statements.
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
            raise TypeError(f"a verdict of type {type(verdict).__name__} is not a decision")


def probability_of(verdict: Verdict) -> float | None:
    """Return the judge's probability of yes; None if it gives none."""
    probability: float | None = getattr(verdict, "probability", None)  # a field of every verdict type, not of the base
    return probability


def confidence_of(verdict: Verdict) -> float | None:
    """Return the judge's probability that its own yes or no is correct; None if it gives no probability.

    It is below one half if the judge's threshold for yes is lower and the probability is between the two.
    """
    probability = probability_of(verdict)
    if probability is None:
        return None
    return probability if is_positive(verdict) else 1.0 - probability
