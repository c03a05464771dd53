"""The decision in a verdict of any kind (yes or no, a grade, a label), and the judge's probability of yes."""

from __future__ import annotations

from merilo.judging.verdicts import DecisionVerdict, Verdict


def is_positive(verdict: Verdict) -> bool:
    """Return True if a verdict is positive: relevant (grade 1 or 2), useful, supported, sufficient, addressing the
    question.

    A noncommittal verdict is positive if the response is noncommittal. Raises TypeError for a verdict that is not a
    decision, such as a list of statements.
    """
    return _decided(verdict).positive


def decision_of(verdict: Verdict) -> object:
    """Return the grade, the label, or the yes or no of a verdict. Raises TypeError for one that is not a decision."""
    return _decided(verdict).decision


def probability_of(verdict: Verdict) -> float | None:
    """Return the judge's probability of yes; None if it gives none."""
    probability: float | None = getattr(verdict, "probability", None)  # a field of every verdict type, not of the base
    return probability


def _decided(verdict: Verdict) -> DecisionVerdict:
    if not isinstance(verdict, DecisionVerdict):
        raise TypeError(f"a verdict of type {type(verdict).__name__} is not a decision")
    return verdict
