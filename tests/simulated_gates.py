"""How often gates are wrong and how often they decide, over data of known truth.

Shared by tests/stats (few cells) and benchmarks/coverage.py (all). 0/1 scores are enumerated, graded ones simulated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats
from simulated import SHAPES, Shape, nested

from merilo.stats.intervals import wilson_ends
from merilo.stats.means import mean_interval, own_ends, paired_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from merilo.stats.intervals import Interval

    Numbers = NDArray[np.float64]

UNIT, BOTH = (0.0, 1.0), (-1.0, 1.0)
STEPS = 2_000
"""Thresholds that are enumerated: 1/2,000, 2/2,000, ..."""
FAR = 2.8
"""Power is measured this many standard errors from the truth."""


@dataclass(frozen=True)
class Wrong:
    """The largest probability of a wrong verdict."""

    passes: float
    """It passes although the mean is just below what was asked for."""
    fails: float
    """It fails although the mean is what was asked for."""


# -- 0/1 scores, enumerated -------------------------------------------------------------------------------


@cache
def zero_one_limits(size: int) -> tuple[Numbers, Numbers]:
    """Return the lower and upper limits for 0, 1, ... `size` ones."""
    values = [np.repeat([1.0, 0.0], [ones, size - ones]) for ones in range(size + 1)]
    return _columns([mean_interval(each, UNIT).interval for each in values])


def wilson_limits(size: int) -> tuple[Numbers, Numbers]:
    """Return Wilson's limits for the same numbers."""
    ends = [wilson_ends(ones / size, size, UNIT) for ones in range(size + 1)]
    return np.array([low for low, _ in ends]), np.array([high for _, high in ends])


def zero_one_wrong(limits: tuple[Numbers, Numbers]) -> Wrong:
    """Return the worst case over all thresholds, by enumeration of the number of ones."""
    size = len(limits[0]) - 1
    rates = np.arange(1, STEPS) / STEPS
    needed = np.searchsorted(np.maximum.accumulate(limits[0]), rates)  # so many ones pass
    allowed = np.searchsorted(np.maximum.accumulate(limits[1]), rates) - 1  # so many fail
    return Wrong(
        float(stats.binom.sf(needed - 1, size, rates).max()), float(stats.binom.cdf(allowed, size, rates).max())
    )


def zero_one_power(limits: tuple[Numbers, Numbers], rate: float, asked: float) -> float:
    """Return the probability that a gate passes, if the true rate is above what was asked for."""
    size = len(limits[0]) - 1
    return float(stats.binom.sf(np.searchsorted(limits[0], asked) - 1, size, rate))


def zero_one_coverage(limits: tuple[Numbers, Numbers]) -> float:
    """Return the lowest coverage over all rates, by enumeration."""
    size = len(limits[0]) - 1
    rates = np.arange(1, STEPS)[:, None] / STEPS
    inside = (limits[0] <= rates + 1e-12) & (limits[1] >= rates - 1e-12)
    return float((inside * stats.binom.pmf(np.arange(size + 1), size, rates)).sum(axis=1).min())


GAINS = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4)


def drop_wrong(size: int, drop: float) -> Wrong:
    """Return the worst case over several shares of samples that improve, for 0/1 scores.

    It passes although scores drop by exactly `drop`, or fails although they do not drop. Enumerates the numbers of
    losses and gains among `size` pairs.
    """
    passing = _boundary(size, lambda losses, gains: _ends(_differences(size, losses, gains))[0] >= -drop)
    failing = _boundary(size, lambda gains, losses: _ends(_differences(size, losses, gains))[1] < 0)
    worst = [0.0, 0.0]
    for gain in GAINS:
        if 2 * gain + drop <= 1:
            worst[0] = max(worst[0], _tail(size, gain + drop, gain, passing))
        worst[1] = max(worst[1], _tail(size, gain, gain, failing))
    return Wrong(*worst)


def drop_power(size: int, drop: float, rate: float) -> float:
    """Return the probability that a drop of `drop` is excluded if gains and losses both have this rate."""
    passing = _boundary(size, lambda losses, gains: _ends(_differences(size, losses, gains))[0] >= -drop)
    return _tail(size, rate, rate, passing)


def _ends(differences: Numbers) -> tuple[float, float]:
    return paired_of(differences, None, BOTH, 0.95).interval.ends or BOTH


def _differences(size: int, losses: int, gains: int) -> Numbers:
    return np.repeat([-1.0, 1.0, 0.0], [losses, gains, size - losses - gains])


def _boundary(size: int, decides: Callable[[int, int], bool]) -> list[int]:
    """Return, for 0, 1, ... of the first kind, the fewest of the second that decide; they rise with the first."""
    found: list[int] = []
    second = 0
    for first in range(size + 1):
        while first + second <= size and not decides(first, second):
            second += 1
        if first + second > size:
            break
        found.append(second)
    return found


