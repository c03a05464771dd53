"""Synthetic studies of decisions by a judge with a few human labels: means, paired differences, gates, comparisons.

Shared by tests/stats (small) and benchmarks/coverage.py (large). The estimator of paired differences was chosen on
other generators: samples with beta-distributed quality and errors that depend on a binary difficulty. Here quality is
logistic, and a judge reads a noisy copy of it with its own threshold.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from drop_gates import drop_decisions

from merilo.stats.column import Column
from merilo.stats.corrected_pairs import PairLabels, correct_pairs
from merilo.stats.correction import Labels, correct
from merilo.stats.gate import GateVerdict, gate_minimum
from merilo.stats.means import mean_interval, paired_test

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

UNIT = (0.0, 1.0)
PAIR = (-1.0, 1.0)
SCORES = ("0/1", "graded", "5 contexts")
JUDGES = ("fair", "lenient", "kinder")
LABELLED = (20, 40, 100, 200)
CONTEXTS, CONTEXTS_LABELLED = 5, 3
GRADES = 5
"""Steps of a graded score: 0, 0.2 ... 1."""
_LARGE = 400_000


@dataclass(frozen=True)
class Cell:
    """What is repeated: the scores, the judge's error, the number of labels, and the design."""

    scores: str
    judge: str
    """fair: errs as often both ways; lenient: says yes too often; kinder: lenient for the first system only."""
    labelled: int
    samples: int = 600
    clusters: int = 0
    """Number of clusters; 0 for independent samples."""
    level: float = 0.5
    """Location of quality: larger values give means nearer to 1."""
    effect: float = 0.0
    """By how much the first system's quality is above the second's."""

    def __str__(self) -> str:
        clustered = f" in {self.clusters} clusters" if self.clusters else ""
        return (
            f"{self.scores}, {self.judge} judge, {self.labelled} of {self.samples:,}{clustered}, level {self.level:g}, "
            f"effect {self.effect:g}"
        )


def cells() -> Iterator[Cell]:
    """All cells of the benchmark."""
    for scores in SCORES:
        for judge in JUDGES:
            for labelled in LABELLED:
                yield Cell(scores, judge, labelled)
                yield Cell(scores, judge, labelled, samples=1_500, level=2.5, effect=0.6)
            for labelled in (40, 100):
                yield Cell(scores, judge, labelled, effect=0.6, samples=300)
                yield Cell(scores, judge, labelled, clusters=60)
                yield Cell(scores, judge, labelled, clusters=20, effect=0.6)


@dataclass(frozen=True)
class Systems:
    """The scores of two systems by humans and by the judge: one row per sample, one column per context."""

    human: tuple[Numbers, Numbers]
    judge: tuple[Numbers, Numbers]
    clusters: NDArray[np.int64] | None


def systems(
    cell: Cell, source: np.random.Generator, samples: int | None = None, clusters: int | None = None
) -> Systems:
    """The two systems of one study."""
    size, groups = samples or cell.samples, cell.clusters if clusters is None else clusters
    ease = source.logistic(size=size)
    codes = None
    if groups:
        codes = source.integers(0, groups, size)
        ease = 0.7 * source.logistic(size=groups)[codes] + 0.7 * ease
    columns = CONTEXTS if cell.scores == "5 contexts" else 1
    found: list[tuple[Numbers, Numbers]] = []
    for first in (True, False):
        quality = cell.level + cell.effect * first + ease[:, None] + source.logistic(size=(size, columns))
        shift = {"fair": 0.0, "lenient": 1.2, "kinder": 1.2 * first}[cell.judge]
        read = quality + shift + 1.3 * source.standard_t(4, size=quality.shape)
        if cell.scores == "graded":
            found.append((_grades(quality), _grades(read)))
        else:
            found.append(((quality > 0).astype(float), (read > 0).astype(float)))
    (one, two) = found
    return Systems((one[0], two[0]), (one[1], two[1]), codes)


def _grades(quality: Numbers) -> Numbers:
    return np.round(GRADES / (1 + np.exp(-quality / 2))) / GRADES


