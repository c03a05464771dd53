"""Detect a drop of a mean in endless traffic, with a limit on false alarms that holds at every look; or a new judge.

Scores are on a scale from 0 (worst) to 1 (best). A unit is a sample or a conversation (the mean of its turns). Days are
compared with the days of the reference; single units show a collapse only. Each number that is compared with a score
(level, line, stake) is fixed before the score is seen.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations, pairwise
from math import copysign, exp, fsum, log, log1p, sqrt
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from merilo.stats.distributions import normal_quantile
from merilo.stats.intervals import LEVEL, Interval
from merilo.stats.means import mean_interval

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray


_DROPS = (0.02, 0.04, 0.08, 0.16, 0.32)
"""A stake is best against one of these drops below the line."""
_MAX_LOSS = 0.9
"""Largest fraction of the evidence that one score can remove."""
_MAX_EVIDENCE = 1e300
_SHIFTS = (0.75, 1.25, 2.0, 3.0)
"""The bets on days are best against a mean that is lower by these numbers of standard deviations."""
_CLIP = 2.75
"""Largest distance of a day from its level, in standard deviations: no single day, such as a holiday, is an alarm."""
_ERRORS = 1.64
"""Standard errors between the mean of the learned days and their level."""
FEWEST_DAYS, WEEKDAYS_FROM, _MOST_DAYS = 7, 14, 160
"""Days from which a level is known, days from which weekdays are, and the most days that are learned."""
_FEWEST_IN_DAY = 20
"""A day with fewer units is joined with the next one."""
COLLAPSE, _SPREADS = 0.15, 5.0
"""The drop, and the standard deviations between days, below which single units are evidence, so that a collapse is
found before its day ends."""
_MONTHLY = 0.8
"""Standard deviations by which 30 days have to be lower to be an alarm: z² / 2 · 30 = log(365 / 0.04)."""
_FASTEST = 34.0
"""Largest logarithm by which a day of single units multiplies their evidence, so that no bad hour is an alarm."""
_OF_DAYS = 0.95
"""Weight of the evidence of days; the other part is that of single units."""
_PER_UNIT = 0.01
_MOST_FAILURES = 3.4
"""Largest logarithm by which the failures of a day multiply their evidence, so that an outage is not an alarm."""
MAX_SLICES = 20
FEWEST_UNITS = 50
"""Fewest units of the reference from which a slice has a level."""
_TINY = 1e-12
_PERMUTATIONS = 999
_Name = TypeVar("_Name")
_OUTAGE = 0.1
"""The fraction of failed units above which a later day is not learned."""


@dataclass(slots=True)
class _Bets:
    evidence: list[float]
    """R of each bet."""

    def start(self, weight: float) -> None:
        """Start a day; `weight`: the elapsed time in years, known before the day's scores."""
        self.evidence = [each + weight for each in self.evidence]

    @property
    def value(self) -> float:
        """The mean R of the bets; an alarm if it is at least 1/α."""
        return sum(self.evidence) / len(self.evidence)


