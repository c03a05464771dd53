"""Detect a drop of a mean in endless traffic, with a limit on false alarms that holds at every look; or a new judge.

Scores are on a scale from 0 (worst) to 1 (best). A unit is a sample or a conversation (the mean of its turns). Each
number that is compared with a score (line, stake) is fixed before the score is seen.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from math import exp, fsum, log, log1p, sqrt
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from merilo.stats.distributions import gamma_quantile, normal_quantile
from merilo.stats.intervals import LEVEL
from merilo.stats.limits import Summarised
from merilo.stats.means import mean_interval
from merilo.stats.sums import Points, Spread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.stats.intervals import Interval

GRADES = 128
"""Steps of the scale on which a line keeps its scores."""
_DROPS = (0.02, 0.04, 0.08, 0.16, 0.32)
"""A stake is best against one of these drops below the line."""
_MAX_LOSS = 0.9
"""Largest fraction of the evidence that one score can remove."""
_MAX_EVIDENCE = 1e300
_SIGNIFICANT = 0.95
MAX_SLICES = 20
FEWEST_UNITS = 50
"""Fewest units of the reference from which a slice has a line."""
_Name = TypeVar("_Name")


@dataclass(slots=True)
class Line:
    """The alarm line of a mean: a lower confidence limit less a tolerance. It rises as scores are added, never falls.

    Whenever the number of scores has doubled, the limit of all of them may raise the line. The k-th limit (from 0) is
    wrong with probability `error` / 2^(k + 1), so all of them together with `error`. The fields are plain JSON:
    `Line(**asdict(line))` is an equal line.
    """

    error: float
    """Probability that the line is ever above the mean of unchanged traffic."""
    tolerance: float = 0.0
    count: int = 0
    counts: list[float] = field(default_factory=lambda: [0.0] * (GRADES + 1))
    """The number of scores on each grade. A score between two grades is split, so that the mean stays exact."""
    next_count: int = 0
    """The number of scores at which the line is computed next."""
    step: int = 0
    value: float = 0.0
    mean: float = 0.0
    """The mean of the scores by which the line was set."""
    mean_error: float = 0.0
    """The standard error of that mean."""
    variance: float = 0.0

    @classmethod
    def of(cls, reference: Sequence[Unit], error: float, tolerance: float = 0.0) -> Line:
        """Return the line of a reference of at least two units."""
        line = cls(error, tolerance, next_count=len(reference))
        for unit in reference:
            line.add(unit.score)
        return line

    def add(self, score: float) -> None:
        """Add a score, of the traffic after all detectors used the line for it."""
        left = min(int(score * GRADES), GRADES - 1)
        right = score * GRADES - left
        self.counts[left] += 1 - right
        self.counts[left + 1] += right
        self.count += 1
        if self.count == self.next_count:
            self.draw()

    def draw(self) -> None:
        """Raise the line to the limit of all scores, less the tolerance, if that is higher.

        The limit is the lower one of Student's t and the exact limit, each wrong with the probability of this step.
        """
        import numpy as np

        counts, grades = np.array(self.counts), np.arange(GRADES + 1) / GRADES
        points, units = Points(grades[counts > 0], counts[counts > 0]), float(counts.sum())
        mean, mean_error = float(counts @ grades) / units, sqrt(points.variance / (units - 1))
        spread = Spread(mean, mean_error, units - 1) if mean_error else None
        error = self.error / 2 ** (self.step + 1)
        limit = Summarised(points, (0.0, 1.0), units, units, spread).limits(1 - 2 * error, 1 - error)[0]
        if not self.step or limit - self.tolerance > self.value:
            self.value, self.mean, self.mean_error = max(limit - self.tolerance, 0.0), mean, mean_error
            self.variance = points.variance
        self.step, self.next_count = self.step + 1, 2 * self.count


@dataclass(slots=True)
class DriftDetector:
    """The evidence that a mean is below its line: a weighted Shiryaev-Roberts sum of bets, for each of five stakes.

    `evidence` R of a stake λ: `start(w)` adds w, and a score y multiplies by 1 + λ · weight · (line - y). While the
    expected score is at least the line, the factor's expectation is at most 1, so R + 1 - sum(w) is a supermartingale,
    and not negative while the w sum to at most 1. By Ville's inequality the mean R of the stakes reaches 1/α with
    probability α at most, however often it is looked at; after t years (sum of w: t) with α · t at most. Means of
    detectors with equal `start` calls have the same property, however the detectors depend on each other.

    The fields are plain JSON. Sources: Shin, Ramdas & Rinaldo, "E-detectors", NEJSDS 2 (2024); Waudby-Smith & Ramdas,
    JRSS B 86 (2024); the stakes are our own.
    """

    stakes: list[float]
    evidence: list[float] = field(default_factory=lambda: [0.0] * len(_DROPS))

    @classmethod
    def of(cls, variance: float, lowest: float) -> DriftDetector:
        """Return a detector without evidence for scores of this variance; `lowest`: the lowest of its lines.

        A stake is at most 0.9 / (1 - lowest), so that no factor is negative.
        """
        most = _MAX_LOSS / (1 - lowest)
        return cls([min(drop / (variance + drop * drop), most) for drop in _DROPS])

    def start(self, weight: float) -> None:
        """Start a day; `weight`: the elapsed time in years, known before the day's scores."""
        self.evidence = [each + weight for each in self.evidence]

    def add(self, score: float, line: float) -> None:
        """Add a score with the line that was fixed before it. A failed outcome is 1.0, the best value."""
        gain = line - score
        self.evidence = [each * (1 + stake * gain) for each, stake in zip(self.evidence, self.stakes, strict=True)]

    @property
    def value(self) -> float:
        """The mean R of the stakes; an alarm if it is at least 1/α."""
        return sum(self.evidence) / len(self.evidence)


