"""Estimates from many labels of a judge, corrected by a few labels of people (design/correction.md)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import fsum, isfinite, sqrt
from typing import TYPE_CHECKING, NamedTuple

from merilo.stats.intervals import FEW_CLUSTERS, FEWEST_CLUSTERS, LEVEL, SEED, Interval, Method, check_level, t_quantile
from merilo.stats.means import Estimate, mean_interval, ratio_interval
from merilo.stats.sums import coded, numbers, same_length, summed

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    import numpy as np
    from numpy.typing import NDArray

FEWEST_LABELLED = 10
FEWEST_ERRORS = 3
ENOUGH_LABELLED = 20
FOLDS = 10


class Reported(StrEnum):
    """Which of the three estimates is to be reported."""

    CORRECTED = "corrected"
    HUMAN = "human only"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """What people and the judge said of the labelled items (contexts, statements or whole samples), one each."""

    sample: NDArray[np.int64]
    """The position of the item's sample among all that were judged."""
    human: NDArray[np.float64]
    judge: NDArray[np.float64]
    weight: NDArray[np.float64]
    """The item's share of its sample's mean over the probability with which it was drawn."""

    @classmethod
    def of(
        cls,
        sample: Sequence[int],
        human: Sequence[float],
        judge: Sequence[float],
        *,
        probability: Sequence[float] | None = None,
        items: Sequence[int] | None = None,
    ) -> Labels:
        """Labels of items, in any order; each item once.

        `probability`: with which the item was drawn, in (0, 1]; all alike where left out (then only its being equal
        counts). `items`: how many items the item's sample has, labelled or not; 1 (labels of whole samples) where
        left out. Raises ValueError for unequal lengths and values that cannot be.
        """
        import numpy as np

        places = np.asarray(sample, dtype=np.int64)
        people, judged = numbers(human, "labels of people"), numbers(judge, "labels of the judge")
        chances = np.ones(len(places)) if probability is None else numbers(probability, "probabilities")
        sizes = np.ones(len(places)) if items is None else numbers(items, "numbers of items")
        named = {"labels of people": people, "labels of the judge": judged, "probabilities": chances, "sizes": sizes}
        for what, each in named.items():
            same_length(len(places), len(each), what)
        if len(places) and (chances.min() <= 0 or chances.max() > 1):
            raise ValueError("The probability with which an item was drawn lies above 0 and is at most 1.")
        if len(places) and sizes.min() < 1:
            raise ValueError("A sample with a labelled item has at least one item.")
        return cls(places, people, judged, 1 / (chances * sizes))


@dataclass(frozen=True, slots=True)
class Correction:
    """A mean by the judge, by people, and by the judge corrected by people; and which to report."""

    raw: Estimate
    """The judge's mean over all samples; its interval knows nothing of the judge's errors."""
    human: Estimate
    corrected: Estimate
    tuning: float | None
    """λ: how far the judge is trusted, 0 (not) to 1; the mean over the folds. None where nothing is corrected."""
    labelled: int
    """Samples with a label."""
    reported: Reported
    reason: str
    """One sentence: why this one."""
    seed: int

    @property
    def estimate(self) -> Estimate | None:
        """The one to report; None for none."""
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
    """The mean that people would give, over all samples, from the judge's numbers and people's labels of a few.

    `judged`: the judge's number for each sample, in `span`: the mean over all its items. `labels`: of items drawn
    with known probabilities from these samples. `clusters`: the name of each sample's cluster. `seed`: which
    labelled units share a fold.

    Prediction-powered inference with power tuning, as a mean of one number for each sample: estimate = the weighted
    mean of human - λ · (judge - mean of judged). Where all of a sample's items are labelled with one probability
    these are the sample's own means. λ = cov(human, judge) / var(judge) among the labelled units, clipped to
    [0, 1], each unit with the λ of the other nine folds, so that it does not fit its own errors. Variance: squares
    of what each sample (or cluster) adds, its part of the judge's mean and of the correction together; L / (L - 2)
    and t(L - 2) for L labelled units, as mean and λ are fitted. The human-only estimate is `mean_interval` of the
    labelled samples' means, or the weighted ratio where their weights differ.

    Assumes that units were drawn independently of each other, with the probabilities given, and that people are
    right. The corrected one cannot be told from fewer than 10 labelled units (6 clusters), nor where people and
    judge differ in fewer than 3, or people say the same of all but fewer than 3: how often the judge errs, or what
    else people say, is then known from next to nothing. Sources:
    Angelopoulos et al., Science 382 (2023); Angelopoulos, Duchi & Zrnic, "PPI++" (2023), section 6 (there labelled
    samples are not among the judged ones, here they are: λ has no factor 1/(1 + n/N), and the variance has the
    covariance of both parts); Zrnic & Candès, "Cross-prediction", PNAS 121 (2024), for folds.

    Which to report: the corrected one with at least 20 labelled samples and an interval shorter than the human-only
    one; else the human-only one from 10; else nothing.
    """
    check_level(level)
    numbers_of_judge = numbers(judged, "judge's numbers")
    codes = None if clusters is None else coded(clusters)
    if codes is not None:
        same_length(len(numbers_of_judge), len(codes), "clusters")
    if len(labels.sample) and not 0 <= labels.sample.min() <= labels.sample.max() < len(numbers_of_judge):
        raise ValueError(f"Labels name samples by position among {len(numbers_of_judge)}; some lie outside.")
    names = None if codes is None else codes.tolist()
    raw = mean_interval(numbers_of_judge, span, clusters=names, level=level, seed=seed)
    design = _Design.of(numbers_of_judge, labels, codes)
    human = _human(design, span, level, seed)
    corrected, tuning = _corrected(design, span, level, seed)
    reported, reason = _choice(human, corrected, len(design.places))
    return Correction(raw, human, corrected, tuning, len(design.places), reported, reason, seed)


