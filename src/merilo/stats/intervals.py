"""Confidence intervals, and the methods that need only a few numbers: Student's and Wilson's."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from merilo.stats.distributions import normal_quantile, student_quantile

LEVEL = 0.95
SEED = 0
"""The default seed: equal data gives equal intervals."""
FEWEST_CLUSTERS = 6
FEW_CLUSTERS = 20


class Method(StrEnum):
    """Methods of intervals; design/statistics.md explains when each is used."""

    STUDENT = "t"
    WIDER = "t and exact limits"
    BCA = "BCa bootstrap"
    PERCENTILE = "percentile bootstrap"
    JACKKNIFE = "jackknife t"
    WILSON = "Wilson"
    CORRECTED = "stratified score"
    PREDICTION_POWERED = "prediction-powered t"


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval (low, high), or the reason why there is none."""

    ends: tuple[float, float] | None
    note: str = ""
    """The reason if there is no interval; otherwise empty."""
    remark: str = ""
    """A remark to print with the interval; often empty."""
    method: Method | None = None
    level: float = LEVEL
    seed: int | None = None
    """The seed of the resamples; None if nothing was sampled."""


def check_level(level: float) -> None:
    """Raise ValueError unless the level is strictly between 0 and 1."""
    if not 0 < level < 1:
        raise ValueError(f"A confidence level must be between 0 and 1, got {level}; write 0.95 for 95 %.")


def too_few_clusters(clusters: int) -> str | None:
    """Return the reason why this number of clusters gives no interval; None from six on."""
    if clusters >= FEWEST_CLUSTERS:
        return None
    return f"cannot tell from {clusters} cluster{'s' * (clusters != 1)}, at least {FEWEST_CLUSTERS} needed"


def few_clusters(clusters: int, effective: float | None = None) -> str:
    """Return a remark on an interval over few clusters; empty for an effective number of 20 or more.

    `effective`: the number of equal clusters that are equivalent to these; None counts all of them.
    """
    if effective is None or effective > clusters - 1:
        few = "" if clusters >= FEW_CLUSTERS else f"only {clusters} clusters"
    else:
        few = "" if effective >= FEW_CLUSTERS else f"the effective number of clusters is {effective:.1f} of {clusters}"
    return few and f"{few}: the interval is less reliable than its level says"


def t_quantile(freedom: float, level: float) -> float:
    """Return the two-sided quantile of Student's t with `freedom` > 0 degrees of freedom."""
    return student_quantile(freedom, (1 + level) / 2)


def wilson_ends(share: float, count: float, span: tuple[float, float], *, level: float = LEVEL) -> tuple[float, float]:
    """Return Wilson's score interval of a mean in the finite range `span`, as a proportion of `count` > 0 units.

    `share`: the mean, in `span`. `count` may be fractional (an effective number). For numbers other than 0 and 1 the
    interval is conservative: no distribution within a range has a larger variance than p(1 - p). The interval has a
    width even if all units are equal. Source: Wilson, JASA 22 (1927); Brown, Cai & DasGupta, Statistical Science 16
    (2001), section 3.1.1.
    """
    quantile = normal_quantile((1 + level) / 2)
    low, high = span
    # A mean of rounded scores may be outside the range by a rounding error.
    p = min(max((share - low) / (high - low), 0.0), 1.0)
    square = quantile * quantile / count
    centre = (p + square / 2) / (1 + square)
    half = math.sqrt(square * (p * (1 - p) + square / 4)) / (1 + square)
    # Exact at the ends of the range, where rounding would leave 1e-17 instead of 0.
    ends = (0.0 if p == 0 else max(centre - half, 0.0), 1.0 if p == 1 else min(centre + half, 1.0))
    return (low + ends[0] * (high - low), low + ends[1] * (high - low))
