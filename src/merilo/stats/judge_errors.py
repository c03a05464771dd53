"""The difference of a judge's mean error between two systems, from human labels of the same samples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from merilo.stats.compare import difference_span
from merilo.stats.corrected_pairs import correct_pairs
from merilo.stats.correction import Labels
from merilo.stats.intervals import LEVEL, Interval
from merilo.stats.sums import same_length

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from merilo.stats.corrected_pairs import PairLabels


@dataclass(frozen=True, slots=True)
class ErrorDifference:
    """A judge's mean signed error on two systems, in the unit of the metric; above 0: the judge scores too high."""

    first: float | None
    """Mean of judge minus human on the first system; None without labels."""
    second: float | None
    difference: float | None
    """`first` minus `second`; None without labels."""
    interval: Interval
    """The interval of the difference, in [-2 w, 2 w], w being the width of the metric's range."""
    labelled: int
    """Labelled pairs."""

    @property
    def sign(self) -> int:
        """1 if the interval is above 0, -1 if it is below 0, otherwise 0."""
        if self.interval.ends is None:
            return 0
        low, high = self.interval.ends
        return (low > 0) - (high < 0)


def judge_error_difference(
    labels: PairLabels,
    span: tuple[float, float],
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = LEVEL,
) -> ErrorDifference:
    """Return by how much a judge's mean signed error on the first system exceeds that on the second.

    `labels`: of samples that both systems answered, each by humans and by the judge on the same items. `span`: the
    metric's range; ends may be infinite. `clusters`: the name of each labelled pair's cluster.

    Formula: mean of (judge - human) of the first system minus that of the second. Both errors are known for each
    labelled pair, so the interval is that of the mean of their differences: Student's t, by `correct_pairs` with a
    judge that says nothing (λ = 0). Its pseudo-observations keep an interval from becoming too narrow if the judge
    seldom errs. There is none with fewer than 10 labelled pairs or 6 labelled clusters; without labels, all numbers
    are None. Labels count as correct. Raises ValueError for other numbers.
    """
    import numpy as np

    (human, judge), (other_human, other_judge) = labels.first, labels.second
    errors, others = judge - human, other_judge - other_human
    if clusters is not None:
        same_length(len(errors), len(clusters), "clusters")
    silent = np.zeros(len(errors))
    own = Labels(np.arange(len(errors)), errors - others, silent, labels.sequential)
    found = correct_pairs(silent, own, difference_span(difference_span(span)), clusters=clusters, level=level)
    if not len(errors):
        return ErrorDifference(None, None, None, found.corrected.interval, 0)
    first, second = (float(each.mean()) for each in (errors, others))
    interval = replace(found.corrected.interval, remark="")
    return ErrorDifference(first, second, found.human, interval, found.labelled)
