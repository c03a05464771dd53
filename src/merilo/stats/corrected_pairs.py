"""Human labels of pairs: the mean difference that annotators would find, and the error of the judge.

The difference is computed from a judge's differences and a few human labels. The error is that of its means on two
systems, and the variance within a sample.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite, sqrt
from typing import TYPE_CHECKING

from merilo.stats.correction import DECIDING_LABELLED, FEWEST_LABELLED, Labels, effective, fitted_tuning
from merilo.stats.distributions import t_cdf
from merilo.stats.intervals import LEVEL, Interval, Method, check_level, few_clusters, t_quantile, too_few_clusters
from merilo.stats.means import PairedTest, paired_of
from merilo.stats.sums import codes_of, numbers, same_length, summed

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

UNSEEN = 0.5
"""Pseudo-observations added on each side of the residuals, at the typical size of a difference."""


@dataclass(frozen=True, slots=True, eq=False)
class PairLabels:
    """The labelled samples of two columns: the value of each sample in both, by human labels and by the judge."""

    places: NDArray[np.int64]
    """Positions of the samples in the columns."""
    first: tuple[Floats, Floats]
    """Values of the first column by human labels, and by the judge on the same items."""
    second: tuple[Floats, Floats]

    @classmethod
    def of(cls, rows: Sequence[tuple[int, float, float, float, float]]) -> PairLabels:
        """Return the labels of rows: position; human and judge of the first; human and judge of the second."""
        import numpy as np

        columns = np.array(rows, dtype=np.float64).reshape(len(rows), 5).T
        places = columns[0].astype(np.int64)
        return cls(places, (columns[1], columns[2]), (columns[3], columns[4]))

    def among(self, counting: NDArray[np.bool_]) -> PairLabels:
        """Return the labels of the samples for which `counting` is true, with their positions among these."""
        import numpy as np

        own = counting[self.places]
        places = (np.cumsum(counting) - 1)[self.places[own]]
        first, second = ((each[0][own], each[1][own]) for each in (self.first, self.second))
        return PairLabels(places, first, second)

    def exchanged(self) -> PairLabels:
        """Return the labels with the two columns exchanged."""
        return replace(self, first=self.second, second=self.first)

    def differences(self) -> Labels:
        """Return the labels of the differences, first - second."""
        human, judge = (one - two for one, two in zip(self.first, self.second, strict=True))
        return Labels(self.places, human, judge)

    def means(self, judged: tuple[Floats, Floats], tuning: float) -> tuple[float, float]:
        """Return the two corrected means whose difference is the corrected difference.

        `judged`: the judge's values of all pairs. `tuning`: the λ of the difference.
        """
        one, two = (
            float(tuning * column.mean() + (human - tuning * judge).mean())
            for column, (human, judge) in zip(judged, (self.first, self.second), strict=True)
        )
        return one, two


@dataclass(frozen=True, slots=True)
class PairedCorrection:
    """A mean paired difference by the judge alone, and corrected by human labels."""

    judged: PairedTest
    """The judge's mean difference over all pairs. Its interval does not include the judge's error."""
    corrected: PairedTest
    """The corrected difference; its interval is None with fewer than 10 labelled pairs or 6 labelled clusters."""
    human: float | None
    """The mean difference of the labelled pairs by the labels alone; None without labels."""
    tuning: float | None
    """λ: the weight of the judge's differences, 0 to 1; None if there is no corrected difference."""
    labelled: int
    """Labelled pairs."""

    @property
    def decides(self) -> bool:
        """True if there are enough labelled pairs (20) to decide by the corrected difference."""
        return self.corrected.interval.ends is not None and self.labelled >= DECIDING_LABELLED


def correct_pairs(
    judged: Sequence[float] | Floats,
    labels: Labels,
    span: tuple[float, float],
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = LEVEL,
) -> PairedCorrection:
    """Estimate the mean difference that annotators would find, over all pairs.

    `judged`: the judge's difference for each pair of outcomes, in `span` (the range of a difference; ends may be
    infinite). `labels`: differences by human labels and by the judge, of pairs drawn uniformly. `clusters`: the
    name of each pair's cluster.

    Estimate: λ · mean(judged) + mean(human - λ · judge), the second mean over the labelled pairs. λ = cov(human, judge)
    / var(judge) among the labelled pairs, clipped to [0, 1].

    Standard error: from the influence of each pair (of each cluster, if there are clusters) on the estimate. The
    residuals of the labelled pairs are joined by half a pseudo-observation on each side, at the root mean square of
    the nonzero differences. Without them, labels that happen to agree with the judge would give no variance. The
    limits are those of Student's t with n - 2 degrees of freedom, n the effective number of labelled pairs or
    clusters (Kish). Labels do not have the skewness of means near the end of a range, as a difference has room on
    both sides; hence no strata as in `correct`.

    Assumes that pairs were drawn independently of the labels and that the labels are right. Sources: Angelopoulos,
    Duchi & Zrnic, "PPI++" (2023), section 6. The pseudo-observations are our own; design/labels-and-correction.md has
    their coverage. Raises ValueError for other numbers.
    """
    check_level(level)
    differences = numbers(judged, "judge's differences")
    codes = codes_of(clusters, len(differences))
    if len(labels.sample) and not 0 <= labels.sample.min() <= labels.sample.max() < len(differences):
        raise ValueError(f"A label's position is outside the {len(differences)} pairs.")
    return corrected_pairs_of(paired_of(differences, codes, span, level), differences, labels, codes, span)