def _tail(size: int, first: float, second: float, boundary: list[int]) -> float:
    """Return the probability that there are at least as many of the second kind as the boundary says."""
    counts = np.arange(len(boundary))
    chance = min(1.0, second / (1 - first)) if first < 1 else 0.0
    tails = stats.binom.sf(np.array(boundary) - 1, size - counts, chance)
    return float(stats.binom.pmf(counts, size, first) @ tails) if boundary else 0.0


# -- graded scores, simulated -----------------------------------------------------------------------------


def _mixed(parts: tuple[tuple[float, float], ...]) -> Shape:
    """Return the shape of values with probabilities."""
    values, weights = (np.array(each) for each in zip(*sorted(parts), strict=True))
    edges = np.cumsum(weights)[:-1]
    mean = float(values @ weights)
    return Shape(lambda u: values[np.searchsorted(edges, u)], mean, float(np.sqrt((values - mean) ** 2 @ weights)))


def _beta(first: float, second: float) -> Shape:
    law = stats.beta(first, second)
    return Shape(law.ppf, float(law.mean()), float(law.std()))


def _zeros_and(share: float, other: Shape) -> Shape:
    """Return the shape with this share of zeros."""
    mean = (1 - share) * other.mean
    square = (1 - share) * (other.deviation**2 + other.mean**2)
    return Shape(
        lambda u: np.where(u < share, 0.0, other.quantile(np.maximum(u - share, 0) / (1 - share))),
        mean,
        float(np.sqrt(square - mean**2)),
    )


GRADED = {
    "Beta(20,1)": _beta(20, 1),
    "Beta(4,2)": _beta(4, 2),
    "0, 1/2 or 1": _mixed(((0.0, 0.05), (0.5, 0.15), (1.0, 0.8))),
    "0, 1/2 or 1, ceiling": _mixed(((0.0, 0.01), (0.5, 0.02), (1.0, 0.97))),
    "0.8 or 1, some 0": _mixed(((0.0, 0.012), (0.8, 0.013), (1.0, 0.975))),
    "mean of 5 items": _mixed(tuple((k / 5, float(stats.binom.pmf(k, 5, 0.9))) for k in range(6))),
    "3 % zeros, else near 1": _zeros_and(0.03, _beta(40, 2)),
    "92 % ones": SHAPES["92 % ones"],
    "90 % zeros": SHAPES["90 % zeros"],
}
"""Near a ceiling, even, of three values, of few items, with many ones or zeros."""


@dataclass(frozen=True)
class Cell:
    """What the limits of many studies did."""

    wrong: Wrong
    passes: float
    """How often it passes if the mean is `FAR` standard errors above what was asked for."""
    fails: float
    """How often it fails if it is as far below."""
    width: float
    """Mean width over that of Student's t."""


def graded(name: str, size: int, *, studies: int, seed: int) -> Cell:
    """Return what gates do with graded scores."""
    shape, source = GRADED[name], np.random.default_rng([seed, size])
    drawn = [shape.quantile(source.random(size)) for _ in range(studies)]
    return _cell([mean_interval(each, UNIT).interval for each in drawn], drawn, shape.mean)


@dataclass(frozen=True)
class Change:
    """The scores of a build and of its base, one pair per sample, and the mean difference."""

    draw: Callable[[np.random.Generator, int], tuple[Numbers, Numbers]]
    mean: float


def _exchanged(name: str) -> Change:
    """Return two runs with equal means, whose normal scores correlate by a half."""

    def draw(source: np.random.Generator, size: int) -> tuple[Numbers, Numbers]:
        sides = GRADED[name].quantile(nested(source, size, 2, 0.5))
        return sides[:, 0], sides[:, 1]

    return Change(draw, 0.0)


def _broken(share: float, gain: float, noise: float) -> Change:
    """Return a build that gains a little on most samples, and scores 0 on a share of them."""

    def draw(source: np.random.Generator, size: int) -> tuple[Numbers, Numbers]:
        base = source.choice([0.6, 0.8, 1.0], size)
        after = np.clip(base + gain + source.normal(0, noise, size), 0, 1)
        return np.where(source.random(size) < share, 0.0, after), base

    return _known(draw)


def _perfect_broken(share: float, perfect: float, other: float) -> Change:
    """Return a build that gains a little, and scores 0 on this share of samples: only perfect answers break."""

    def draw(source: np.random.Generator, size: int) -> tuple[Numbers, Numbers]:
        base = np.where(source.random(size) < perfect, 1.0, other + source.normal(0, 0.02, size))
        breaks = (base == 1) & (source.random(size) < share / perfect)
        return np.where(breaks, 0.0, np.clip(base + share, 0, 1)), base

    return _known(draw)