@dataclass(slots=True)
class DaySeries(_Bets):
    """The evidence that the mean of days fell: a Shiryaev-Roberts sum of bets on days, as in `DriftDetector`.

    A day is standardised by the spread of the learned days, less the effect of its weekday, clipped, and compared with
    a level: the lower one of the first mean and the mean of all days, less 1.64 standard errors. So easier days do not
    raise the level. It is fitted again whenever the days have doubled, unless they are suspicious. Days are taken as
    normal; what that is worth is measured by simulation (benchmarks/watch.py). The fields are plain JSON.
    """

    evidence: list[float] = field(default_factory=lambda: [0.0] * len(_SHIFTS))
    tolerance: float = 0.0
    mean: float = 0.0
    """The mean of the units of the reference."""
    variance: float = 0.0
    """The variance of these units."""
    units: float = 0.0
    """Number of these units."""
    first: float = 0.0
    means: list[float] = field(default_factory=list[float])
    """The mean of each learned day; a failed unit counts as 0 here, and as 1 in the evidence."""
    weekdays: list[int] = field(default_factory=list[int])
    size: float = 0.0
    """Mean number of units of a learned day."""
    day: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    """Of the day that is not closed: number of units, failed ones, sum of the scores."""
    fitted: int = 0
    """Number of days by which the level was set; 0 without one."""
    level: float = 0.0
    deviation: float = 0.0
    freedom: float = 0.0
    wide: float = 1.0
    """The factor of the variance by which days that follow a bad day are bad too."""
    effects: list[float] = field(default_factory=lambda: [0.0] * 7)

    @classmethod
    def of(cls, days: Mapping[float, Sequence[Unit]], tolerance: float = 0.0) -> DaySeries:
        """Return the series after the reference: number of a day → its units, in order."""
        series, scores = (
            cls(tolerance=tolerance),
            [unit.score for units in days.values() for unit in units if not unit.failed],
        )
        series.units, series.mean = float(len(scores)), fmean(scores or (0.0,))
        series.variance = fmean([(score - series.mean) ** 2 for score in scores] or (0.0,))
        for day, units in days.items():
            for unit in units:
                series.add(unit)
            series.close(day, fits=False)
        series.first = fmean(series.means) if series.means else series.mean
        series._fit_if_due()
        return series

    @property
    def mean_error(self) -> float:
        """The standard error of the mean of the reference."""
        return sqrt(self.variance / max(self.units - 1, 1))

    def add(self, unit: Unit) -> None:
        """Add a unit to the day that is not closed."""
        units, failed, total = self.day
        self.day = [units + 1, failed + unit.failed, total + (0.0 if unit.failed else unit.score)]

    def close(self, day: float, *, fits: bool = True) -> None:
        """Close the day with this number, counted from any first one; a day with few units waits for the next."""
        (units, failed, total), weekday = self.day, int(day) % 7
        if units < _FEWEST_IN_DAY:
            return
        if self.fitted:
            z = self._standardised((total + failed) / units, units, weekday)
            factors = (exp(-shift * z - shift * shift / 2) for shift in _SHIFTS)
            self.evidence = [min(a * b, _MAX_EVIDENCE) for a, b in zip(self.evidence, factors, strict=True)]
        outage = self.fitted and failed > _OUTAGE * units  # such a day would widen what counts as usual
        if len(self.means) <= _MOST_DAYS and not outage:
            self.size += (units - self.size) / (len(self.means) + 1)
            self.means.append(total / units)
            self.weekdays.append(weekday)
            if fits:
                self._fit_if_due()
        self.day = [0.0, 0.0, 0.0]

    def _standardised(self, mean: float, units: float, weekday: int) -> float:
        """Return the distance of a day from its level, as a clipped standard normal variable."""
        spread = self.deviation**2
        sampling = min(spread, self.variance / self.size)  # the part of the spread that more units a day reduce
        deviation = sqrt((spread - sampling + sampling * self.size / units) * self.wide)
        deviation = max(deviation, 1 / units)  # one unit moves a day by one deviation at most
        error, df = (self.fitted - 1 - self.freedom) / self.fitted, self.freedom
        t = (mean - self.level - self.effects[weekday]) / deviation / sqrt(1 + error)
        z = copysign((8 * df + 1) / (8 * df + 3) * sqrt(df * log1p(t * t / df)), t)  # Student to normal; Wallace 1959
        return min(max(z, -_CLIP), _CLIP)

    @property
    def spread(self) -> float:
        """The standard deviation between days of any size; 0 before a level is known."""
        return sqrt(max(self.deviation**2 - self.variance / max(self.size, 1), 0.0))

    def _fit_if_due(self) -> None:
        """Set the level, the weekdays and the spread by all learned days, if they have doubled in quiet."""
        days = len(self.means)
        if days < max(FEWEST_DAYS, 2 * self.fitted) or self.value >= 1:
            return
        mean = fmean(self.means)
        own = [[each for each, at in zip(self.means, self.weekdays, strict=True) if at == day] for day in range(7)]
        effects = [fmean(each) - mean if each else 0.0 for each in own]
        between = fsum(len(each) * effect * effect for each, effect in zip(own, effects, strict=True))
        within = max(fsum((each - mean) ** 2 for each in self.means) - between, _TINY) / max(days - 7, 1)
        # Effects of weekdays are shrunk as James & Stein's estimator does; none if there are fewer than two weeks.
        shrunk = 1 - 4 * within * (days - 7) / (days - 5) / max(between, _TINY) if days >= WEEKDAYS_FROM else 0.0
        self.effects = [max(shrunk, 0.0) * each for each in effects]
        rests = [each - mean - self.effects[day] for each, day in zip(self.means, self.weekdays, strict=True)]
        self.fitted, self.freedom = days, days - 1 - 6 * max(shrunk, 0.0)
        variance = max(fsum(each * each for each in rests), _TINY) / self.freedom
        rho = fsum(a * b for a, b in pairwise(rests)) / (days - 1) / variance
        rho = min(rho + (1 + 3 * rho) / days, 0.8) if rho > 1.28 / sqrt(days) else 0.0
        self.wide, self.deviation = (1 + rho) / (1 - rho), sqrt(variance)
        t = _ERRORS + (_ERRORS**3 + _ERRORS) / 4 / self.freedom
        self.level = min(mean, self.first) - t * sqrt(variance * self.wide / days) - self.tolerance


