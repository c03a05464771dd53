"""The mean of paired differences: its interval and p-value, both from the same limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from merilo.stats.histogram import Histogram
from merilo.stats.intervals import FEWEST_CLUSTERS, LEVEL, Interval, Method, check_level
from merilo.stats.limits import Summarised
from merilo.stats.sums import Sums, codes_of, numbers

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    import numpy as np
    from numpy.typing import NDArray

FEWEST_DIFFERENT = 6
"""Minimum number of nonzero differences for a p-value: a sign test of 5 gives 1/16 at best."""
_NEAR = 1e-12


@dataclass(frozen=True, slots=True)
class PairedTest:
    """A test of a mean difference against 0."""

    difference: float | None
    """The mean difference; None without a pair."""
    interval: Interval
    p: float | None
    """Two-sided; at most 1 - level if, and only if, 0 is outside the interval. None if it cannot be computed."""
    error: float | None
    """The standard error, bias-reduced for clusters; None for fewer than two units, or equal ones."""
    units: int
    """The number of pairs, or of their clusters."""
    freedom: float | None = None
    """The degrees of freedom of the error; None without it."""
    reason: str = ""
    """The reason if there is no p-value; otherwise empty."""


def paired_test(
    differences: Sequence[float] | NDArray[np.float64],
    span: tuple[float, float],
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = LEVEL,
) -> PairedTest:
    """Test whether the mean of paired differences is 0; nothing is sampled at random.

    `differences`: one for each sample, in `span` (the range of a difference, which contains 0; ends may be infinite).
    `clusters`: the name of each sample's cluster. The interval is that of a mean (`Summarised`): on each side the
    farther one of t and of an exact limit. The p-value is the larger one of the two tests. For pairs t is the paired t
    test with units - 1 degrees of freedom; for clusters the error and the degrees of freedom are those of
    `Sums.spread`.

    With fewer than 6 nonzero differences (or clusters whose differences do not cancel) there is no p-value, and exact
    limits that are each right with probability (1 + level) / 2. In an infinite range there is then no interval.
    """
    check_level(level)
    found = numbers(differences, "differences")
    codes = codes_of(clusters, len(found))
    return paired_of(found, codes, span, level)


def paired_of(
    differences: NDArray[np.float64],
    codes: NDArray[np.int64] | None,
    span: tuple[float, float],
    level: float,
) -> PairedTest:
    """Test as `paired_test` does, from arrays that are known to be valid."""
    import numpy as np

    if not len(differences):
        return _untold(None, Interval(None, "cannot tell: there is no pair of scores", level=level), 0)
    if codes is not None:
        codes = np.unique(codes, return_inverse=True)[1]
    sums = Sums.of(differences, np.ones(len(differences)), codes)
    spread = None if sums.count < 2 or sums.equal else sums.spread
    points = Histogram.of(differences, span).points()
    varied = None if codes is None else sums.varied
    found = Summarised(points, span, len(differences), sums.effective, spread, varied)
    # Differences that cancel in a cluster may leave a rounding error, which is not a difference.
    unlike = int((abs(sums.tops) > _NEAR * max(1.0, float(abs(sums.tops).max()))).sum())
    note = _too_few(unlike, sums.count, clustered=codes is not None)
    if sums.count < (2 if codes is None else FEWEST_CLUSTERS):
        return _untold(sums.value, Interval(None, note, level=level), sums.count)
    if not found.finite and (note or spread is None):
        note = note or f"cannot tell: all {sums.count} differences are equal"
        return _untold(sums.value, Interval(None, note, level=level), sums.count)
    interval = Interval(
        # Without a p-value nothing may be shown, so both limits together are right with probability `level`.
        found.limits(level, (1 + level) / 2 if note else level),
        remark=f"all {sums.count} differences are equal" if spread is None else "",
        method=Method.WIDER if found.finite else Method.STUDENT,
        level=level,
    )
    error, freedom = (None, None) if spread is None else (spread.error, spread.freedom)
    return PairedTest(sums.value, interval, None if note else found.p(level), error, sums.count, freedom, note)


def _untold(value: float | None, interval: Interval, units: int) -> PairedTest:
    return PairedTest(value, interval, None, None, units, reason=interval.note)


def _too_few(unlike: int, units: int, *, clustered: bool) -> str:
    """Return why there is no p-value; empty if there is one."""
    if unlike >= FEWEST_DIFFERENT:
        return ""
    what = "clusters have differences that do not cancel" if clustered else "differences are not 0"
    return f"cannot tell: {unlike} of {units} {what}, at least {FEWEST_DIFFERENT} needed"