@cache
def truth(cell: Cell) -> tuple[float, float]:
    """The true means of the two systems by annotators, from a large sample of independent clusters."""
    large = replace(cell, samples=_LARGE, clusters=_LARGE // 10 if cell.clusters else 0)
    found = systems(large, np.random.default_rng(77))
    return float(found.human[0].mean()), float(found.human[1].mean())


@dataclass
class Tally:
    """Counts over the studies of a cell; rates are per study."""

    studies: int = 0
    covered: int = 0
    covered_alone: int = 0
    widths: list[float] = field(default_factory=list)
    widths_alone: list[float] = field(default_factory=list)
    ratios_alone: list[float] = field(default_factory=list)
    """Error of the labels-only estimate over the half-width of its interval."""
    decided: int = 0
    """Decisions (of any direction) at the true state of affairs."""
    decided_alone: int = 0
    wrong_pass: int = 0
    wrong_fail: int = 0
    right: int = 0
    """Right decisions of a gate whose target is away from the truth."""
    right_alone: int = 0

    @property
    def coverage(self) -> float:
        """Coverage of the corrected interval."""
        return self.covered / self.studies

    @property
    def width(self) -> float:
        """Mean width over that of a labels-only interval with the same coverage."""
        # The labels-only interval is stretched about its centre until it covers as often.
        stretch = float(np.quantile(self.ratios_alone, min(1.0, self.coverage)))
        return float(np.mean(self.widths)) / (float(np.mean(self.widths_alone)) * stretch)


def _interval(tally: Tally, truth_: float, ends: tuple[float, float] | None) -> None:
    low, high = ends or PAIR
    tally.covered += low <= truth_ <= high
    tally.widths.append(high - low)


def _alone(tally: Tally, truth_: float, value: float, ends: tuple[float, float] | None) -> None:
    low, high = ends or PAIR
    half = max((high - low) / 2, 1e-9)
    tally.covered_alone += low <= truth_ <= high
    tally.widths_alone.append(high - low)
    # The interval need not be symmetric, so its own centre counts.
    tally.ratios_alone.append(abs(truth_ - (low + high) / 2) / half)


@dataclass(frozen=True)
class Study:
    """The labelled samples of one study."""

    places: NDArray[np.int64]
    human: tuple[Numbers, Numbers]
    judge: tuple[Numbers, Numbers]

    @property
    def pairs(self) -> PairLabels:
        """The labels of the pair."""
        return PairLabels(self.places, (self.human[0], self.judge[0]), (self.human[1], self.judge[1]))

    def of_first(self) -> Labels:
        """The labels of the first system alone."""
        return Labels.of(self.places.tolist(), self.human[0], self.judge[0])


def drawn(cell: Cell, found: Systems, source: np.random.Generator) -> Study:
    """Draw samples, and up to three contexts of each."""
    size = len(found.judge[0])
    places = source.choice(np.arange(size), cell.labelled, replace=False)
    sides = []
    for human, judge in zip(found.human, found.judge, strict=True):
        chosen = np.argsort(source.random((len(places), human.shape[1])), axis=1)[:, :CONTEXTS_LABELLED]
        sides.append([np.take_along_axis(each[places], chosen, axis=1).mean(axis=1) for each in (human, judge)])
    (one, two) = sides
    return Study(places, (one[0], two[0]), (one[1], two[1]))


def column(values: Numbers) -> Column:
    """Scores of every sample, in [0, 1]."""
    every = np.ones(len(values), np.bool_)
    return Column(values, every, ~every, UNIT, True)


def pair_tally(cell: Cell, studies: int, seed: int) -> Tally:
    """Paired differences, comparisons and drops of one cell; labels are uniform."""
    tally, source = Tally(), np.random.default_rng(seed)
    first, second = truth(cell)
    true = first - second
    for _ in range(studies):
        found = systems(cell, source)
        study = drawn(cell, found, source)
        one, two = (column(each.mean(axis=1)) for each in found.judge)
        labels = study.pairs.differences()
        names = None if found.clusters is None else found.clusters.tolist()
        own = None if found.clusters is None else found.clusters[study.places].tolist()
        corrected = correct_pairs(one.values - two.values, labels, PAIR, clusters=names).corrected
        alone = paired_test(labels.human, PAIR, clusters=own)
        tally.studies += 1
        _interval(tally, true, corrected.interval.ends)
        _alone(tally, true, alone.difference or 0.0, alone.interval.ends)
        tally.decided += corrected.p is not None and corrected.p <= 0.05
        tally.decided_alone += alone.p is not None and alone.p <= 0.05
        # The second system is the new build; a drop equal to the allowed one must not pass, and none must not fail.
        labelled = {"m": study.pairs.exchanged()}
        allowed, pair = max(true, 0.0), {"m": (two, one)}
        limit = drop_decisions(pair, {"m": allowed}, clusters=names, labels=labelled)["m"].verdict
        tally.wrong_pass += limit is GateVerdict.PASS
        tally.wrong_fail += limit is GateVerdict.FAIL and not true > 0
        wide = {"m": allowed + 0.15}
        far = drop_decisions(pair, wide, clusters=names, labels=labelled)["m"].verdict
        tally.right += far is GateVerdict.PASS
        people = {"m": (column(study.human[1]), column(study.human[0]))}
        tally.right_alone += drop_decisions(people, wide, clusters=own)["m"].verdict is GateVerdict.PASS
    return tally


def mean_tally(cell: Cell, studies: int, seed: int) -> Tally:
    """Corrected means and minimums of the first system of one cell."""
    tally, source = Tally(), np.random.default_rng(seed)
    true, _ = truth(cell)
    for _ in range(studies):
        found = systems(cell, source)
        study = drawn(cell, found, source)
        one, labels = column(found.judge[0].mean(axis=1)), study.of_first()
        names = None if found.clusters is None else found.clusters.tolist()
        own = None if found.clusters is None else found.clusters[study.places].tolist()
        corrected = correct(one.values, labels, UNIT, clusters=names).corrected
        alone = mean_interval(study.human[0], UNIT, clusters=own)
        tally.studies += 1
        _interval(tally, true, corrected.interval.ends)
        _alone(tally, true, alone.value or 0.0, alone.interval.ends)
        limit = gate_minimum(one, true, clusters=names, labels=labels).verdict
        tally.wrong_pass += limit is GateVerdict.PASS
        tally.wrong_fail += limit is GateVerdict.FAIL
        low = true - 0.12
        far = gate_minimum(one, low, clusters=names, labels=labels).verdict
        tally.right += far is GateVerdict.PASS
        tally.right_alone += gate_minimum(column(study.human[0]), low, clusters=own).verdict is GateVerdict.PASS
    return tally