class Unit(NamedTuple):
    """A judged unit."""

    score: float
    name: str = ""
    """The slice: the value of a field such as a topic; empty without slices."""


@dataclass(slots=True)
class MetricDrift:
    """The lines and detectors of one metric. `asdict` gives plain JSON, `from_state` reads it."""

    lines: dict[str, Line]
    """The lines of all units, named "", and of each slice."""
    whole: DriftDetector
    """All units against the line of all: their mean fell."""
    slices: dict[str, DriftDetector]
    """Each slice against its line. Units of other slices count in `whole` only."""
    given: DriftDetector
    """All units of these slices, each against the line of its slice: other questions alone cannot raise this."""

    @classmethod
    def of(cls, reference: Sequence[Unit], *, error: float, tolerance: float = 0.0) -> MetricDrift:
        """Return the state after the reference; `error`: the probability that any of the lines is ever too high.

        The most frequent 20 slices with at least 50 units have a line; they share half of `error`.
        """
        counts = Counter(unit.name for unit in reference if unit.name).most_common(MAX_SLICES)
        names = [name for name, count in counts if count >= FEWEST_UNITS]
        shares = {"": error / 2 if names else error, **{name: error / 2 / len(names) for name in names}}
        lines = {
            name: Line.of([unit for unit in reference if name in ("", unit.name)], share, tolerance)
            for name, share in shares.items()
        }
        given = DriftDetector.of(lines[""].variance, min(line.value for line in lines.values()))
        detectors = {name: DriftDetector.of(line.variance, line.value) for name, line in lines.items()}
        return cls(lines, detectors.pop(""), detectors, given)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> MetricDrift:  # Any: parsed JSON
        """Return the object that `asdict` turned into `state`."""
        lines = {name: Line(**fields) for name, fields in state["lines"].items()}
        slices = {name: DriftDetector(**fields) for name, fields in state["slices"].items()}
        return cls(lines, DriftDetector(**state["whole"]), slices, DriftDetector(**state["given"]))

    def start(self, weight: float) -> None:
        """Start a day in each detector; `weight` as in `DriftDetector.start`."""
        for detector in (self.whole, self.given, *self.slices.values()):
            detector.start(weight)

    def add(self, unit: Unit, *, failed: bool = False) -> None:
        """Add a unit of the traffic. A failed one counts as the best value, and not for the lines."""
        score, name = (1.0 if failed else unit.score), unit.name
        pairs = [(self.whole, "")]
        if name in self.slices:
            pairs += [(self.given, name), (self.slices[name], name)]
        for detector, line in pairs:
            # Without a limit, evidence that is ignored for months would be infinite.
            if detector.value < _MAX_EVIDENCE:
                detector.add(score, self.lines[line].value)
        # Only now: the line of a score must not depend on the score.
        for key in {"", name} & self.lines.keys() if not failed else ():
            self.lines[key].add(score)

    @property
    def value(self) -> float:
        """The evidence that the mean fell, to be averaged over metrics; an alarm if the average is at least 1/α."""
        return (self.whole.value + self.given.value) / 2 if self.slices else self.whole.value


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


def daily_deviation(days: Sequence[Sequence[float]]) -> float:
    """Return the standard deviation of the means of days beyond sampling error; 0.0 unless significant at 5 %.

    Analysis of variance with unequal sizes. Source: Searle, Casella & McCulloch, "Variance Components" (1992), 3.6.
    """
    sizes = [len(day) for day in days if day]
    groups, total = len(sizes), sum(sizes)
    if groups < 2 or total <= groups:
        return 0.0
    mean = sum(map(sum, days)) / total
    between = sum(len(day) * (sum(day) / len(day) - mean) ** 2 for day in days if day) / (groups - 1)
    within = sum((score - sum(day) / len(day)) ** 2 for day in days for score in day) / (total - groups)
    if between <= within * gamma_quantile((groups - 1) / 2, _SIGNIFICANT) / ((groups - 1) / 2):
        return 0.0
    return sqrt((between - within) * (groups - 1) / (total - sum(size * size for size in sizes) / total))


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


def mix_share(lines: Mapping[str, Line], units: Sequence[Unit], *, level: float = LEVEL) -> tuple[float, float]:
    """Return the limits of the part of a drop that other questions do not explain.

    That part is the mean of (mean of the slice in the reference - score) over the units. Units without a line of their
    slice count as questions that changed.
    """
    known = [unit for unit in units if unit.name and unit.name in lines]
    falls = [lines[unit.name].mean - unit.score for unit in known]
    mean, total = sum(falls) / len(units), len(units)
    parts = Counter(unit.name for unit in known)
    variance = sum((count / total * lines[name].mean_error) ** 2 for name, count in parts.items())
    variance += sum(((fall - mean) / total) ** 2 for fall in falls)
    half = normal_quantile((1 + level) / 2) * sqrt(variance)
    return mean - half, mean + half


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
