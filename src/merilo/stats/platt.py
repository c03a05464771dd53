"""Platt scaling: a logistic curve from a score to a probability, and the threshold that separates two classes best."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.stats.agreement_tables import Floats

_MAX_STEPS: Final = 100
_MIN_STEP: Final = 1e-10
_DAMPING: Final = 1e-9
"""Added to the curvature, so that columns that do not vary have a step."""
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
    """Return the curve of the highest likelihood. Without `shifted` its shift is 0.

    The targets are (n + 1) / (n + 2) and 1 / (n + 2) instead of 1 and 0, for n records of the class, so that the curve
    stays finite if a threshold separates the classes (Platt 1999). Both classes must occur.
    """
    import numpy as np

    positive = sum(labels)
    negative = len(labels) - positive
    if not positive or not negative:
        raise ValueError("a curve needs records of both classes")
    columns = np.stack([scores, np.ones(len(labels))], axis=1)[:, : 2 if shifted else 1]
    targets = np.where(labels, (positive + 1) / (positive + 2), 1 / (negative + 2))
    scale, *shift = fit_logistic(columns, targets, np.zeros(2 if shifted else 1)).tolist()
    return LogisticCurve(scale, *(shift or [0.0]))


def fit_logistic(columns: Floats, targets: Floats, penalty: Floats) -> Floats:
    """Return the weight of each column in the logistic regression of targets from 0 to 1, by Newton's method.

    `penalty`: on half the square of each weight (ridge). A step is halved until the loss falls.
    """
    import numpy as np

    def loss(weights: Floats) -> float:
        return float(losses(logistic(columns @ weights), targets).sum() + penalty @ weights**2 / 2)

    weights = np.zeros(columns.shape[1])
    for _ in range(_MAX_STEPS):
        p = logistic(columns @ weights)
        slope = columns.T @ (p - targets) + penalty * weights
        step = np.linalg.solve((columns.T * (p * (1 - p))) @ columns + np.diag(penalty + _DAMPING), slope)
        size, before = 1.0, loss(weights)
        while loss(weights - size * step) >= before:
            size /= 2
            if size < _MIN_STEP:
                return weights
        weights = weights - size * step
    return weights


def logistic(values: Floats) -> Floats:
    """Return 1 / (1 + exp(-value)) of each value, without overflow."""
    import numpy as np

    return np.asarray(1 / (1 + np.exp(-np.clip(values, -700, 700))))


def losses(p: Floats, targets: Floats) -> Floats:
    """Return the log loss of each probability; at most 27.6."""
    import numpy as np

    return -targets * np.log(np.maximum(p, _TINY)) - (1 - targets) * np.log(np.maximum(1 - p, _TINY))


def log_loss(probabilities: Sequence[float], labels: Sequence[bool]) -> float:
    """Return the mean of -log of the probability that was given to the label; each at most 27.6."""
    import numpy as np

    return float(losses(np.asarray(probabilities), np.asarray(labels, dtype=np.float64)).mean())


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
