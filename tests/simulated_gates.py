"""How often gates are wrong and how often they decide, over data of known truth.

Shared by tests/stats (few cells) and benchmarks/coverage.py (all). 0/1 scores are enumerated, graded ones simulated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats
from simulated import SHAPES, Shape, decided_at, nested

from merilo.stats.gate import PairedDifferences
from merilo.stats.means import mean_interval
from merilo.stats.one_sided import mean_limits
from merilo.stats.paired import paired_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from merilo.stats.one_sided import OneSidedLimits

    Numbers = NDArray[np.float64]

UNIT, BOTH = (0.0, 1.0), (-1.0, 1.0)
STEPS = 2_000
"""Thresholds that are enumerated: 1/2,000, 2/2,000, ..."""
FAR = 2.5
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
    return _columns([mean_limits(each, UNIT) for each in values])


def old_zero_one_limits(size: int) -> tuple[Numbers, Numbers]:
    """Return what gates read before: one side of the two-sided interval."""
    values = [np.repeat([1.0, 0.0], [ones, size - ones]) for ones in range(size + 1)]
    ends = [mean_interval(each, UNIT, level=0.9).interval.ends or (-1.0, 2.0) for each in values]
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


GAINS = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4)


def drop_wrong(size: int, drop: float, limits: Callable[[Numbers], OneSidedLimits] | None = None) -> Wrong:
    """Return the worst case over several shares of samples that improve, if 0/1 scores drop by exactly `drop`.

    Enumerates the numbers of losses and gains among `size` pairs. `limits`: those of the differences; None: the gate's.
    """
    found = limits or (lambda differences: mean_limits(differences, BOTH))
    passing = _boundary(size, lambda losses, gains: (found(_differences(size, losses, gains)).lower or -1.0) > -drop)
    failing = _boundary(size, lambda gains, losses: (found(_differences(size, losses, gains)).upper or 1.0) < -drop)
    worst = [0.0, 0.0]
    for gain in GAINS:
        loss = gain + drop
        if gain + loss <= 1:
            worst[0] = max(worst[0], _tail(size, loss, gain, passing))
            worst[1] = max(worst[1], _tail(size, gain, loss, failing))
    return Wrong(*worst)


def drop_power(size: int, drop: float, rate: float, limits: Callable[[Numbers], OneSidedLimits] | None = None) -> float:
    """Return the probability that a drop of `drop` is excluded if gains and losses both have this rate."""
    found = limits or (lambda differences: mean_limits(differences, BOTH))
    passing = _boundary(size, lambda losses, gains: (found(_differences(size, losses, gains)).lower or -1.0) > -drop)
    return _tail(size, rate, rate, passing)


def old_drop_limits(differences: Numbers) -> OneSidedLimits:
    """Return what gates read before: one side of the paired interval, or Wilson's limits of losses and of gains."""
    from merilo.stats.intervals import wilson_ends
    from merilo.stats.one_sided import OneSidedLimits

    ends = paired_of(differences, None, BOTH, 0.9).interval.ends
    if ends is None:
        loss, gain = (
            wilson_ends(float(np.maximum(sign * differences, 0).mean()), len(differences), UNIT, level=0.9)[1]
            for sign in (-1, 1)
        )
        ends = (-loss, gain)
    return OneSidedLimits(*ends)


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


def graded(name: str, size: int, *, studies: int, seed: int) -> tuple[Cell, Cell]:
    """Return what gates do with graded scores, and what they did with the limits of before."""
    shape, source = GRADED[name], np.random.default_rng([seed, size])
    drawn = [shape.quantile(source.random(size)) for _ in range(studies)]
    new = _columns([mean_limits(each, UNIT) for each in drawn])
    ends = [mean_interval(each, UNIT, level=0.9).interval.ends or (-1.0, 2.0) for each in drawn]
    far = FAR * shape.deviation / np.sqrt(size)
    return _cell(new, shape.mean, far), _cell(_pairs(ends), shape.mean, far)