@dataclass(frozen=True, slots=True, eq=False)
class _Design:
    """The labelled samples' weighted sums, and how they lie among all samples."""

    judged: NDArray[np.float64]
    codes: NDArray[np.int64] | None
    places: NDArray[np.int64]
    """Positions of the labelled samples, ascending; the sums below are in the same order."""
    weights: NDArray[np.float64]
    people: NDArray[np.float64]
    judge: NDArray[np.float64]

    @classmethod
    def of(cls, judged: NDArray[np.float64], labels: Labels, codes: NDArray[np.int64] | None) -> _Design:
        import numpy as np

        places, own = np.unique(labels.sample, return_inverse=True)
        sums = [
            summed(own, labels.weight * each, len(places)) for each in (np.ones(len(own)), labels.human, labels.judge)
        ]
        return cls(judged, codes, places, sums[0], sums[1], sums[2])

    @property
    def units(self) -> NDArray[np.int64]:
        """The unit of each labelled sample, numbered from 0: itself, or its cluster."""
        import numpy as np

        names = self.places if self.codes is None else self.codes[self.places]
        return np.unique(names, return_inverse=True)[1].astype(np.int64)

    def by_unit(self, parts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums over the units of all samples, from one number for each sample."""
        return parts if self.codes is None else summed(self.codes, parts)


def _human(design: _Design, span: tuple[float, float], level: float, seed: int) -> Estimate:
    names = None if design.codes is None else design.codes[design.places].tolist()
    return ratio_interval(design.people, design.weights, span, clusters=names, level=level, seed=seed)


def _corrected(design: _Design, span: tuple[float, float], level: float, seed: int) -> tuple[Estimate, float | None]:
    import numpy as np

    units = design.units
    count = int(units.max()) + 1 if len(units) else 0
    total, mean = design.weights.sum(), float(design.judged.mean()) if len(design.judged) else 0.0
    clusters = None if design.codes is None else count
    gaps = summed(units, design.people - design.judge, count)
    slack = 1e-12 * max(1.0, float(total))
    said = summed(units, design.people, count) / summed(units, design.weights, count)
    alike = int(np.unique(said.round(9), return_counts=True)[1].max()) if count else 0
    why = _too_few(count, int((abs(gaps) > slack).sum()), count - alike, clustered=design.codes is not None)
    if why:
        return Estimate(None, Interval(None, why, level=level), len(design.places), clusters), None
    centred = design.judge - design.weights * mean
    tunings = _tunings(design, units, count, seed)[units]
    tuning = float(design.weights @ tunings / total)
    value = float((design.people - tunings * centred).sum() / total)
    parts = tuning * (design.judged - mean) / len(design.judged)
    parts[design.places] += (design.people - tunings * centred - design.weights * value) / total
    error = sqrt(count / (count - 2) * float((design.by_unit(parts) ** 2).sum()))
    half = t_quantile(count - 2, level) * error  # two numbers are fitted: the mean and λ
    ends = (max(span[0], value - half), min(span[1], value + half))
    few = clusters is not None and count < FEW_CLUSTERS
    remark = f"only {count} labelled clusters: the interval is less sure than its level says" if few else ""
    value = min(max(value, span[0]), span[1])
    interval = Interval(ends, remark=remark, method=Method.CORRECTED, level=level, seed=seed)
    return Estimate(value, interval, len(design.places), clusters, error), tuning


def _too_few(count: int, unlike: int, varied: int, *, clustered: bool) -> str:
    least, what = (FEWEST_CLUSTERS, "clusters") if clustered else (FEWEST_LABELLED, "samples")
    if count < least:
        return f"cannot tell from {count} labelled {what}, at least {least} needed"
    if unlike < FEWEST_ERRORS:
        return (
            f"cannot tell: people and judge differ in {unlike} of {count} labelled {what}, at least "
            f"{FEWEST_ERRORS} needed to know how far it is off"
        )
    if varied < FEWEST_ERRORS:
        return (
            f"cannot tell: people said the same of all but {varied} of {count} labelled {what}, so next to nothing is "
            "known of the others"
        )
    return ""


def _tunings(design: _Design, units: NDArray[np.int64], count: int, seed: int) -> NDArray[np.float64]:
    """λ for each labelled unit, from the units of the other folds."""
    import numpy as np

    keys = np.atleast_1d(np.random.PCG64(seed).random_raw(count))
    folds = np.empty(count, dtype=np.int64)
    folds[np.argsort(keys, kind="stable")] = np.arange(count) % min(FOLDS, count)
    found = np.empty(count)
    for fold in range(min(FOLDS, count)):
        rest = folds[units] != fold
        found[folds == fold] = _tuning(design, units, rest)
    return found


def _tuning(design: _Design, units: NDArray[np.int64], kept: NDArray[np.bool_]) -> float:
    """cov(human, judge) / var(judge) of the kept units' sums, in [0, 1]; 0 where the judge says one thing."""
    weights, people, judge = design.weights[kept], design.people[kept], design.judge[kept]
    left, right = (summed(units[kept], each - weights * each.sum() / weights.sum()) for each in (people, judge))
    variance = float(right @ right)
    return min(max(float(left @ right) / variance, 0.0), 1.0) if variance > 1e-24 else 0.0


def _choice(human: Estimate, corrected: Estimate, labelled: int) -> tuple[Reported, str]:
    if labelled < FEWEST_LABELLED or human.interval.ends is None:
        why = human.interval.note or f"{labelled} samples are labelled"
        return Reported.NOTHING, f"Nothing is reported: {why}; at least {FEWEST_LABELLED} labelled samples are needed."
    if labelled < ENOUGH_LABELLED:
        why = f"{labelled} samples are labelled, and a correction needs {ENOUGH_LABELLED}"
        return Reported.HUMAN, f"The human-only estimate is reported: {why}."
    if corrected.interval.ends is None:
        why = corrected.interval.note.removeprefix("cannot tell: ")
        return Reported.HUMAN, f"The human-only estimate is reported: {why}."
    widths = [each.interval.ends[1] - each.interval.ends[0] for each in (corrected, human) if each.interval.ends]
    said = f"its interval is {widths[0]:.3g} wide, that of the labels alone {widths[1]:.3g}"
    if widths[0] < widths[1]:
        return Reported.CORRECTED, f"The corrected estimate is reported: {said}."
    return Reported.HUMAN, f"The human-only estimate is reported, for the judge adds nothing to it: {said}."


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
    """The mean label that people would give, from a judge's labels and its errors, and a 1 − alpha interval.

    `gold_labels` and `judge_on_gold`: one each for the n items that people labelled too, in the same order.
    `judge_on_unlabeled`: one for each of N other items. Estimate: mean(judge on unlabelled) − mean(judge − gold);
    half width: z · sqrt(var(judge on unlabelled)/N + var(judge − gold)/n), z the normal quantile of 1 − alpha/2.

    Assumes that both sets of items were drawn alike and that both means are near normal: with few labelled items
    the interval is too narrow, and it has no width where neither series varies. It is not clipped to the range
    of the labels. Variances have the divisors N and n, as ARES computes them. Source: Angelopoulos et al.,
    "Prediction-powered inference", Science 382 (2023), algorithm 1; ARES, git c7c9018.

    Raises ValueError for fewer than two items in either set, lengths that differ, numbers that are not finite,
    and an alpha outside (0, 1).
    """
    if len(gold_labels) != len(judge_on_gold):
        raise ValueError(
            f"Each labelled item needs a label of people and one of the judge, got {len(gold_labels)} and "
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
    from scipy.special import ndtri

    mean, variance = _moments(judge_on_unlabeled)
    bias, variance_of_errors = _moments(errors)
    estimate = mean - bias
    half = float(ndtri(1 - alpha / 2)) * sqrt(variance / len(judge_on_unlabeled) + variance_of_errors / len(errors))
    return Corrected(estimate, (estimate - half, estimate + half))


def _moments(numbers: Sequence[float]) -> tuple[float, float]:
    """Mean and population variance."""
    mean = fsum(numbers) / len(numbers)
    return mean, fsum((number - mean) ** 2 for number in numbers) / len(numbers)
