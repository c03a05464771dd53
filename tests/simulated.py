"""Made-up studies whose truth is known: how often do intervals cover it, and how often do comparisons cry wolf?

Shared by tests/stats (some hundred studies a cell) and benchmarks/coverage.py (2,000).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betaincinv, ndtr

from merilo.stats.column import Column
from merilo.stats.compare import Conclusion, compare
from merilo.stats.correction import Labels, correct
from merilo.stats.means import mean_interval, paired_test

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from merilo.stats.means import MeanEstimate

    Numbers = NDArray[np.float64]

UNIT = (0.0, 1.0)


@dataclass(frozen=True)
class Shape:
    """A distribution on [0, 1], by its quantile function."""

    quantile: Callable[[Numbers], Numbers]
    mean: float
    deviation: float


def _beta(first: float, second: float) -> Shape:
    total = first + second
    deviation = np.sqrt(first * second / (total**2 * (total + 1)))
    return Shape(lambda u: betaincinv(first, second, u), first / total, float(deviation))


def _ceiling(share: float) -> Shape:
    """So many ones; the rest is spread evenly."""
    rest = 1 - share
    mean = share + rest / 2
    deviation = np.sqrt(share + rest / 3 - mean**2)
    return Shape(lambda u: np.where(u > rest, 1.0, u / rest), mean, float(deviation))


def _floor(share: float) -> Shape:
    other = _ceiling(share)
    return Shape(lambda u: 1 - other.quantile(1 - u), 1 - other.mean, other.deviation)


def _rate(share: float) -> Shape:
    deviation = float(np.sqrt(share * (1 - share)))
    return Shape(lambda u: (u > 1 - share).astype(float), share, deviation)


def _grades() -> Shape:
    """The mean of five grades of 0, 1/2 or 1."""
    single = np.array([0.2, 0.3, 0.5])
    sums = single
    for _ in range(4):
        sums = np.convolve(sums, single)
    values = np.arange(11) / 10
    mean = float(values @ sums)
    deviation = float(np.sqrt((values - mean) ** 2 @ sums))
    return Shape(lambda u: values[np.searchsorted(np.cumsum(sums)[:-1], u)], mean, deviation)


SHAPES = {
    "Beta(2,2)": _beta(2, 2),
    "mean of 5 grades": _grades(),
    "Beta(.5,4.5)": _beta(0.5, 4.5),
    "70 % ones": _ceiling(0.7),
    "92 % ones": _ceiling(0.92),
    "90 % zeros": _floor(0.9),
    "rate .5": _rate(0.5),
    "rate .8": _rate(0.8),
    "rate .95": _rate(0.95),
}
"""The shapes of scores that are met: even, peaked, skewed, at a ceiling or a floor, yes or no."""


@dataclass(frozen=True)
class Coverage:
    """What the intervals of many studies did."""

    covered: float
    """Share of studies in which an interval was told and covers the truth."""
    told: float
    width: float
    """Mean width over that of the normal interval with the true variance."""
    off: float
    """Mean number of units (samples or clusters) off the commoner end of the range."""


def hit(estimate: MeanEstimate, truth: float) -> bool:
    """Whether there is an interval, and it covers the truth."""
    ends = estimate.interval.ends
    return ends is not None and ends[0] <= truth <= ends[1]


def coverage(name: str, size: int, *, studies: int, seed: int) -> Coverage:
    """Of the mean over so many samples that stand alone."""
    shape, source = SHAPES[name], np.random.default_rng([seed, size])
    values = [shape.quantile(source.random(size)) for _ in range(studies)]
    found = [mean_interval(each, UNIT) for each in values]
    return _coverage(found, values, shape.mean, shape.deviation / np.sqrt(size))


def cluster_coverage(name: str, clusters: int, *, studies: int, seed: int, members: int = 10) -> Coverage:
    """Of the mean over clusters of ten with a correlation of .3 between the members' normal scores."""
    shape, source = SHAPES[name], np.random.default_rng([seed, clusters, 1])
    names = np.repeat(np.arange(clusters), members)
    values = [shape.quantile(nested(source, clusters, members, 0.3)) for _ in range(studies)]
    found = [mean_interval(each.ravel(), UNIT, clusters=names.tolist()) for each in values]
    means = [each.mean(axis=1) for each in values]
    return _coverage(found, means, shape.mean, float(np.std([each.mean() for each in means])))


UNEQUAL = {
    "20 clusters of 2 to 40": (20, 0),
    "8 clusters of 2 to 40": (8, 0),
    "20 clusters, one with half of the samples": (20, 1),
}
"""Clusters whose sizes differ: how many, and how many of them have as many samples as all others together."""


def unequal_coverage(name: str, clusters: str, *, studies: int, seed: int) -> Coverage:
    """Of the mean over clusters of 2 to 40 samples, with a correlation of .3 between the members' normal scores."""
    count, large = UNEQUAL[clusters]
    shape, source = SHAPES[name], np.random.default_rng([seed, count, large, 4])
    values, names = list["Numbers"](), list[list[int]]()
    for _ in range(studies):
        sizes = source.integers(2, 41, count)
        sizes[:large] = sizes[large:].sum()
        codes = np.repeat(np.arange(count), sizes)
        scores = np.sqrt(0.3) * source.normal(size=count)[codes] + np.sqrt(0.7) * source.normal(size=len(codes))
        values.append(shape.quantile(ndtr(scores)))
        names.append(codes.tolist())
    found = [mean_interval(each, UNIT, clusters=own) for each, own in zip(values, names, strict=True)]
    error = float(np.std([each.mean() for each in values]))
    return _coverage(found, values, shape.mean, error)


