"""The decision in a verdict of any kind (yes or no, a grade, a label), and the judge's confidence in it."""

from __future__ import annotations

from merilo.judging.verdicts import DecisionVerdict, Verdict


def same_decision(first: Verdict, second: Verdict) -> bool:
    """Return True if two verdicts on one question decide the same: grade, label or yes and no.

    Reasons, evidence and probabilities are not compared. If one of the judges does not distinguish contradicted from
    not stated, the comparison is supported or not supported. Raises TypeError for a verdict that is not a decision.
    """
    return _decided(first).decides_as(_decided(second))


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


def confidence_of(verdict: Verdict) -> float | None:
    """Return the judge's probability that its own yes or no is correct; None if it gives no probability.

    It is below one half if the judge's threshold for yes is lower and the probability is between the two.
    """
    probability = probability_of(verdict)
    if probability is None:
        return None
    return probability if is_positive(verdict) else 1.0 - probability


def _decided(verdict: Verdict) -> DecisionVerdict:
    if not isinstance(verdict, DecisionVerdict):
        raise TypeError(f"a verdict of type {type(verdict).__name__} is not a decision")
    return verdict
