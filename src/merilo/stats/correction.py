"""Estimates from many labels of a judge, corrected by a few human labels (design/labels-and-correction.md)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from math import fsum, inf, isfinite, sqrt
from typing import TYPE_CHECKING, NamedTuple

from merilo.stats.distributions import normal_quantile
from merilo.stats.intervals import (
    LEVEL,
    SEED,
    Interval,
    Method,
    check_level,
    few_clusters,
    t_quantile,
    too_few_clusters,
)
from merilo.stats.means import MeanEstimate, mean_interval
from merilo.stats.sums import codes_of, numbers, same_length, summed

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

STEPS = 50
"""Equal parts into which the squared quantile is divided among the strata."""
_HALVINGS = 33
_EXPONENTS = (-30.0, 12.0)
"""Range of the logarithm of the multiplier that is searched."""


@dataclass(frozen=True, slots=True, eq=False)
class Stratum:
    """A part of the population, with its observed values."""

    share: float
    """Fraction of the population, above 0."""
    mean: float
    """The estimated mean of the stratum, in [0, 1]."""
    values: Floats
    """Observed numbers; empty if there are none. Numbers outside [0, 1] are possible, as differences of two numbers."""
    count: float
    """Effective number of independent values."""

    @property
    def variance(self) -> float:
        """Variance of the estimated mean; 0 without values."""
        return float(self.values.var()) / self.count if len(self.values) else 0.0


def stratified_limits(strata: Sequence[Stratum], variance: float, quantile: float) -> tuple[float, float]:
    """Return the lower and upper limit of the sum of share · mean over the strata, in [0, 1].

    `variance`: of the estimate for all other reasons, such as the sampled sizes of the strata. `quantile`: two-sided,
    normal or Student's t. A stratum without values may have any mean from 0 to 1.
    """
    import numpy as np

    statistics = quantile * quantile * np.arange(1, STEPS + 1) / STEPS
    others = np.sqrt(variance * statistics)
    value = sum(each.share * each.mean for each in strata)
    below = _farthest([others, *(each.share * _reach(each, statistics, up=False) for each in strata)])
    above = _farthest([others, *(each.share * _reach(each, statistics, up=True) for each in strata)])
    return float(max(0.0, value - below)), float(min(1.0, value + above))


def _farthest(curves: Sequence[Floats]) -> float:
    """Return the largest sum of one point of each curve, if the curves share STEPS steps.

    The curves are concave, so each step goes to the curve that gains most by it.
    """
    import numpy as np

    # Each curve starts at 0, so its differences are the gains of its steps.
    gains = np.concatenate([np.diff(curve, prepend=0.0) for curve in curves])
    return float(np.sort(gains)[-STEPS:].sum())


def _reach(stratum: Stratum, statistics: Floats, *, up: bool) -> Floats:
    """Return the distance of the highest (or lowest) possible mean from the estimate, for each value of the
    statistic.
    """
    import numpy as np

    room = 1 - stratum.mean if up else stratum.mean
    if not len(stratum.values):
        return np.full(STEPS, room)
    sign = 1.0 if up else -1.0
    values, alike = np.unique((sign * stratum.values).round(12), return_counts=True)
    counts = alike * stratum.count / len(stratum.values)
    end = max(1.0 if up else 0.0, float(values[-1]))
    return np.minimum(_largest_means(values, counts, end, statistics) - sign * stratum.mean, room)


def _largest_means(values: Floats, counts: Floats, end: float, statistics: Floats) -> Floats:
    """Return the largest mean of a distribution on `values` and `end`, for each value of Pearson's statistic.

    `values`: ascending, at most `end`. By Lagrange multipliers the probabilities are proportional to count /
    sqrt(multiplier - value), with a multiplier above `end`. With the multiplier at `end` the rest of the probability
    goes to `end`, if no value is there.
    """
    import numpy as np

    total = float(counts.sum())

    def tilted(beyond: Floats) -> tuple[Floats, Floats]:
        """Return statistic and mean for multipliers that exceed the end by these numbers."""
        roots = np.sqrt(end - values + beyond[:, None])
        sums = (counts / roots).sum(axis=1)
        return sums * (counts * roots).sum(axis=1) / total - total, (counts * values / roots).sum(axis=1) / sums

    found = np.empty(len(statistics))
    limit, mean = inf, 0.0
    if end > values[-1]:
        limit, mean = (float(each[0]) for each in tilted(np.zeros(1)))
        # Probability of the end of the range, where nothing was observed.
        unseen = 1 - (total + limit) / (total + statistics)
        found = mean + unseen * (end - mean)
    inner = statistics <= limit
    low, high = (np.full(int(inner.sum()), exponent) for exponent in _EXPONENTS)
    for _ in range(_HALVINGS if len(low) else 0):
        middle = (low + high) / 2
        beyond = tilted(np.exp(middle))[0] > statistics[inner]
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
    found[inner] = tilted(np.exp(high))[1]
    return found


FEWEST_LABELLED = 10
DECIDING_LABELLED = 20
"""Labelled samples from which gates and comparisons decide by a corrected number."""
FOLDS = 10
WIDER = 0.0199
"""How much wider than that of the labels alone a corrected interval may be, as a fraction of that width; below 2 % by
more than a rounding error."""


class Reported(StrEnum):
    """Estimates that can be reported."""

    CORRECTED = "corrected"
    HUMAN = "human only"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """The labels of annotators and of the judge for the labelled items (contexts, statements or whole samples)."""

    sample: NDArray[np.int64]
    """The position of the item's sample among all that were judged."""
    human: NDArray[np.float64]
    judge: NDArray[np.float64]

    @classmethod
    def of(cls, sample: Sequence[int], human: Sequence[float], judge: Sequence[float]) -> Labels:
        """Return labels of items, in any order; each item once. A sample's number is the mean of its labelled items.

        Raises ValueError for unequal lengths and numbers that are not finite.
        """
        import numpy as np

        places = np.asarray(sample, dtype=np.int64)
        people, judged = numbers(human, "human labels"), numbers(judge, "labels of the judge")
        for what, each in (("human labels", people), ("labels of the judge", judged)):
            same_length(len(places), len(each), what)
        return cls(places, people, judged)

    @property
    def samples(self) -> int:
        """The number of labelled samples."""
        import numpy as np

        return len(np.unique(self.sample))

    def by_sample(self) -> Labels:
        """Return one item for each labelled sample, with the means of its items; samples are in ascending order."""
        import numpy as np

        places, own, items = np.unique(self.sample, return_inverse=True, return_counts=True)
        human, judge = (summed(own, each, len(places)) / items for each in (self.human, self.judge))
        return Labels(places, human, judge)