def _known(draw: Callable[[np.random.Generator, int], tuple[Numbers, Numbers]]) -> Change:
    return Change(draw, float(np.subtract(*draw(np.random.default_rng(0), 2_000_000)).mean()))


def _skewed() -> Change:
    """Return two runs with equal means: most samples lose a little, few gain much."""
    return Change(lambda source, size: (source.gamma(0.5, 0.1, size), np.full(size, 0.05)), 0.0)


CHANGES = {
    **{f"equal, {name}": _exchanged(name) for name in GRADED},
    "3 % of answers break": _broken(0.03, 0.0, 0.03),
    "5 % break, others gain 0.02": _broken(0.05, 0.02, 0.05),
    "10 % break, others gain 0.05": _broken(0.1, 0.05, 0.1),
    "9 % break, perfect ones only": _perfect_broken(0.09, 0.3, 0.2),
    "2.8 % break, few perfect ones": _perfect_broken(0.028, 0.05, 0.4),
    "skewed": _skewed(),
}


def graded_drop(name: str, size: int, *, studies: int, seed: int) -> Cell:
    """Return what gates do if exactly the allowed drop is true."""
    change, source = CHANGES[name], np.random.default_rng([seed, size, 1])
    drawn = [tuple(np.clip(side, 0, 1) for side in change.draw(source, size)) for _ in range(studies)]
    found = [paired_of(one - two, None, BOTH, 0.95, own_ends(one, two, UNIT)).interval for one, two in drawn]
    return _cell(found, [one - two for one, two in drawn], change.mean)


def clustered(name: str, clusters: int, *, studies: int, seed: int, members: int = 10) -> Cell:
    """Return the same for scores in clusters of ten, whose normal scores correlate by .3."""
    shape, source = {**SHAPES, **GRADED}[name], np.random.default_rng([seed, clusters, 2])
    codes = np.repeat(np.arange(clusters), members).tolist()
    drawn = [shape.quantile(nested(source, clusters, members, 0.3)) for _ in range(studies)]
    found = [mean_interval(each.ravel(), UNIT, clusters=codes).interval for each in drawn]
    return _cell(found, [each.mean(axis=1) for each in drawn], shape.mean)


def clustered_drop(name: str, clusters: int, *, studies: int, seed: int, members: int = 10) -> Cell:
    """Return how often a gate is wrong about differences in clusters, if there is no difference."""
    shape, source = {**SHAPES, **GRADED}[name], np.random.default_rng([seed, clusters, 3])
    codes = np.repeat(np.arange(clusters), members)
    drawn = []
    for _ in range(studies):
        one, other = (shape.quantile(nested(source, clusters, members, 0.3)) for _ in range(2))
        drawn.append(one - other)
    found = [paired_of(each.ravel(), codes, BOTH, 0.95).interval for each in drawn]
    return _cell(found, [each.mean(axis=1) for each in drawn], 0.0)


def broken_clusters(clusters: int, share: float, *, studies: int, seed: int, members: int = 20) -> Wrong:
    """Return the same for a build that breaks all pairs of this share of clusters, and gains as much on the others."""
    source, codes = np.random.default_rng([seed, clusters, 4]), np.repeat(np.arange(clusters), members)
    size, drawn = (clusters, members), []
    for _ in range(studies):
        broken = source.random((clusters, 1)) < share
        gain = share * 0.75 / (1 - share) + source.normal(0, 0.02, size)
        drawn.append(np.where(broken, -source.uniform(0.6, 0.9, size), gain))
    found = [paired_of(each.ravel(), codes, BOTH, 0.95).interval for each in drawn]
    return _cell(found, [each.mean(axis=1) for each in drawn], 0.0).wrong


CLUSTERED = ("mean of 5 grades", "Beta(.5,4.5)", "70 % ones", "92 % ones", "rate .8", "rate .95", "Beta(20,1)")


def _columns(found: list[Interval]) -> tuple[Numbers, Numbers]:
    ends = np.array([each.ends or BOTH for each in found])
    return ends[:, 0], ends[:, 1]


def _cell(found: list[Interval], units: list[Numbers], truth: float) -> Cell:
    """Return the errors at the truth, and the power far from it; `units`: the independent units of each study."""
    lower, upper = _columns(found)
    near = 1e-9  # a limit that is the truth but for rounding is not wrong
    wrong = Wrong(float((lower > truth + near).mean()), float((upper < truth - near).mean()))
    errors = np.array([each.std(ddof=1) / np.sqrt(len(each)) for each in units])
    far = FAR * float(np.std([each.mean() for each in units]))
    size = len(units[0])
    width = float((upper - lower).mean() / (2 * stats.t.ppf(0.975, size - 1) * errors.mean()))
    return Cell(wrong, float((lower >= truth - far).mean()), float((upper < truth + far).mean()), width)