@dataclass(slots=True)
class Losses:
    """The evidence that more units have no score than in the reference: thrice the rate against the rate, by day."""

    rate: float
    """Upper limit of the fraction without a score on a day of the reference, at least 0.01."""
    mean: float
    """The fraction with a score in the reference."""
    evidence: float = 0.0
    day: list[float] = field(default_factory=lambda: [0.0, 0.0])
    """Of the day that is not closed: number of units, and the sum of their fractions without a score."""

    @classmethod
    def of(cls, days: Collection[Sequence[float]]) -> Losses:
        """Return the state after the reference: by day, the fraction of the metrics of each unit without a score.

        Failures that come on some days raise the limit by two standard deviations between days.
        """
        total, units = fsum(map(fsum, days)), max(sum(map(len, days)), 1)
        mean = total / units
        between = [(fsum(own) / len(own) - mean) ** 2 - mean * (1 - mean) / len(own) for own in days if own]
        usual = mean + 2 * sqrt(max(fmean(between or (0.0,)), 0.0))
        return cls(max(0.01, (total + 2.33 * sqrt(total + 1) + 1) / units, usual), 1 - mean)

    def add(self, lost: float) -> None:
        """Add a unit to the day that is not closed."""
        self.day = [self.day[0] + 1, self.day[1] + lost]

    def close(self, weight: float) -> None:
        """Close a day, and start one with this weight."""
        growth = self.day[1] * log(3) - 2 * self.rate * self.day[0]
        self.evidence = min(self.evidence * exp(min(growth, _MOST_FAILURES)), _MAX_EVIDENCE) + weight
        self.day = [0.0, 0.0]


