"""Intervals that stay valid after every look at the data: the hedged-capital confidence sequence, and gates that stop
early.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, log, log1p, sqrt
from typing import TYPE_CHECKING

from merilo.stats.gate import GateVerdict
from merilo.stats.intervals import LEVEL, SEED, Interval, Method, check_level
from merilo.stats.one_sided import mean_limits
from merilo.stats.sums import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

TRUNCATION = 0.5
"""Largest fraction of the capital that a bet may risk."""
GRID = 400
_HALVINGS = 50
_WIDTHS = 20
"""Simulated runs whose last interval is computed; its width hardly varies between runs."""


@dataclass(frozen=True, slots=True, eq=False)
class ConfidenceSequence:
    """An interval after each unit; all of them together cover the mean with probability `level`."""

    low: NDArray[np.float64]
    """Lower limits after 1, 2, ... n units; never falling."""
    high: NDArray[np.float64]
    """Upper limits; never rising."""
    level: float


@dataclass(frozen=True, slots=True)
class SequentialDecision:
    """The verdict of a gate that tests after every unit."""

    verdict: GateVerdict
    units: int
    """Units used until the verdict; all of them if there is none."""
    interval: Interval
    """Interval of the mean after these units: two one-sided limits, each with the gate's level."""


class StreamingGate:
    """`sequential_gate` for values that arrive one at a time: the same bets, in constant memory.

    A value may be known as an interval only (an outcome that failed): the side that can pass then uses its lower end,
    the side that can fail its upper end. A verdict never changes.
    """

    def __init__(self, at_least: float, span: tuple[float, float], *, level: float = LEVEL) -> None:
        """Start without values. `span`: finite; `at_least` may be outside. Raises ValueError."""
        check_level(level)
        self._low, self._width = span[0], _width(span)
        mean = (at_least - self._low) / self._width
        self._above, self._below = _Side(mean, 1 - level), _Side(1 - mean, 1 - level)
        self.verdict = GateVerdict.PASS if mean <= 0 else GateVerdict.FAIL if mean > 1 else GateVerdict.CANNOT_TELL
        self.units = 0
        """Values used until the verdict; all so far if there is none."""

    def add(self, least: float, most: float) -> None:
        """Add one value between `least` and `most`, which are equal if it is known."""
        if self.verdict is not GateVerdict.CANNOT_TELL:
            return
        self.units += 1
        above = self._above.add(min(1.0, max(0.0, (least - self._low) / self._width)))
        below = self._below.add(1 - min(1.0, max(0.0, (most - self._low) / self._width)))
        if above != below:
            self.verdict = GateVerdict.PASS if above else GateVerdict.FAIL


class _Side:
    """The running form of `_crossing`."""

    def __init__(self, mean: float, tail: float) -> None:
        self._mean, self._tail = mean, tail
        self._count = 0
        # The prior of the method: one made-up observation with mean 1/2 and variance 1/4.
        self._sum, self._spread, self._variance = 0.5, 0.25, 0.25
        self._log = 0.0

    def add(self, value: float) -> bool:
        """Return True if the mean is shown to be above `mean` with this value."""
        self._count += 1
        bet = sqrt(2 * log(1 / self._tail) / (self._variance * self._count * log1p(self._count)))
        if self._mean > 0:
            # Limits the loss on one value of 0 to half of the capital: capital that is lost never recovers.
            bet = min(bet, TRUNCATION / self._mean)
        self._log += log1p(bet * (value - self._mean))
        self._sum += value
        self._spread += (value - self._sum / (self._count + 1)) ** 2
        self._variance = self._spread / (self._count + 1)
        return self._mean < 1 and self._log >= log(1 / self._tail)


@dataclass(frozen=True, slots=True)
class EarlyStopForecast:
    """A forecast of early stopping from a pilot."""

    width_ratio: float | None
    """Expected width of the sequence after all units, divided by that of the interval for a fixed sample size."""
    decided: float | None
    """The fraction of runs that such a gate would decide."""
    decided_fixed: float | None
    """The fraction that a gate with one test after all units would decide."""
    units: float | None
    """Mean number of units used, of the maximum."""
    pays: bool
    """True if fewer units are expected and at most a tenth of the decisions is lost."""
    most: int
    runs: int
    seed: int
    note: str = ""
    """The reason if there is no forecast; otherwise empty."""


