"""Gates: is a run good enough, or not worse than another? Pass, fail, or cannot tell.

A gate decides by the interval that is printed with the number everywhere else: that of the mean, or of the comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import isfinite
from typing import TYPE_CHECKING

from merilo.stats.compare import Comparison, Conclusion, Policy
from merilo.stats.correction import DECIDING_LABELLED, Labels, correct
from merilo.stats.intervals import LEVEL, Interval
from merilo.stats.means import mean_interval
from merilo.stats.sums import same_length

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from merilo.stats.column import Column

    Ends = tuple[float, float] | None


class GateVerdict(StrEnum):
    """The verdicts of a gate."""

    PASS = "pass"  # noqa: S105, not a password
    FAIL = "fail"
    CANNOT_TELL = "cannot tell"
    NO_BASELINE = "no baseline"
    """The run to compare with does not exist."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A gate's verdict with the numbers behind it."""

    verdict: GateVerdict
    value: float | None
    """The mean, or the difference from the baseline, positive if the run is better; None without a score."""
    lower: float | None
    """The lower end of the interval of the value, over the samples with a score; None if there is none."""
    upper: float | None
    """The upper end."""
    level: float
    reason: str
    """One sentence: the numbers that decided, or the reason why there is no decision."""
    corrected: bool = False
    """True if human labels correct the numbers."""
    open: bool = False
    """True if the samples with a score would decide, and those without one could change the verdict."""

    @property
    def ends(self) -> Ends:
        """The ends of the interval."""
        return None if self.lower is None or self.upper is None else (self.lower, self.upper)


def gate_minimum(
    column: Column,
    at_least: float,
    *,
    clusters: Sequence[Hashable] | None = None,
    undefined: Policy | None = None,
    labels: Labels | None = None,
) -> Decision:
    """Pass if all of the mean's interval is at least `at_least`, fail if all of it is below.

    If lower is better, `at_least` is a maximum and the sides are exchanged. The interval is that of `mean_interval`
    over the samples with a score. With missing outcomes at either end of the range the verdict must be the same,
    otherwise the gate cannot tell; so it cannot in an infinite range. `Policy.DROP` leaves Undefined outcomes out,
    `Policy.WORST` counts them as the worst value.

    `labels`: their samples are positions among the scored ones. From 20 labelled samples on, mean and interval are
    those of `correct`. Missing outcomes then count in proportion to their number, as labels say nothing about them.
    """
    if clusters is not None:
        same_length(len(column), len(clusters), "clusters")
    if labels is not None and labels.samples >= DECIDING_LABELLED and all(map(isfinite, column.span)):
        found = _corrected(column, labels, clusters, undefined)
        if found is not None:
            return _minimum(found, at_least, column)
    if undefined is Policy.WORST:
        column = column.filled(column.worst, column.undefined)
    unknown = column.failed if undefined is Policy.DROP else ~column.scored
    value, interval = _mean(column, clusters)
    extremes: list[Ends] = []
    if unknown.any():
        sides = [column.filled(end, unknown) for end in column.span if isfinite(end)]
        extremes = [_mean(side, clusters)[1].ends for side in sides] if len(sides) == 2 else [None]
    return _minimum(_Found(value, interval.ends, extremes, interval.note), at_least, column)


def drop_decision(found: Comparison, max_drop: float, *, higher_is_better: bool) -> Decision:
    """Return the decision on the drop of a run (the first of the comparison) from its baseline (the second).

    Pass if all of the interval is at or above -max_drop, also with missing outcomes at either end of the range. Fail if
    the comparison concludes that the run is worse, and the interval reaches below -max_drop. Otherwise cannot tell.
    `max_drop` ≥ 0, in the unit of the metric. If lower is better, a rise is the drop. The interval is that of the
    comparison, so it is wider for several metrics (Holm).
    """
    if max_drop < 0:
        raise ValueError(f"The largest allowed drop must be 0 or more, got {max_drop}.")
    sign = 1.0 if higher_is_better else -1.0
    worse = Conclusion.SECOND_HIGHER if higher_is_better else Conclusion.FIRST_HIGHER
    value = None if found.difference is None else 0.0 + sign * found.difference
    ends = _improvement(found.interval.ends, sign)
    allowed = ends is not None and ends[0] >= -max_drop
    extremes = [_improvement(None if each is None else each.interval.ends, sign) for each in (found.least, found.most)]
    level = found.interval.level
    lower = ends is not None and ends[1] < 0  # the same test as in `compare`, without the missing outcomes
    alone = GateVerdict.PASS if allowed else GateVerdict.FAIL if lower else GateVerdict.CANNOT_TELL
    verdict = GateVerdict.CANNOT_TELL
    if allowed and (not found.counts.left_out or all(each is not None and each[0] >= -max_drop for each in extremes)):
        verdict = GateVerdict.PASS
    elif found.reading is worse and not allowed:
        verdict = GateVerdict.FAIL
    own = _Found(value, ends, note=found.interval.note or found.reason, corrected=found.by_judge is not None)
    return _decision(verdict, alone, own, f"a drop of at most {max_drop:g}", level)