@dataclass(slots=True)
class DriftDetector(_Bets):
    """The evidence that a mean is below its line: a weighted Shiryaev-Roberts sum of bets, for each of five stakes.

    `start(w)` adds w to the evidence R of a stake λ, and a score y multiplies it by 1 + λ · (line - y). While the
    expected score is at least the line, R + 1 - sum(w) is a supermartingale. So the mean R of the stakes reaches 1/α
    in t years (sum of w: t) with probability α · t at most, however often it is looked at (Ville's inequality).
    Sources: Shin, Ramdas & Rinaldo, "E-detectors", NEJSDS 2 (2024); Waudby-Smith & Ramdas, JRSS B 86 (2024).
    """

    stakes: list[float]

    @classmethod
    def of(cls, variance: float, lowest: float) -> DriftDetector:
        """Return a detector without evidence for scores of this variance; `lowest`: the lowest of its lines."""
        detector = cls([0.0] * len(_DROPS), [drop / (variance + drop * drop) for drop in _DROPS])
        detector.limit(lowest)
        return detector

    def limit(self, lowest: float) -> None:
        """Limit the stakes to 0.9 / (1 - lowest), so that no factor is negative."""
        self.stakes = [min(each, _MAX_LOSS / (1 - lowest)) for each in self.stakes]

    def add(self, score: float, line: float) -> None:
        """Add a score with the line that was fixed before it. A failed outcome is 1.0, the best value."""
        gain = line - score
        self.evidence = [each * (1 + stake * gain) for each, stake in zip(self.evidence, self.stakes, strict=True)]


class Unit(NamedTuple):
    """A judged unit."""

    score: float
    name: str = ""
    """The slice: the value of a field such as a topic; empty without slices."""
    failed: bool = False


@dataclass(slots=True)
class MetricDrift:
    """The evidence of one metric. `asdict` gives plain JSON, `from_state` reads it."""

    days: dict[str, DaySeries]
    """The days of all units, named "", and of each slice."""
    units: DriftDetector
    """Single units against `line`: their mean collapsed."""
    line: float
    weight: float = 0.0
    """The part of the weight of a day that `units` have not got yet: 1 % of it a unit, so that each hour has some."""

    @classmethod
    def of(cls, reference: Mapping[float, Sequence[Unit]], *, error: float, tolerance: float | None = None) -> Self:
        """Return the state after the reference: number of a day → its units.

        The most frequent 20 slices with at least 50 units have separate days. `error`: the probability that the
        line is too high. `tolerance`: allowed drop; None for none of the mean of days and 0.15 of single units.
        """
        every = [unit for units in reference.values() for unit in units]
        counts = Counter(unit.name for unit in every if unit.name).most_common(MAX_SLICES)
        slices = [name for name, count in counts if count >= FEWEST_UNITS]
        days = {
            name: DaySeries.of(
                {day: [unit for unit in units if name in ("", unit.name)] for day, units in reference.items()},
                tolerance or 0.0,
            )
            for name in ("", *slices)
        }
        scores = [unit.score for unit in every if not unit.failed]
        ends = mean_interval(scores, (0.0, 1.0), level=1 - 2 * error).interval.ends or (0.0, 1.0)
        wide = COLLAPSE if tolerance is None else max(tolerance, COLLAPSE * (days[""].fitted > 0))
        line = max(ends[0] - wide, 0.0)
        return cls(days, DriftDetector.of(days[""].variance, line), line)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:  # Any: parsed JSON
        """Return the object that `asdict` turned into `state`."""
        days = {name: DaySeries(**fields) for name, fields in state["days"].items()}
        return cls(days, DriftDetector(**state["units"]), state["line"], state["weight"])

    def start(self, day: float, weight: float) -> None:
        """Close the day with this number and start the next one; `weight` as in `DriftDetector.start`."""
        for series in self.days.values():
            series.close(day)
            series.start(weight)
        whole, self.weight = self.days[""], weight
        self.line = min(self.line, max(whole.first - _SPREADS * whole.spread, 0.0))
        self.units.limit(self.line)

    def add(self, unit: Unit) -> None:
        """Add a unit of the traffic. A failed one counts as the best value, and as the worst one if it is learned."""
        if self.units.value < _MAX_EVIDENCE:  # evidence that is ignored for months would be infinite
            self.units.start(_PER_UNIT * self.weight)
            self.weight -= _PER_UNIT * self.weight
            self.units.add(1.0 if unit.failed else unit.score, self.line)
        for name in {"", unit.name} & self.days.keys():
            self.days[name].add(unit)

    @property
    def units_before(self) -> list[float]:
        """The evidence of single units before a look, with the weight that they may get."""
        return [each + self.weight for each in self.units.evidence]

    def limit_units(self, before: Sequence[float], days: float) -> None:
        """Limit how much the units of a look change their evidence, if it is about `days` days and a level is known."""
        if self.days[""].fitted and days * _FASTEST < _MAX_LOG:
            most = exp(max(days, 0.0) * _FASTEST)
            self.units.evidence = [min(own, most * old) for own, old in zip(self.units.evidence, before, strict=True)]

    def line_of(self, name: str = "") -> float | None:
        """Return the level of all units or of a slice; before it is known, the line of single units, or None."""
        return self.days[name].level if self.days[name].fitted else self.line if not name else None

    @property
    def least_drop(self) -> float:
        """The smallest drop of the mean that is found within a month of days of the usual size."""
        whole = self.days[""]
        found = max(whole.first - whole.level, 0.0) + _MONTHLY * whole.deviation * sqrt(whole.wide)
        return found if whole.fitted else whole.mean - self.line

    @property
    def value(self) -> float:
        """The evidence that the mean fell, to be averaged over metrics; an alarm if the average is at least 1/α."""
        return _OF_DAYS * self.days[""].value + (1 - _OF_DAYS) * self.units.value


