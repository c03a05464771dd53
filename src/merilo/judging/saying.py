"""What a verdict says, whatever its kind: yes or no, and how sure the judge is of it."""

from __future__ import annotations

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