@dataclass(frozen=True, slots=True)
class _Found:
    value: float | None
    ends: Ends
    extremes: Sequence[Ends] = ()
    """The ends with missing outcomes at the lower and the higher end of the range; empty without such outcomes."""
    note: str = ""
    corrected: bool = False


def _mean(column: Column, clusters: Sequence[Hashable] | None) -> tuple[float | None, Interval]:
    names = None if clusters is None else _among(clusters, column)
    found = mean_interval(column.values[column.scored], column.span, clusters=names)
    return found.value, found.interval


def _corrected(
    column: Column, labels: Labels, clusters: Sequence[Hashable] | None, undefined: Policy | None
) -> _Found | None:
    """Return the corrected mean; None if the labels give none."""
    names = None if clusters is None else _among(clusters, column)
    found = correct(column.values[column.scored], labels, column.span, clusters=names).corrected
    ends = found.interval.ends
    if found.value is None or ends is None:
        return None
    fixed = int(column.undefined.sum()) if undefined is Policy.WORST else 0
    unknown = int(column.failed.sum()) if undefined is not None else int((~column.scored).sum())
    count = int(column.scored.sum())

    def with_others(number: float, others: int, other: float) -> float:
        return (count * number + fixed * column.worst + others * other) / (count + fixed + others)

    value, low, high = (with_others(each, 0, 0.0) for each in (found.value, *ends))
    extremes: list[Ends] = [
        (with_others(ends[0], unknown, end), with_others(ends[1], unknown, end)) for end in column.span if unknown
    ]
    return _Found(value, (low, high), extremes, corrected=True)


def _among(clusters: Sequence[Hashable], column: Column) -> list[Hashable]:
    return [name for name, scored in zip(clusters, column.scored.tolist(), strict=True) if scored]


def _minimum(found: _Found, at_least: float, column: Column) -> Decision:
    def verdict(ends: Ends) -> GateVerdict:
        if ends is None:
            return GateVerdict.CANNOT_TELL
        above, below = ends[0] >= at_least, ends[1] < at_least
        if not column.higher_is_better:
            above, below = ends[1] <= at_least, ends[0] > at_least
        return GateVerdict.PASS if above else GateVerdict.FAIL if below else GateVerdict.CANNOT_TELL

    alone = verdict(found.ends)
    settled = alone if all(verdict(ends) is alone for ends in found.extremes) else GateVerdict.CANNOT_TELL
    asked = f"at {'least' if column.higher_is_better else 'most'} {at_least:g}"
    return _decision(settled, alone, found, asked, LEVEL)


def _decision(verdict: GateVerdict, alone: GateVerdict, found: _Found, asked: str, level: float) -> Decision:
    """Return the decision; `alone`: the verdict by the samples with a score."""
    opened = verdict is not alone
    low, high = found.ends or (None, None)
    if found.ends is None:
        why = found.note.removeprefix("cannot tell: ").removeprefix("cannot tell ") or "there are no scores"
        reason = f"Asked for {asked}; cannot tell: {why}."
    else:
        undecided = "but samples without a score could change that" if opened else "which does not decide"
        conclusions = {GateVerdict.PASS: "which passes", GateVerdict.FAIL: "which fails"}
        reason = f"Asked for {asked}; it is between {low:.4g} and {high:.4g}, {conclusions.get(verdict, undecided)}."
    return Decision(verdict, found.value, low, high, level, reason, found.corrected, opened)


def _improvement(ends: Ends, sign: float) -> Ends:
    """Return the ends of a difference as those of an improvement."""
    if ends is None:
        return None
    low, high = (0.0 + sign * end for end in ends)
    return min(low, high), max(low, high)