def evidence_ratio(value: float, alpha: float) -> float:
    """Return evidence on a logarithmic scale: 0 without any, 1 at the alarm."""
    return log1p(value) / log1p(1 / alpha)


def e_bh(values: Mapping[_Name, float], alpha: float) -> list[_Name]:
    """Return the names whose own evidence is enough, largest first, at a false discovery rate of `alpha`.

    `values`: e-values, or the `value` of detectors. If none of the means fell, any name is ever returned with
    probability `alpha` at most. Source: Wang & Ramdas, "False discovery rate control with e-values", JRSS B 84 (2022).
    """
    names = sorted(values, key=lambda name: -values[name])
    ranks = [rank for rank, name in enumerate(names, 1) if rank * values[name] >= len(names) / alpha]
    return names[: max(ranks, default=0)]


def fell_since(days: Sequence[tuple[float, float]], mean: float) -> tuple[int, float]:
    """Return the index of the day since which scores are lowest against `mean`, and their mean since then.

    `days`: the number and the sum of the scores of each day, at least one score. Largest likelihood of one step down.
    """
    count = total = 0.0
    best, found = -1.0, (len(days) - 1, mean)
    for day in range(len(days) - 1, -1, -1):
        count, total = count + days[day][0], total + days[day][1]
        fall = count * mean - total
        if count and fall > 0 and fall * fall / count > best:
            best, found = fall * fall / count, (day, total / count)
    return found


def mix_share(days: Mapping[str, DaySeries], units: Sequence[Unit], *, level: float = LEVEL) -> tuple[float, float]:
    """Return the limits of the part of a drop that other questions do not explain.

    That part is the mean of (mean of the slice in the reference - score) over the units. Units of slices without a
    series count as questions that changed.
    """
    known = [unit for unit in units if unit.name and unit.name in days]
    falls = [days[unit.name].mean - unit.score for unit in known]
    mean, total = sum(falls) / len(units), len(units)
    parts = Counter(unit.name for unit in known)
    variance = sum((count / total * days[name].mean_error) ** 2 for name, count in parts.items())
    variance += sum(((fall - mean) / total) ** 2 for fall in falls)
    half = normal_quantile((1 + level) / 2) * sqrt(variance)
    return mean - half, mean + half