@dataclass(frozen=True, slots=True)
class Correction:
    """A mean by the judge, by human labels, and by the judge corrected by human labels; and which to report."""

    raw: MeanEstimate
    """The judge's mean over all samples; its interval does not include the judge's error."""
    human: MeanEstimate
    """The mean of the labelled samples."""
    corrected: MeanEstimate
    tuning: float | None
    """λ: the weight of the judge's numbers between the ends of the range, 0 to 1; None if none was fitted."""
    labelled: int
    """Samples with a label."""
    reported: Reported
    reason: str
    """One sentence: the reason for this choice."""
    seed: int

    @property
    def estimate(self) -> MeanEstimate | None:
        """The estimate to report; None for none."""
        chosen = {Reported.CORRECTED: self.corrected, Reported.HUMAN: self.human}
        return chosen.get(self.reported)


def correct(
    judged: Sequence[float] | NDArray[np.float64],
    labels: Labels,
    span: tuple[float, float],
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = LEVEL,
    seed: int = SEED,
) -> Correction:
    """Estimate the mean that annotators would give, over all samples, from the judge's numbers and a few human
    labels.

    `judged`: the judge's number for each sample, in `span`: the mean over all its items. `labels`: of items of
    samples drawn uniformly from these. `clusters`: the name of each sample's cluster. `seed`: which labelled units
    share a fold.

    The judged samples form up to three strata: at the low end of the range, at the high end, and between. Their sizes
    are known. Estimate: sum over strata of share · mean label. Between the ends, from 10 labelled samples on, the
    label is replaced by human - λ · f · (judge - mean of the unlabelled in the stratum), f the unlabelled fraction. λ =
    cov(human, judge) / var(judge) among the labelled samples of the stratum, clipped to [0, 1], each sample with the λ
    of the other nine folds. With every sample labelled the result is the mean of the labels.

    Limits: `stratified_limits`, with the variance of the strata's sizes, as the judged samples are a sample of
    questions. With clusters each stratum has the effective number of its labelled clusters, the excess of the
    cluster-robust variance is added, and Student's t replaces the normal quantile.

    If the labels alone have an interval and it is narrower, value and limits are moved towards those of the labels
    alone, until the interval is at most 2 % wider.

    Assumes that samples were selected uniformly and that the human labels are right. There is no corrected mean from
    fewer than 10 labelled samples or 6 labelled clusters, and none in a range without finite ends. Sources: Cochran,
    "Sampling Techniques" (3rd ed., 1977), 5A.9 (post-stratification); Angelopoulos, Duchi & Zrnic, "PPI++" (2023),
    section 6 (λ); Zrnic & Candès, "Cross-prediction", PNAS 121 (2024) (folds).

    The corrected mean is reported if there is one. In a range without finite ends it is the human-only mean, from 10
    labelled samples on. Otherwise nothing is reported.
    """
    check_level(level)
    numbers_of_judge = numbers(judged, "judge's numbers")
    codes = codes_of(clusters, len(numbers_of_judge))
    if len(labels.sample) and not 0 <= labels.sample.min() <= labels.sample.max() < len(numbers_of_judge):
        raise ValueError(f"A label's sample position is outside the {len(numbers_of_judge)} judged samples.")
    names = None if codes is None else codes.tolist()
    raw = mean_interval(numbers_of_judge, span, clusters=names, level=level)
    own = labels.by_sample()
    design = _Design(numbers_of_judge, codes, own.sample, own.human, own.judge)
    of_labelled = None if codes is None else codes[design.places].tolist()
    human = mean_interval(design.people, span, clusters=of_labelled, level=level)
    corrected, tuning = _corrected(design, span, level, seed, human)
    reported, reason = _choice(human, corrected, len(design.places))
    return Correction(raw, human, corrected, tuning, len(design.places), reported, reason, seed)


