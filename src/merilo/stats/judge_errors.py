"""The error of a judge: the difference of its mean error between two systems, and the variance within a sample."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
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
    own = Labels(np.arange(len(errors)), errors - others, silent)
    found = correct_pairs(silent, own, difference_span(difference_span(span)), clusters=clusters, level=level)
    if not len(errors):
        return ErrorDifference(None, None, None, found.corrected.interval, 0)
    first, second = (float(each.mean()) for each in (errors, others))
    interval = replace(found.corrected.interval, remark="")
    return ErrorDifference(first, second, found.human, interval, found.labelled)


@dataclass(frozen=True, slots=True)
class VarianceComponents:
    """Variances of scores between samples and within a sample, and the standard errors that follow from them."""

    between: float
    """Variance of the true means of samples, without judge noise; at least 0."""
    within: float
    """Variance of the draws of one sample: judge noise."""
    samples: int
    draws: int

    def standard_error(self, samples: int, draws: int) -> float:
        """Return the standard error of a mean over this many samples with this many draws each.

        sqrt((between + within / draws) / samples). With more and more draws it approaches sqrt(between / samples).
        Raises ValueError for a number below 1.
        """
        if samples < 1 or draws < 1:
            raise ValueError(f"samples and draws must be at least 1, got {samples} and {draws}.")
        return sqrt((self.between + self.within / draws) / samples)


def variance_components(values: Sequence[Sequence[float]]) -> VarianceComponents | None:
    """Return the variance components of scores, one row per sample and one value per draw.

    Model: score = mean + sample + noise, with independent samples and draws (one-way random effects). With n samples,
    K draws, sample means m_i and their mean m:

        within  = sum (x_ij - m_i)^2 / (n (K - 1))
        between = max(0, (K sum (m_i - m)^2 / (n - 1) - within) / K)

    These are the ANOVA estimates, unbiased except for the limit at 0. None (cannot tell) with fewer than two samples
    or two draws. Raises ValueError if the rows have different lengths or a value is not finite.
    Source: Searle, Casella and McCulloch, "Variance Components" (1992), 3.5.
    """
    import numpy as np

    samples, draws = len(values), len(values[0]) if len(values) else 0
    if any(len(row) != draws for row in values):
        raise ValueError("Each sample must have the same number of draws.")
    scores = np.asarray(values, dtype=np.float64)
    if not np.isfinite(scores).all():
        raise ValueError("A score of a draw is not a finite number.")
    if samples < 2 or draws < 2:
        return None
    means = scores.mean(axis=1)
    within = float(((scores - means[:, None]) ** 2).sum() / (samples * (draws - 1)))
    of_means = float(((means - means.mean()) ** 2).sum() / (samples - 1))
    return VarianceComponents(max(0.0, of_means - within / draws), within, samples, draws)