def nested(source: np.random.Generator, groups: int, members: int, correlation: float) -> Numbers:
    """Uniform numbers, groups × members, whose normal scores correlate within a group."""
    shared, own = source.normal(size=(groups, 1)), source.normal(size=(groups, members))
    return ndtr(np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own)


def _coverage(found: list[MeanEstimate], units: list[Numbers], truth: float, error: float) -> Coverage:
    told = [each.interval.ends for each in found if each.interval.ends is not None]
    width = np.mean([high - low for low, high in told]) / (2 * 1.959963984540054 * error) if told else np.inf
    off = float(np.mean([len(each) - max((each == 0).sum(), (each == 1).sum()) for each in units]))
    return Coverage(sum(hit(each, truth) for each in found) / len(found), len(told) / len(found), float(width), off)


def false_alarms(size: int, *, studies: int, seed: int, members: int = 1) -> float:
    """The share of comparisons of two runs without any difference in which one of 8 metrics shows one.

    The metrics correlate by .5; a sample is easier or harder for both runs alike; with `members` above 1, samples of a
    cluster also move together within a run.
    """
    source, alarms = np.random.default_rng([seed, size, members]), 0
    names = list(SHAPES)[:8]
    clusters = np.repeat(np.arange(size // members), members).tolist() if members > 1 else None
    for _ in range(studies):
        ease = source.normal(size=(1, size, 1)) * 0.6
        run = np.repeat(source.normal(size=(2, size // members, 1)), members, axis=1) * 0.4
        talent = source.normal(size=(2, size, 1)) * np.sqrt(0.24)
        own = source.normal(size=(2, size, 8)) * np.sqrt(0.24)
        uniform = ndtr(ease + run + talent + own)
        sides = [
            [
                Column.of(SHAPES[name].quantile(uniform[side, :, place]).tolist(), UNIT)
                for place, name in enumerate(names)
            ]
            for side in (0, 1)
        ]
        found = compare({name: (sides[0][k], sides[1][k]) for k, name in enumerate(names)}, clusters=clusters)
        higher = (Conclusion.FIRST_HIGHER, Conclusion.SECOND_HIGHER)
        alarms += any(each.reading in higher for each in found.values())
    return alarms / studies


def skewed_alarms(size: int, *, studies: int, seed: int) -> float:
    """The share of false alarms where differences have mean 0 and are skewed: most a small loss, few a great gain."""
    source, alarms = np.random.default_rng([seed, size, 2]), 0
    for _ in range(studies):
        differences = np.minimum(source.gamma(0.5, 0.1, size) - 0.05, 1.0)
        p = paired_test(differences, (-1.0, 1.0)).p
        alarms += p is not None and p <= 0.05
    return alarms / studies


@dataclass(frozen=True)
class Corrected:
    """How often each estimate's interval covers the truth."""

    raw: float
    human: float
    corrected: float
    reported: float
    """Of the estimate to report, if there is one."""
    by_context: float
    """The same correction with contexts for units, as if each stood alone."""
    narrower: float
    """Mean width of the corrected interval over that of the human-only one."""


def corrected(labelled: int, *, studies: int, seed: int, contexts: int = 5, samples: int = 1_000) -> Corrected:
    """Contexts within samples (correlation .4), a judge that says yes too often in one half of the samples."""
    source, rows = np.random.default_rng([seed, labelled, contexts]), list[tuple[float, ...]]()
    for _ in range(studies):
        truth = (source.random((samples, contexts)) < source.beta(0.9, 0.6, (samples, 1))).astype(float)
        lenient = np.where(source.random(samples) < 0.5, 0.5, 0.05)[:, None]
        says = (source.random((samples, contexts)) < np.where(truth == 1, 0.95, lenient)).astype(float)
        chosen = source.choice(samples, labelled, replace=False)
        places = np.repeat(chosen, contexts)
        people, judge = truth[chosen].ravel(), says[chosen].ravel()
        whole = Labels.of(places.tolist(), people.tolist(), judge.tolist())
        found = correct(says.mean(axis=1), whole, UNIT)
        single = (chosen[:, None] * contexts + np.arange(contexts)).ravel()
        naive = correct(says.ravel(), Labels.of(single.tolist(), people.tolist(), judge.tolist()), UNIT)
        ends, alone = found.corrected.interval.ends, found.human.interval.ends
        ratio = np.nan if ends is None or alone is None else (ends[1] - ends[0]) / (alone[1] - alone[0])
        chosen_one = found.estimate
        rows.append(
            (
                hit(found.raw, 0.6),
                hit(found.human, 0.6),
                np.nan if ends is None else hit(found.corrected, 0.6),
                np.nan if chosen_one is None else hit(chosen_one, 0.6),
                hit(naive.corrected, 0.6),
                ratio,
            )
        )
    return Corrected(*(float(each) for each in np.nanmean(np.array(rows, dtype=float), axis=0)))