@dataclass(frozen=True, slots=True, eq=False)
class _Design:
    """The labelled samples, one number of each kind for each, and their positions among all samples."""

    judged: NDArray[np.float64]
    codes: NDArray[np.int64] | None
    places: NDArray[np.int64]
    """Positions of the labelled samples, ascending; the arrays below are in the same order."""
    people: NDArray[np.float64]
    judge: NDArray[np.float64]

    @property
    def units(self) -> NDArray[np.int64]:
        """The unit of each labelled sample, numbered from 0: the sample itself, or its cluster."""
        import numpy as np

        names = self.places if self.codes is None else self.codes[self.places]
        return np.unique(names, return_inverse=True)[1].astype(np.int64)

    def scaled(self, span: tuple[float, float]) -> _Design:
        """Return the same design with the range scaled to [0, 1]."""
        low, high = span
        judged, people, judge = ((each - low) / (high - low) for each in (self.judged, self.people, self.judge))
        return replace(self, judged=judged, people=people, judge=judge)


def _corrected(
    design: _Design, span: tuple[float, float], level: float, seed: int, alone: MeanEstimate
) -> tuple[MeanEstimate, float | None]:
    """Return the corrected mean and λ; `alone`: the mean of the labels, with its interval at the same level."""
    count = len(design.places)
    clusters = None if design.codes is None else len(set(design.codes[design.places].tolist()))
    why = "" if all(map(isfinite, span)) else "a correction needs a range with two finite ends"
    if not why and count < FEWEST_LABELLED:
        why = f"cannot tell from {count} labelled samples, at least {FEWEST_LABELLED} needed"
    if not why and clusters is not None:
        why = (too_few_clusters(clusters) or "").replace(" cluster", " labelled cluster")
    if why:
        return MeanEstimate(None, Interval(None, why, level=level), count, clusters), None
    low, high = span
    found = _Stratified.of(design.scaled(span), seed)
    ends = stratified_limits(found.strata, found.other_variance, found.quantile(level))
    scaled = (low + ends[0] * (high - low), low + ends[1] * (high - low))
    remark = "" if clusters is None else few_clusters(clusters)
    interval = Interval(scaled, remark=remark, method=Method.CORRECTED, level=level, seed=seed)
    value, error = low + found.value * (high - low), (high - low) * found.error
    estimate = MeanEstimate(value, interval, count, clusters, error)
    part = 1.0
    if alone.interval.ends is not None:
        # the largest weight with which the interval is at most 2 % wider than that of the labels alone
        width, own = (high - low for low, high in (scaled, alone.interval.ends))
        part = 1.0 if width <= (1 + WIDER) * own else WIDER * own / (width - own)
    return _blended(estimate, alone, part), None if found.tuning is None else part * found.tuning