def corrected_pairs_of(
    alone: PairedTest, differences: Floats, labels: Labels, codes: NDArray[np.int64] | None, span: tuple[float, float]
) -> PairedCorrection:
    """Correct as `correct_pairs` does, from arrays that are known to be valid; `alone`: the test of the differences."""
    level = alone.interval.level
    found = labels.by_sample()
    labelled = len(found.sample)
    human = float(found.human.mean()) if labelled else None
    few = "" if codes is None else too_few_clusters(len(set(codes[found.sample].tolist()))) or ""
    why = few.replace(" cluster", " labelled cluster")
    if labelled < FEWEST_LABELLED:
        why = f"cannot tell from {labelled} labelled pairs, at least {FEWEST_LABELLED} needed"
    if why:
        nothing = PairedTest(None, Interval(None, why, level=level), None, None, labelled)
        return PairedCorrection(alone, nothing, human, None, labelled)
    corrected, tuning = _corrected(differences, found, codes, span, level)
    return PairedCorrection(alone, corrected, human, tuning, labelled)


def _corrected(
    judged: Floats, labels: Labels, codes: NDArray[np.int64] | None, span: tuple[float, float], level: float
) -> tuple[PairedTest, float]:
    import numpy as np

    tuning = fitted_tuning(labels.human, labels.judge)
    rest = labels.human - tuning * labels.judge
    centre, count = float(rest.mean()), len(rest)
    value = min(max(tuning * float(judged.mean()) + centre, span[0]), span[1])
    influence = tuning * (judged - judged.mean()) / len(judged)
    influence[labels.sample] += (rest - centre) / count
    units = np.arange(count) if codes is None else np.unique(codes[labels.sample], return_inverse=True)[1]
    left = max(count - 1 - (tuning > 0), 1.0)
    alone, half = float(influence @ influence), (span[1] - span[0]) / 2
    # The mean square of the nonzero differences, by the judge or by the labels, whichever is larger. Without any: the
    # squared half of the range, or 1 if the range is infinite.
    squares = [float((each[each != 0] ** 2).mean()) for each in (judged, labels.human) if each.any()]
    typical = max(squares, default=half * half if isfinite(half) else 1.0)
    variance = alone * count / left + 2 * UNSEEN * typical / count**2
    freedom = left
    if codes is not None:
        worth = effective(units, np.ones(count))
        freedom = max(worth - 1, 1.0)
        # the variance with clusters over that without, at least 1: few clusters may cancel by chance
        together = float((summed(codes, influence) ** 2).sum())
        variance *= (max(1.0, together / alone) if alone else 1.0) * worth / freedom
    error = sqrt(variance)
    half = t_quantile(freedom, level) * error
    ends = (max(value - half, span[0]), min(value + half, span[1]))
    distinct = len(set(units.tolist()))
    remark = "" if codes is None else few_clusters(distinct)
    interval = Interval(ends, remark=remark, method=Method.PREDICTION_POWERED, level=level)
    p = 2 * t_cdf(freedom, -abs(value) / error)
    return PairedTest(value, interval, p, error, distinct, freedom), tuning


def with_missing(
    found: PairedCorrection, pairs: int, missing: Floats, span: tuple[float, float], level: float
) -> PairedTest:
    """Return the corrected difference together with pairs whose difference is not corrected.

    `pairs`: the number of pairs that `found` is about. `missing`: the differences of the others, such as missing
    outcomes at an end of the range. Their variance, and that of their fraction, is added.
    """
    test = found.corrected
    if test.difference is None or test.error is None or test.freedom is None or not len(missing):
        return test
    share, centre = pairs / (pairs + len(missing)), float(missing.mean())
    value = share * test.difference + (1 - share) * centre
    spread = float(missing.var()) * (1 - share) + share * (1 - share) * (test.difference - centre) ** 2
    error = sqrt((share * test.error) ** 2 + spread / (pairs + len(missing)))
    half = t_quantile(test.freedom, level) * error
    ends = (max(value - half, span[0]), min(value + half, span[1]))
    p = 2 * t_cdf(test.freedom, -abs(value) / error)
    return replace(test, difference=value, error=error, p=p, interval=replace(test.interval, ends=ends))


# -- the error of the judge ---------------------------------------------------------------------------


def difference_span(span: tuple[float, float]) -> tuple[float, float]:
    """Return the range of a difference of two numbers of a range."""
    return (span[0] - span[1], span[1] - span[0])


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
    """Variances of scores between samples and within a sample."""

    between: float
    """Variance of the true means of samples, without judge noise; at least 0."""
    within: float
    """Variance of the draws of one sample: judge noise."""
    samples: int


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
    return VarianceComponents(max(0.0, of_means - within / draws), within, samples)