def confidence_sequence(
    values: Sequence[float] | NDArray[np.float64], span: tuple[float, float], *, level: float = LEVEL
) -> ConfidenceSequence:
    """Return the hedged-capital confidence sequence of a mean in a finite range, after each of the units.

    `values`: one for each unit, in the order in which they were evaluated, in `span`. Assumes only that each has the
    same mean given those before it, as in a random order, whatever the stopping time. The running intersection is
    used. Ends may be wider than exact ones, by at most 1/400 of the distance from the end of the range to the last
    limit, and never narrower; the last pair is exact to 1e-12 of the range.

    Source: Waudby-Smith & Ramdas, "Estimating means of bounded random variables by betting", JRSS B 86 (2024),
    theorem 3 with θ = 1/2, c = 1/2 and the predictable plug-in bets of (26). A side's capital is monotone in the mean
    that it bets against, so halving finds the limit and a grid misses nothing between its points.
    """
    import numpy as np

    found = _scaled(values, span)
    tail = (1 - level) / 2
    low = _path(found, tail)
    high = 1 - _path(1 - found, tail)
    width = span[1] - span[0]
    return ConfidenceSequence(span[0] + width * low, span[0] + width * np.maximum(high, low), level)


def sequential_interval(
    values: Sequence[float] | NDArray[np.float64], span: tuple[float, float], *, level: float = LEVEL
) -> Interval:
    """Return the last interval of `confidence_sequence`, exact to 1e-12 of the range; none without a unit."""
    found = _scaled(values, span)
    check_level(level)
    if not len(found):
        return Interval(None, "cannot tell from 0 scored samples", level=level)
    tail, width = (1 - level) / 2, span[1] - span[0]
    low, high = _last(found, tail), 1 - _last(1 - found, tail)
    return Interval((span[0] + width * low, span[0] + width * max(high, low)), method=Method.BETTING, level=level)


def sequential_gate(
    values: Sequence[float] | NDArray[np.float64],
    at_least: float,
    span: tuple[float, float],
    *,
    level: float = LEVEL,
) -> SequentialDecision:
    """Stop as soon as the mean is shown to be at least, or below, `at_least`; otherwise cannot tell yet.

    `values`: as for `confidence_sequence`. The lower one-sided limit decides to pass, the upper one to fail, each
    wrong with probability at most 1 - level over all tests. For a drop: differences new - base, the range of a
    difference and -max_drop. Clusters: one mean for each, in random order. No data decides a threshold at an end of
    the range, unless it holds for every mean.
    """
    check_level(level)
    found = _scaled(values, span)
    low, high = span
    mean = (at_least - low) / (high - low)
    above, below = (_crossing(*side, 1 - level) for side in ((found, mean), (1 - found, 1 - mean)))
    verdict = GateVerdict.CANNOT_TELL if above == below else GateVerdict.PASS if above < below else GateVerdict.FAIL
    taken = min(above, below, len(found))
    return SequentialDecision(verdict, taken, sequential_interval(values[:taken], span, level=2 * level - 1))


def sequential_outlook(
    pilot: Sequence[float] | NDArray[np.float64],
    at_least: float,
    span: tuple[float, float],
    *,
    most: int,
    level: float = LEVEL,
    seed: int = SEED,
    runs: int = 200,
) -> EarlyStopForecast:
    """Forecast the cost of `sequential_gate` for units like the pilot's: means over `runs` simulated runs of `most`.

    `pilot`: at least 10 values in `span`, sampled with replacement. The gate that reads all units once has the limits
    of `mean_limits`. There is no forecast from a pilot of fewer or equal values.
    """
    import numpy as np

    check_level(level)
    found = _scaled(pilot, span)
    if len(found) < 10 or not np.ptp(found):
        why = f"{len(found)} values" if len(found) < 10 else f"{len(found)} equal values"
        return EarlyStopForecast(
            None,
            None,
            None,
            None,
            pays=False,
            most=most,
            runs=runs,
            seed=seed,
            note=f"cannot tell from a pilot of {why}",
        )
    source, units_drawn = np.random.PCG64(seed), np.uint64(len(found))
    mean = (at_least - span[0]) / (span[1] - span[0])
    taken, widths, fixed_widths = list[int](), list[float](), list[float]()
    decided = decided_fixed = 0
    for number in range(runs):
        raw = source.random_raw(most) >> np.uint64(32)
        run = found[(raw * units_drawn >> np.uint64(32)).astype(np.int64)]
        end = min(_crossing(run, mean, 1 - level), _crossing(1 - run, 1 - mean, 1 - level))
        decided += end <= most
        taken.append(min(end, most))
        fixed = mean_limits(run, (0.0, 1.0), level=level)
        if fixed.lower is not None and fixed.upper is not None:
            decided_fixed += not fixed.lower < mean <= fixed.upper
            fixed_widths.append(fixed.upper - fixed.lower)
        if number < _WIDTHS:
            widths.append(1 - _last(1 - run, 1 - level) - _last(run, 1 - level))
    units = float(np.mean(taken))
    return EarlyStopForecast(
        width_ratio=float(np.mean(widths) / np.mean(fixed_widths)) if fixed_widths else None,
        decided=decided / runs,
        decided_fixed=decided_fixed / runs,
        units=units,
        pays=units < 0.95 * most and decided >= 0.9 * decided_fixed,
        most=most,
        runs=runs,
        seed=seed,
    )