def _blended(strata: MeanEstimate, alone: MeanEstimate, part: float) -> MeanEstimate:
    """Return part · strata + (1 - part) · alone: value, limits and error.

    The standard deviation of a weighted mean is at most the weighted mean of the standard deviations, so its limits
    are not too narrow.
    """
    ends, own = strata.interval.ends, alone.interval.ends
    if part == 1 or ends is None or own is None or strata.value is None or alone.value is None:
        return strata

    def mixed(one: float, other: float) -> float:
        return part * one + (1 - part) * other

    interval = replace(strata.interval, ends=(mixed(ends[0], own[0]), mixed(ends[1], own[1])))
    error = None if strata.error is None else mixed(strata.error, alone.error or strata.error)
    return replace(strata, value=mixed(strata.value, alone.value), interval=interval, error=error)


class _Part(NamedTuple):
    """One stratum of the judge's numbers, and its contribution to the estimate."""

    stratum: Stratum
    expected: NDArray[np.float64]
    """The estimated label of each judged sample of the stratum."""
    residuals: NDArray[np.float64]
    """The contribution of each labelled sample of the stratum to the error of the estimate."""
    tuning: float | None

    @classmethod
    def of(cls, design: _Design, inside: NDArray[np.bool_], seed: int) -> _Part:
        """Return the stratum of the judged samples for which `inside` is true."""
        import numpy as np

        judged, own = design.judged[inside], inside[design.places]
        values, judge = design.people[own], design.judge[own]
        mean, share, tuning = float(judged.mean()), float(inside.mean()), None
        expected = np.zeros(len(judged))
        if not len(values):
            return cls(Stratum(share, mean, values, 0.0), expected + mean, values, None)
        units = design.units[own]
        # In the strata at the ends the judge's numbers are all equal, so there is nothing to fit.
        if 0 < judged[0] < 1 and len(values) >= FEWEST_LABELLED:
            slopes = _tunings(values, judge, units, seed)
            tuning = float(slopes.mean())
            # mean(judge) - mean of all judged = unlabelled fraction · (mean(judge) - mean of the unlabelled). Written
            # so, folds with different slopes change nothing if every sample is labelled.
            others = np.ones(len(judged), dtype=bool)
            others[np.searchsorted(np.flatnonzero(inside), design.places[own])] = False
            around = float(judged[others].mean()) if others.any() else mean
            values = values - slopes * others.mean() * (judge - around)
            expected[others] = tuning * (judged[others] - around)
        centre = float(values.mean())
        estimate = min(max(centre, 0.0), 1.0)
        stratum = Stratum(share, estimate, values, _independent(units, values - centre))
        residuals = share * (values - centre) / len(values)
        return cls(stratum, estimate + expected, residuals, tuning)


