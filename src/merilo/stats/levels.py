"""The level of a judge: two numbers that map its probabilities to those of a judge whose cut is right."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log, sqrt
from typing import TYPE_CHECKING, Final

from merilo.stats.correction import DECIDING_LABELLED, FOLDS
from merilo.stats.distributions import student_quantile
from merilo.stats.sums import coded, numbers, same_length

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_NEAR_CERTAIN: Final = 0.001
"""Distance from 0 and 1 to which probabilities are clipped."""
_LOWER_LIMIT: Final = 0.95
_MIN_OF_EACH: Final = 4
"""Samples with a yes, and with a no, from which there is a level."""
_STEPS, _LONGEST, _CLOSE = 25, 2.0, 1e-9
"""Newton's method: the most steps, the longest step, and the length of a step at which it ends."""


@dataclass(frozen=True, slots=True)
class Level:
    """The level of one kind of verdict: logit(p') = intercept + slope · logit(p), and p' of 0.5 or more is a yes."""

    intercept: float
    slope: float
    """Greater than 0, so that the order of the judge stays."""
    labels: int
    """Number of labelled verdicts that it was fitted on."""
    before: float
    """Mean fraction of right yes and right no by the judge alone, in [0, 1]; a verdict that it did not give is half
    right."""
    after: float
    """The same with levels fitted on the other folds."""

    def of(self, probability: float) -> float:
        """Return p' of a probability of the judge, both in [0, 1]."""
        inside = min(max(probability, _NEAR_CERTAIN), 1 - _NEAR_CERTAIN)
        return 1 / (1 + exp(-self.intercept - self.slope * log(inside / (1 - inside))))


def fit_level(
    probabilities: Sequence[float],
    judge: Sequence[bool | None],
    people: Sequence[bool],
    samples: Sequence[Hashable],
) -> Level | None:
    """Return the level that human labels set; None if they show no gain.

    One entry for each labelled verdict in every series: the judge's probability of yes, its yes or no (None if it gave
    none), the human yes or no, and the sample. Raises ValueError for series of different lengths.

    The logistic regression gives yes and no the same total weight, as the level is the cut between them (Platt, 1999,
    with a normal prior of mean 1 and variance 1 on the slope). The gain is the difference in the mean fraction of right
    yes and right no, each sample judged by the level of the other nine folds. The level is used if the lower 95 %
    limit of the gain, over samples, is above 0, from 20 labelled samples on, 4 of them with a yes and 4 with a no. To
    each of the two, one sample without a gain is added, so that a few equal ones do not decide.
    """
    import numpy as np

    chances = numbers(probabilities, "probabilities")
    for what, each in (("verdicts", judge), ("labels", people), ("samples", samples)):
        same_length(len(chances), len(each), what)
    yes, units = np.asarray(people, dtype=bool), coded(samples)
    rarer = min(len(np.unique(units[own])) for own in (yes, ~yes))
    if rarer < _MIN_OF_EACH or units.max() + 1 < DECIDING_LABELLED:
        return None
    inside = np.clip(chances, _NEAR_CERTAIN, 1 - _NEAR_CERTAIN)
    logits = np.log(inside / (1 - inside))
    after = np.zeros(len(yes))
    for fold in range(FOLDS):
        own = units % FOLDS == fold
        intercept, slope = _fitted(logits[~own], yes[~own])
        after[own] = (intercept + slope * logits[own] >= 0) == yes[own]
    said = np.array([0.5 if each is None else float(each) for each in judge])
    before = 1 - np.abs(said - yes)
    intercept, slope = _fitted(logits, yes)
    if slope <= 0 or _lower_limit(after - before, yes, units) <= 0:
        return None
    right = [float(each[yes].mean() + each[~yes].mean()) / 2 for each in (before, after)]
    return Level(intercept, slope, len(yes), right[0], right[1])


def _fitted(logits: Floats, yes: NDArray[np.bool_]) -> tuple[float, float]:
    """Return intercept and slope, by Newton's method."""
    import numpy as np

    count, both = len(yes), int(yes.sum())
    weights: Floats = np.where(yes, 0.5 * count / max(both, 1), 0.5 * count / max(count - both, 1))
    design, prior = np.stack([np.ones(len(yes)), logits]), np.diag([1e-6, 1.0])
    found: Floats = np.array([0.0, 1.0])
    for _ in range(_STEPS):
        chances = 1 / (1 + np.exp(-np.clip(found @ design, -30, 30)))
        slope = design @ (weights * (yes - chances)) - prior @ (found - [0.0, 1.0])
        curvature = (design * weights * chances * (1 - chances)) @ design.T + prior
        step = np.clip(np.linalg.solve(curvature, slope), -_LONGEST, _LONGEST)
        found = found + step
        if np.abs(step).max() < _CLOSE:
            break
    return float(found[0]), float(found[1])


def _lower_limit(gains: Floats, yes: NDArray[np.bool_], units: NDArray[np.int64]) -> float:
    """Return the lower limit of the mean gain, half of it among yes, with the linearised error over samples."""
    import numpy as np

    total, mean, errors = units.max() + 3, 0.0, np.zeros(units.max() + 3)
    for place, own in enumerate((yes, ~yes), start=1):
        each, names = np.append(gains[own], 0.0), np.append(units[own], total - place)
        mean += each.mean() / 2
        errors += np.bincount(names, (each - each.mean()) / (2 * len(each)), total)
    error = sqrt(total / (total - 1) * (errors**2).sum())
    return float(mean - student_quantile(total - 1, _LOWER_LIMIT) * error)
