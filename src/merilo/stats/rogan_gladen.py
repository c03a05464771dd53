"""A rate by an imperfect judge, corrected by the judge's sensitivity and specificity."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

from merilo.stats.distributions import normal_quantile
from merilo.stats.intervals import LEVEL, Interval, Method, check_level, wilson_ends
from merilo.stats.sums import numbers, same_length

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

MIN_YOUDEN = 0.2
"""Youden index that the lower limit must exceed; a judge this close to guessing says nothing about the rate."""


@dataclass(frozen=True, slots=True)
class CorrectedRate:
    """The rate that annotators would find, estimated from the judge's rate."""

    rate: float | None
    """The corrected rate, in [0, 1]; None if it cannot be estimated."""
    interval: Interval
    judged: float | None
    """The judge's own rate."""
    sensitivity: float | None
    """The fraction of samples labelled yes by humans that the judge calls yes; None without such a sample."""
    specificity: float | None
    """The fraction of samples labelled no by humans that the judge calls no."""
    youden: float | None
    """The lower limit of sensitivity + specificity - 1."""


def corrected_rate(
    judged: Sequence[float] | NDArray[np.float64],
    human: Sequence[float],
    judge: Sequence[float],
    *,
    weights: Sequence[float] | None = None,
    level: float = LEVEL,
) -> CorrectedRate:
    """Return the Rogan-Gladen estimate of a rate, with the interval of Lang and Reiczigel.

    `judged`: the judge's 0 or 1 for each of the samples. `human` and `judge`: 0 or 1 for each labelled sample, with
    at most one per cluster. `weights`: the inverse of each sampling probability; labels sampled by verdict need them.
    Estimate: (judged rate + specificity - 1) / (sensitivity + specificity - 1), clipped to [0, 1].

    There is no estimate unless the lower limit of sensitivity + specificity - 1 exceeds 0.2. Assumes that the judge
    errs equally on labelled and other samples, and that labels and the judged rate are independent (approximately, if
    few samples are labelled). Unequal weights count as Kish's effective numbers.

    Sources: Rogan & Gladen, American Journal of Epidemiology 107 (1978); Lang & Reiczigel, Preventive Veterinary
    Medicine 113 (2014), section 2.2; the limit: Newcombe, Statistics in Medicine 17 (1998), method 10, from Wilson's.
    Raises ValueError for other numbers.
    """
    import numpy as np

    check_level(level)
    verdicts, people, own = (
        numbers(judged, "judge's numbers"),
        numbers(human, "labels"),
        numbers(judge, "judge's labels"),
    )
    same_length(len(people), len(own), "judge's labels")
    heavy = np.ones(len(people)) if weights is None else numbers(weights, "weights")
    same_length(len(people), len(heavy), "weights")
    if not all(np.isin(each, (0.0, 1.0)).all() for each in (verdicts, people, own)):
        raise ValueError("Labels of a corrected rate must be 0 or 1; use `correct` for others.")
    rate = float(verdicts.mean()) if len(verdicts) else None
    hits, sizes = zip(*(_share(own == each, heavy * (people == each)) for each in (1.0, 0.0)), strict=True)
    found = CorrectedRate(None, Interval(None, level=level), rate, hits[0], hits[1], None)
    if rate is None or hits[0] is None or hits[1] is None:
        return _without_estimate(
            found, "the human labels are all equal" if len(people) else "there are no labels", level
        )
    youden = _lowest_youden(hits[0], hits[1], sizes, level)
    found = CorrectedRate(None, found.interval, rate, hits[0], hits[1], youden)
    if youden <= MIN_YOUDEN:
        why = f"the judge's sensitivity + specificity - 1 may be as low as {youden:.2f}, more than {MIN_YOUDEN} needed"
        return _without_estimate(found, why, level)
    value = (rate + hits[1] - 1) / (hits[0] + hits[1] - 1)
    ends = _ends((rate, len(verdicts)), (hits[0], sizes[0]), (hits[1], sizes[1]), level)
    interval = Interval(ends, method=Method.ROGAN_GLADEN, level=level)
    return CorrectedRate(min(max(value, 0.0), 1.0), interval, rate, hits[0], hits[1], youden)


def _share(matches: NDArray[np.bool_], weights: NDArray[np.float64]) -> tuple[float | None, float]:
    """Return a weighted fraction and its effective sample size."""
    total = float(weights.sum())
    if total == 0:
        return None, 0.0
    return float(weights @ matches) / total, total**2 / float(weights @ weights)


def _without_estimate(found: CorrectedRate, why: str, level: float) -> CorrectedRate:
    note = f"cannot tell: {why}"
    return CorrectedRate(
        None, Interval(None, note, level=level), found.judged, found.sensitivity, found.specificity, found.youden
    )


def _lowest_youden(sensitivity: float, specificity: float, sizes: tuple[float, ...], level: float) -> float:
    lows = [wilson_ends(p, n, (0, 1), level=level)[0] for p, n in zip((sensitivity, specificity), sizes, strict=True)]
    return sensitivity + specificity - 1 - sqrt((sensitivity - lows[0]) ** 2 + (specificity - lows[1]) ** 2)


def _ends(
    judged: tuple[float, float], right: tuple[float, float], wrong: tuple[float, float], level: float
) -> tuple[float, float]:
    """Return the interval of Lang and Reiczigel: each rate is shifted towards 1/2, and so is a normal interval."""
    z = normal_quantile((1 + level) / 2)
    # The judged rate gets z²/2 pseudo-observations of each kind, sensitivity and specificity one of each.
    rate, count = (judged[0] * judged[1] + z * z / 2) / (judged[1] + z * z), judged[1] + z * z
    sensitivity, specificity = ((share * size + 1) / (size + 2) for share, size in (right, wrong))
    scale = sensitivity + specificity - 1
    value = (rate + specificity - 1) / scale
    yes, no = sensitivity * (1 - sensitivity) / (right[1] + 2), specificity * (1 - specificity) / (wrong[1] + 2)
    centre = value + 2 * z * z * (value * yes - (1 - value) * no)
    half = z * sqrt(rate * (1 - rate) / count + value**2 * yes + (1 - value) ** 2 * no) / scale
    ends = [min(max(end, 0.0), 1.0) for end in (centre - half, centre + half)]
    return (ends[0], ends[1])