@dataclass(frozen=True, slots=True, eq=False)
class _Stratified:
    """The estimate by strata of the judge's numbers, on the scale from 0 to 1."""

    strata: tuple[Stratum, ...]
    value: float
    other_variance: float
    """Variance of the estimate, apart from that of the strata's means."""
    clusters: float | None
    """Effective number of labelled clusters; None without clusters."""
    tuning: float | None

    @classmethod
    def of(cls, design: _Design, seed: int) -> _Stratified:
        """Return the estimate from judged numbers and labels in [0, 1]; at least one label."""
        import numpy as np

        judged = design.judged
        kinds = [each for each in (judged <= 0, (judged > 0) & (judged < 1), judged >= 1) if each.any()]
        parts = [_Part.of(design, inside, seed) for inside in kinds]
        strata = tuple(part.stratum for part in parts)
        value = sum(each.share * each.mean for each in strata)
        tuning = next((part.tuning for part in parts if part.tuning is not None), None)
        errors = np.zeros(len(judged))
        for inside, part in zip(kinds, parts, strict=True):
            errors[inside] = (part.expected - value) / len(judged)
        others = float((errors**2).sum())
        if design.codes is None:
            return cls(strata, value, others, None, tuning)
        worth = np.zeros(len(design.places))
        for inside, part in zip(kinds, parts, strict=True):
            own = inside[design.places]
            errors[design.places[own]] += part.residuals
            worth[own] = part.stratum.share / max(len(part.stratum.values), 1)
        labelled = len(np.unique(design.units))
        robust = float((summed(design.codes, errors) ** 2).sum()) * labelled / (labelled - 1)
        # The variance of the strata's means is added from the strata themselves; only the excess of clustering counts
        # here.
        others = max(others, robust - sum(each.share**2 * each.variance for each in strata))
        return cls(strata, value, others, effective(design.units, worth), tuning)

    @property
    def error(self) -> float:
        """The standard error of the estimate."""
        return sqrt(sum(each.share**2 * each.variance for each in self.strata) + self.other_variance)

    def quantile(self, level: float) -> float:
        """Return the two-sided quantile: normal, or Student's t by the effective number of clusters."""
        if self.clusters is None:
            return normal_quantile((1 + level) / 2)
        return t_quantile(max(self.clusters - 1, 1.0), level)


def effective(units: NDArray[np.int64], weights: NDArray[np.float64]) -> float:
    """Return Kish's effective number of units: sum(weights)² / sum(squared weights of the units)."""
    sums = summed(units, weights)
    return float(sums.sum() ** 2 / (sums @ sums))


def _independent(units: NDArray[np.int64], residuals: NDArray[np.float64]) -> float:
    """Return the effective number of independent values: their number / the observed design effect.

    Equal values show no design effect, so each unit counts once.
    """
    import numpy as np

    alone = float(len(residuals))
    together = effective(units, np.ones(len(residuals)))
    variance = float(residuals @ residuals)
    if variance < 1e-24:
        return together
    effect = float((summed(units, residuals) ** 2).sum()) / variance
    return alone / min(max(effect, 1.0), alone / together)


def _tunings(
    people: NDArray[np.float64],
    judge: NDArray[np.float64],
    units: NDArray[np.int64],
    seed: int,
) -> NDArray[np.float64]:
    """Return λ for each labelled sample, from the units of the other folds."""
    import numpy as np

    units = np.unique(units, return_inverse=True)[1]
    count = int(units.max()) + 1
    keys = np.atleast_1d(np.random.PCG64(seed).random_raw(count))
    folds = np.empty(count, dtype=np.int64)
    # Whole units share a fold: λ for a cluster must not be fitted on the cluster itself.
    folds[np.argsort(keys, kind="stable")] = np.arange(count) % min(FOLDS, count)
    found = np.empty(len(people))
    for fold in range(min(FOLDS, count)):
        out = folds[units] == fold
        found[out] = fitted_tuning(people[~out], judge[~out])
    return found


