"""Synthetic studies of a judge with a few human labels: how often does the reported interval cover the true mean?

Shared by tests/stats (200 studies a cell) and benchmarks/coverage.py (2,000). The estimator was chosen on other
generators: beta and binomial scores, 500 samples, means .5, .6, .9 and .97, other error rates. Exception: the cells
with clusters were looked at when the treatment of clusters was chosen.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from merilo.stats.correction import Labels, correct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from merilo.stats.means import MeanEstimate

    Numbers = NDArray[np.float64]

UNIT = (0.0, 1.0)
SCORES = ("0/1", "graded", "4 items")
JUDGES = ("lenient", "strict")
MEANS = (0.5, 0.75, 0.92, 0.98)
LABELLED = (20, 40, 100)
ITEMS, ITEMS_LABELLED = 4, 3
GRADES = 10
"""Steps of a graded score: 0, 0.1 ... 1."""


@dataclass(frozen=True)
class Study:
    """What one cell repeats."""

    scores: str
    judge: str
    mean: float
    labelled: int
    samples: int
    clusters: int = 0
    """Number of clusters; 0 for samples that are independent."""

    def __str__(self) -> str:
        clustered = f" in {self.clusters} clusters" if self.clusters else ""
        return f"{self.scores}, {self.judge}, {self.mean}, {self.labelled} of {self.samples:,}{clustered}, uniform"


def studies_of_labels() -> Iterator[Study]:
    """All cells: each score, judge, mean and number of labels; and clusters."""
    sizes = (200, 1_000, 2_000)
    place = 0
    for scores in SCORES:
        for judge in JUDGES:
            for mean in MEANS:
                for labelled in LABELLED:
                    place += 1
                    yield Study(scores, judge, mean, labelled, sizes[place % 3])
    for scores in SCORES:
        for clusters in (15, 60):
            yield Study(scores, "lenient", 0.75, 60, 600, clusters)


@dataclass(frozen=True)
class Judged:
    """One row for each sample, one column for each item."""

    human: Numbers
    judge: Numbers
    clusters: list[int] | None
    """The cluster of each sample."""


def judged(study: Study, source: np.random.Generator) -> Judged:
    """The samples of one study, labelled by everybody."""
    size = study.samples
    ease = source.normal(size=size)
    names = None
    if study.clusters:
        codes = source.integers(0, study.clusters, size)
        ease = np.sqrt(0.3) * source.normal(size=study.clusters)[codes] + np.sqrt(0.7) * ease
        names = codes.tolist()
    hard = source.random((size, 1)) < 0.3
    false_yes, false_no = (0.45, 0.04) if study.judge == "lenient" else (0.02, 0.3)
    if study.scores == "graded":
        # Normal scores, clipped to the range and rounded: the mean has no formula, so the centre is found numerically.
        raw = _centre(study.mean) + 0.3 * ease
        human = _grades(raw)
        shift = 0.2 if study.judge == "lenient" else -0.2
        says = _grades(raw + np.where(hard[:, 0], shift, 0.0) + 0.08 * source.normal(size=size))
        return Judged(human[:, None], says[:, None], names)
    if study.scores == "0/1":
        human = (ease < ndtri(study.mean)).astype(float)[:, None]
    else:
        easy = ease < ndtri(0.6)
        low = max(0.05, (study.mean - 0.6) / 0.4)
        chance = np.where(easy, (study.mean - 0.4 * low) / 0.6, low)
        human = (source.random((size, ITEMS)) < chance[:, None]).astype(float)
    wrong = np.where(human == 1, false_no * np.where(hard, 2, 0.5), false_yes * np.where(hard, 2, 0.5))
    return Judged(human, np.where(source.random(human.shape) < wrong, 1 - human, human), names)


def _grades(raw: Numbers) -> Numbers:
    return np.round(np.clip(raw, 0, 1) * GRADES) / GRADES


@cache
def _centre(mean: float) -> float:
    """The centre from which cut grades have this mean, by bisection over a fine grid of normal quantiles."""
    normal = ndtri((np.arange(20_000) + 0.5) / 20_000)
    low, high = -1.0, 3.0
    for _ in range(60):
        middle = (low + high) / 2
        below = float(_grades(middle + 0.3 * normal).mean()) < mean
        low, high = (middle, high) if below else (low, middle)
    return high


@dataclass(frozen=True)
class Covered:
    """What the intervals of many studies did."""

    reported: float
    """Share of studies in which the reported interval covers the truth; a study without a report is a miss."""
    human: float
    """The same of the labels alone; NaN if they have no interval."""
    width: float
    """Mean width of the reported interval."""
    narrower: float
    """The same over that of the labels alone; NaN if they have no interval."""
    raw: float
    """Share of studies in which the judge's own interval covers the truth."""


def coverage(study: Study, *, studies: int, seed: int) -> Covered:
    """Of one cell."""
    source = np.random.default_rng([seed, *str(study).encode()])
    rows = list[tuple[float, ...]]()
    truth = study.mean
    for _ in range(studies):
        found = judged(study, source)
        scores = found.judge.mean(axis=1)
        places = source.choice(np.arange(len(scores)), study.labelled, replace=False).tolist()
        human, says = found.human[places], found.judge[places]
        if human.shape[1] > ITEMS_LABELLED:
            kept = np.argsort(source.random(human.shape), axis=1)[:, :ITEMS_LABELLED]
            human, says = (np.take_along_axis(each, kept, axis=1) for each in (human, says))
        labels = Labels.of(places, human.mean(axis=1).tolist(), says.mean(axis=1).tolist())
        result = correct(scores, labels, UNIT, clusters=found.clusters)
        chosen = result.estimate
        alone = _width(result.human)
        width = np.nan if chosen is None else _width(chosen)
        human_hit = np.nan if np.isnan(alone) else _hit(result.human, truth)
        rows.append(
            (chosen is not None and _hit(chosen, truth), human_hit, width, width / alone, _hit(result.raw, truth))
        )
    with np.errstate(all="ignore"):
        means = np.array(rows, dtype=float)
        return Covered(*(float(np.nanmean(each)) if not np.isnan(each).all() else np.nan for each in means.T))


def _hit(estimate: MeanEstimate, truth: float) -> bool:
    ends = estimate.interval.ends
    return ends is not None and ends[0] - 1e-12 <= truth <= ends[1] + 1e-12


def _width(estimate: MeanEstimate) -> float:
    ends = estimate.interval.ends
    return np.nan if ends is None else ends[1] - ends[0]