def graded_drop(name: str, size: int, *, studies: int, seed: int) -> tuple[Cell, Cell]:
    """Return the same for paired differences of equal means, whose normal scores correlate by a half."""
    shape, source = GRADED[name], np.random.default_rng([seed, size, 1])
    drawn = []
    for _ in range(studies):
        sides = shape.quantile(nested(source, size, 2, 0.5))
        drawn.append(sides[:, 0] - sides[:, 1])
    new = _columns([mean_limits(each, BOTH) for each in drawn])
    old = _columns([old_drop_limits(each) for each in drawn])
    far = FAR * float(np.std(np.concatenate(drawn))) / np.sqrt(size)
    return _cell(new, 0.0, far), _cell(old, 0.0, far)


def clustered(name: str, clusters: int, *, studies: int, seed: int, members: int = 10) -> tuple[Cell, Cell]:
    """Return the same for scores in clusters of ten, whose normal scores correlate by .3."""
    shape, source = {**SHAPES, **GRADED}[name], np.random.default_rng([seed, clusters, 2])
    codes = np.repeat(np.arange(clusters), members)
    drawn = [shape.quantile(nested(source, clusters, members, 0.3)).ravel() for _ in range(studies)]
    new = _columns([mean_limits(each, UNIT, codes=codes) for each in drawn])
    names = codes.tolist()
    ends = [mean_interval(each, UNIT, clusters=names, level=0.9).interval.ends or (-1.0, 2.0) for each in drawn]
    far = FAR * float(np.std([each.mean() for each in drawn]))
    return _cell(new, shape.mean, far), _cell(_pairs(ends), shape.mean, far)


def clustered_drop(name: str, clusters: int, *, studies: int, seed: int, members: int = 10) -> Wrong:
    """Return how often a gate is wrong about differences in clusters, if there is no difference."""
    shape, source = {**SHAPES, **GRADED}[name], np.random.default_rng([seed, clusters, 3])
    codes = np.repeat(np.arange(clusters), members)
    limits = []
    for _ in range(studies):
        sides = [shape.quantile(nested(source, clusters, members, 0.3)).ravel() for _ in range(2)]
        differences = sides[0] - sides[1]
        every = np.ones(len(differences), dtype=np.bool_)
        none = np.zeros(len(differences))
        pairing = PairedDifferences(differences, every, ~every, none, none, codes, BOTH, 0.95)
        limits.append(pairing.limits(differences, ~every))
    lower, upper = (np.array([getattr(each, side) for each in limits], dtype=float) for side in ("lower", "upper"))
    return Wrong(float((lower > 0).mean()), float((upper < 0).mean()))


CLUSTERED = ("mean of 5 grades", "Beta(.5,4.5)", "70 % ones", "92 % ones", "rate .8", "rate .95", "Beta(20,1)")


def stopped_early(studies: int, *, seed: int) -> tuple[int, int]:
    """Return how many gates that look after every score decide, and how many of them the scores so far do not claim."""
    source, decided, contradicted = np.random.default_rng([seed, 4]), 0, 0
    shapes = list(GRADED.values())
    for study in range(studies):
        shape = shapes[study % len(shapes)]
        values = shape.quantile(source.random(300))
        asked = float(np.clip(shape.mean + source.uniform(-0.2, 0.2), 0.01, 0.99))
        above, below = decided_at(values, asked)
        if min(above, below) <= len(values):
            limits = mean_limits(values[: min(above, below)], UNIT)
            claims = (limits.lower or 0) >= asked if above < below else (limits.upper or 1) < asked
            decided += 1
            contradicted += not claims
    return decided, contradicted


def _columns(found: list[OneSidedLimits]) -> tuple[Numbers, Numbers]:
    return np.array([each.lower for each in found], dtype=float), np.array([each.upper for each in found], dtype=float)


def _pairs(ends: list[tuple[float, float]]) -> tuple[Numbers, Numbers]:
    return np.array([low for low, _ in ends]), np.array([high for _, high in ends])


def _cell(limits: tuple[Numbers, Numbers], truth: float, far: float) -> Cell:
    lower, upper = limits
    near = 1e-9  # a limit that is the truth but for rounding is not wrong
    wrong = Wrong(float((lower > truth + near).mean()), float((upper < truth - near).mean()))
    return Cell(wrong, float((lower >= truth - far).mean()), float((upper < truth + far).mean()))