def fitted_tuning(people: NDArray[np.float64], judge: NDArray[np.float64]) -> float:
    """Return cov(human, judge) / var(judge), in [0, 1]; 0 if the judge's numbers are all equal."""
    if not len(people):
        return 0.0
    left, right = (each - each.mean() for each in (people, judge))
    variance = float(right @ right)
    return min(max(float(left @ right) / variance, 0.0), 1.0) if variance > 1e-24 else 0.0


def _choice(human: MeanEstimate, corrected: MeanEstimate, labelled: int) -> tuple[Reported, str]:
    ends, alone = corrected.interval.ends, human.interval.ends
    if ends is not None and alone is not None:
        return Reported.CORRECTED, (
            "The corrected estimate is reported whenever it has an interval, at most 2 % wider than from the labels "
            f"alone: here {ends[1] - ends[0]:.3g}; from the labels alone {alone[1] - alone[0]:.3g}."
        )
    if ends is not None:
        return Reported.CORRECTED, f"The corrected estimate is reported: {human.interval.note}."
    if labelled >= FEWEST_LABELLED and alone is not None:
        return Reported.HUMAN, f"The human-only estimate is reported: {corrected.interval.note}."
    why = human.interval.note or f"{labelled} samples are labelled"
    return Reported.NOTHING, f"Nothing is reported: {why}; at least {FEWEST_LABELLED} labelled samples are needed."


# -- as ARES computes it -------------------------------------------------------------------------------


class Corrected(NamedTuple):
    """An estimate with its confidence interval."""

    estimate: float
    interval: tuple[float, float]


def ppi_mean(
    gold_labels: Sequence[float],
    judge_on_gold: Sequence[float],
    judge_on_unlabeled: Sequence[float],
    alpha: float = 0.05,
) -> Corrected:
    """Estimate the mean human label from a judge's labels and its errors, with a 1 − alpha interval.

    `gold_labels` and `judge_on_gold`: one each for the n items with human labels, in the same order.
    `judge_on_unlabeled`: one for each of N other items. Estimate: mean(judge on unlabelled) − mean(judge − gold);
    half width: z · sqrt(var(judge on unlabelled)/N + var(judge − gold)/n), z the normal quantile of 1 − alpha/2.

    Assumes that both sets of items come from the same population and that both means are approximately normal. With
    few labelled items the interval is too narrow, and its width is 0 if neither series varies. It is not clipped to
    the range of the labels. Variances have the divisors N and n, as in ARES. Source: Angelopoulos et al.,
    "Prediction-powered inference", Science 382 (2023), algorithm 1; ARES, git c7c9018.

    Raises ValueError for fewer than two items in either set, different lengths, numbers that are not finite, and an
    alpha outside (0, 1).
    """
    if len(gold_labels) != len(judge_on_gold):
        raise ValueError(
            f"Each labelled item needs a human label and one of the judge, got {len(gold_labels)} and "
            f"{len(judge_on_gold)}."
        )
    if min(len(gold_labels), len(judge_on_unlabeled)) < 2:
        raise ValueError(
            "A corrected mean needs at least 2 labelled and 2 unlabelled items, got "
            f"{len(gold_labels)} and {len(judge_on_unlabeled)}."
        )
    if not 0 < alpha < 1:
        raise ValueError(f"An interval needs an alpha between 0 and 1, got {alpha}.")
    errors = [judged - gold for judged, gold in zip(judge_on_gold, gold_labels, strict=True)]
    if not all(map(isfinite, (*errors, *judge_on_unlabeled))):
        raise ValueError("A corrected mean needs finite labels; leave out items without one.")
    mean, variance = _moments(judge_on_unlabeled)
    bias, variance_of_errors = _moments(errors)
    estimate = mean - bias
    half = normal_quantile(1 - alpha / 2) * sqrt(variance / len(judge_on_unlabeled) + variance_of_errors / len(errors))
    return Corrected(estimate, (estimate - half, estimate + half))


def _moments(numbers: Sequence[float]) -> tuple[float, float]:
    """Return mean and population variance."""
    mean = fsum(numbers) / len(numbers)
    return mean, fsum((number - mean) ** 2 for number in numbers) / len(numbers)