def changed_p(groups: NDArray[np.float64], new: int) -> float:
    """Return the p-value that the last `new` groups differ from the others: a permutation test of mean vectors.

    `groups`: groups × width, the mean vector of each day. If nothing changed, days are exchangeable.
    """
    import numpy as np

    random = np.random.default_rng(0)
    rows = np.stack([random.permutation(len(groups)) < new for _ in range(_PERMUTATIONS)]).astype(float)
    rows = np.vstack([np.arange(len(groups)) >= len(groups) - new, rows])
    apart = rows @ groups / new - (1 - rows) @ groups / (len(groups) - new)
    distances = np.square(apart).sum(axis=1)
    return float((distances >= distances[0] * (1 - _TINY)).mean())


def novelty(vectors: NDArray[np.float64], groups: Sequence[Sequence[str]], new: int) -> NDArray[np.float64]:
    """Return groups × 1: the mean distance, 1 - cosine, of the texts of a group to the nearest of other groups.

    `vectors`: of all texts in order, of length 1; equal texts of a group count once. The last `new` groups are compared
    with the others only: a topic that recurs, such as on weekends, is near others of its kind, and a new one is not.
    """
    import numpy as np

    group = np.repeat(np.arange(len(groups)), [len(own) for own in groups])
    old = group < len(groups) - new
    cosines = np.where(group[:, None] == group[old], -1.0, vectors @ vectors[old].T)
    apart = iter(1 - cosines.max(axis=1))
    texts = [dict(zip(own, apart, strict=False)) for own in groups]
    return np.array([[fmean(own.values())] for own in texts])


# -- a changed judge: if it did not change, its old and new answers are exchangeable ------------------


_SLOPES = (2.0, 4.0, 6.0)
"""Large slopes find few large changes, small ones many small changes."""
_STEPS = 10_000
"""Answers are compared in steps of 1 / `_STEPS`."""
_MAX_LOG = 690.0


class Anchor(NamedTuple):
    """The answers of a judge to one question before and after, from 0 (worst) to 1 (best), rounded by the caller."""

    old: tuple[float, ...]
    new: tuple[float, ...]

    @property
    def fall(self) -> float:
        """The mean of the old answers less the mean of the new ones."""
        return fsum(self.old) / len(self.old) - fsum(self.new) / len(self.new)


def exchange_value(anchors: Sequence[Anchor]) -> float:
    """Return the e-value against an unchanged judge: its expectation is 1, whatever the noise of the answers is.

    For each anchor f(|fall|) is divided by its mean over all ways to divide the same answers into old and new, with
    f(x) = exp(slope · x). The product over anchors is averaged over three slopes. An anchor with equal answers
    contributes exactly 1. The answers must not be those by which the anchors were chosen. Sum the values of several
    passes with weights, fixed before each pass, that sum to 1 a year: the sum reaches 1/α with probability α at most.
    """
    counts = Counter(anchors).items()
    logs = [fsum(count * log(_ratio(each, slope)) for each, count in counts) for slope in _SLOPES]
    return fsum(exp(min(each, _MAX_LOG)) for each in logs) / len(logs)


def fall_limits(anchors: Sequence[Anchor], *, level: float = LEVEL) -> Interval:
    """Return the interval of the mean fall over all questions like the anchors; each end as in `mean_interval`."""
    return mean_interval([each.fall for each in anchors], (-1.0, 1.0), level=level).interval


def _ratio(anchor: Anchor, slope: float) -> float:
    old, new = (tuple(round(answer * _STEPS) for answer in answers) for answers in anchor)
    return exp(slope * _apart(sum(old), len(old), sum(new), len(new))) / _mean(
        tuple(sorted(old + new)), len(new), slope
    )


def _apart(old: int, olds: int, new: int, news: int) -> float:
    return abs(old / olds - new / news) / _STEPS


@lru_cache(maxsize=10_000)
def _mean(answers: tuple[int, ...], new: int, slope: float) -> float:
    """Return the mean of f over all ways to take `new` of the answers as the new ones."""
    whole, old = sum(answers), len(answers) - new
    return fmean(exp(slope * _apart(whole - total, old, total, new)) for total in map(sum, combinations(answers, new)))
