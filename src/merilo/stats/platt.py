"""Platt scaling: a logistic curve from a score to a probability, and the threshold that separates two classes best."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_MAX_STEPS: Final = 100
_MIN_STEP: Final = 1e-10
_RIDGE: Final = 1e-9
_TINY: Final = 1e-12


def logit(p: float, tiny: float) -> float:
    """Return log(p / (1 - p)) of a probability, after moving it into [tiny, 1 - tiny]."""
    p = min(max(p, tiny), 1 - tiny)
    return math.log(p / (1 - p))


class LogisticCurve(NamedTuple):
    """The curve p = 1 / (1 + exp(-(scale * score + shift)))."""

    scale: float
    shift: float

    def probability(self, score: float) -> float:
        """Return the probability of a score, without overflow."""
        value = self.scale * score + self.shift
        if value >= 0:
            return 1 / (1 + math.exp(-value))
        return math.exp(value) / (1 + math.exp(value))


def fit_curve(scores: Sequence[float], labels: Sequence[bool], *, shifted: bool = True) -> LogisticCurve:
    """Return the curve of the highest likelihood, by Newton's method. Without `shifted` its shift is 0.

    The targets are (n + 1) / (n + 2) and 1 / (n + 2) instead of 1 and 0, for n records of the class, so that the curve
    stays finite if a threshold separates the classes (Platt 1999). Both classes must occur.
    """
    positive = sum(labels)
    negative = len(labels) - positive
    if not positive or not negative:
        raise ValueError("a curve needs records of both classes")
    high, low = (positive + 1) / (positive + 2), 1 / (negative + 2)
    targets = [high if label else low for label in labels]
    curve = LogisticCurve(0.0, math.log((positive + 1) / (negative + 1)) if shifted else 0.0)
    for _ in range(_MAX_STEPS):
        better = _improved(curve, scores, targets, shifted=shifted)
        if better is None:
            break
        curve = better
    return curve


def _improved(
    curve: LogisticCurve, scores: Sequence[float], targets: Sequence[float], *, shifted: bool
) -> LogisticCurve | None:
    """Return the curve after one step, halved until the loss falls; None if it does not fall."""
    loss = _loss(curve, scores, targets)
    scale, shift = _newton_step(curve, scores, targets, shifted=shifted)
    size = 1.0
    while size > _MIN_STEP:
        tried = LogisticCurve(curve.scale - size * scale, curve.shift - size * shift)
        if _loss(tried, scores, targets) < loss:
            return tried
        size /= 2
    return None


def _newton_step(
    curve: LogisticCurve, scores: Sequence[float], targets: Sequence[float], *, shifted: bool
) -> tuple[float, float]:
    slope_scale = slope_shift = a = b = c = 0.0
    for score, target in zip(scores, targets, strict=True):
        p = curve.probability(score)
        weight = p * (1 - p)
        slope_scale += (p - target) * score
        slope_shift += p - target
        a, b, c = a + weight * score * score, b + weight * score, c + weight
    a, c = a + _RIDGE, c + _RIDGE
    if not shifted:
        return slope_scale / a, 0.0
    determinant = a * c - b * b
    return (c * slope_scale - b * slope_shift) / determinant, (a * slope_shift - b * slope_scale) / determinant


def _loss(curve: LogisticCurve, scores: Sequence[float], targets: Sequence[float]) -> float:
    return math.fsum(
        -target * math.log(max(curve.probability(score), _TINY))
        - (1 - target) * math.log(max(1 - curve.probability(score), _TINY))
        for score, target in zip(scores, targets, strict=True)
    )


def log_loss(probabilities: Sequence[float], labels: Sequence[bool]) -> float:
    """Return the mean of -log of the probability that was given to the label; each at most 27.6."""
    return math.fsum(
        -math.log(max(p if label else 1 - p, _TINY)) for p, label in zip(probabilities, labels, strict=True)
    ) / len(labels)


def balanced_accuracy(decisions: Sequence[bool], labels: Sequence[bool]) -> float:
    """Return the mean of the fractions of positives and of negatives that are decided correctly. Both must occur."""
    pairs = [*zip(decisions, labels, strict=True)]
    yes = [decision for decision, label in pairs if label]
    no = [decision for decision, label in pairs if not label]
    return (sum(yes) / len(yes) + (len(no) - sum(no)) / len(no)) / 2


def best_threshold(probabilities: Sequence[float], labels: Sequence[bool]) -> float:
    """Return the threshold with the highest balanced accuracy: the middle between two neighbouring probabilities.

    On ties the lowest one. Both classes must occur.
    """
    ordered = sorted(zip(probabilities, labels, strict=True))
    positives = sum(labels)
    negatives = len(labels) - positives
    below_yes = below_no = 0
    best, threshold = 0.5, ordered[0][0]  # all are positive: half of the classes is right
    for (p, label), (after, _) in pairwise(ordered):
        below_yes, below_no = below_yes + label, below_no + (not label)
        if after > p:
            value = ((positives - below_yes) / positives + below_no / negatives) / 2
            if value > best + _TINY:
                best, threshold = value, (p + after) / 2
    return threshold