def _width(span: tuple[float, float]) -> float:
    """Return the width of the range. Raises ValueError unless it is finite and above 0."""
    low, high = span
    if not (isfinite(low) and isfinite(high) and low < high):
        raise ValueError(f"A confidence sequence needs a finite range, got {low} to {high}.")
    return high - low


def _scaled(values: Sequence[float] | NDArray[np.float64], span: tuple[float, float]) -> NDArray[np.float64]:
    """Return the values scaled to [0, 1]."""
    import numpy as np

    found = (numbers(values, "scores") - span[0]) / _width(span)
    if len(found) and (found.min() < -1e-9 or found.max() > 1 + 1e-9):
        raise ValueError(f"Scores must be in the metric's range, {span[0]} to {span[1]}.")
    return np.clip(found, 0.0, 1.0)


def _bets(values: NDArray[np.float64], tail: float) -> NDArray[np.float64]:
    """Return sqrt(2 log(1/tail) / (variance so far · t · log(1 + t))), each from the values before it."""
    import numpy as np

    times = np.arange(1, len(values) + 1)
    means = (0.5 + np.cumsum(values)) / (times + 1)
    variances = (0.25 + np.cumsum((values - means) ** 2)) / (times + 1)
    before = np.concatenate(([0.25], variances[:-1]))
    return np.sqrt(2 * log(1 / tail) / (before * times * np.log1p(times)))


def _capital(values: NDArray[np.float64], bets: NDArray[np.float64], means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the capital after each unit from betting 1 that the mean is above each of `means`: units × means."""
    import numpy as np

    # A mean of 0 divides by zero, and the capital may grow beyond any float; both results (infinity) are right.
    with np.errstate(divide="ignore", over="ignore"):
        found = np.minimum(bets[:, None], TRUNCATION / means)
        found *= values[:, None] - means
        found += 1
        return np.cumprod(found, axis=0, out=found)


def _crossing(values: NDArray[np.float64], mean: float, tail: float) -> int:
    """Return the number of units after which the mean is shown to be above `mean`; one more than all if it is not."""
    import numpy as np

    if mean < 0:
        return 0
    if mean >= 1 or not len(values):
        return len(values) + 1
    reached = _capital(values, _bets(values, tail), np.array([mean]))[:, 0] >= 1 / tail
    return int(np.argmax(reached)) + 1 if reached.any() else len(values) + 1


def _last(values: NDArray[np.float64], tail: float) -> float:
    """Return the lower limit after all units: the largest mean that the capital has ever refuted."""
    import numpy as np

    bets = _bets(values, tail)
    low, high = 0.0, 1.0
    if _capital(values, bets, np.array([low])).max() < 1 / tail:
        return 0.0
    # The capital is monotone in the mean that it bets against, so the limit can be found by halving.
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        refuted = _capital(values, bets, np.array([middle])).max() >= 1 / tail
        low, high = (middle, high) if refuted else (low, middle)
    return low


def _path(values: NDArray[np.float64], tail: float) -> NDArray[np.float64]:
    """Return the lower limit after each unit, on a grid below the last one."""
    import numpy as np

    if not len(values):
        return np.zeros(0)
    last = _last(values, tail)
    if last == 0.0:
        return np.zeros(len(values))
    grid = np.linspace(0.0, last, GRID + 1)
    reached = _capital(values, _bets(values, tail), grid) >= 1 / tail
    first = np.where(reached.any(axis=0), reached.argmax(axis=0), len(values) - 1)
    found = np.zeros(len(values))
    np.maximum.at(found, first, grid)
    return np.maximum.accumulate(found)
