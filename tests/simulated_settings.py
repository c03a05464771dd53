"""Made-up runs of several settings whose truth is known: which ones does a ranking call best, worse, or as good?

Shared by tests/commands/compare/test_ranking.py (some studies) and benchmarks/settings.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from merilo.commands.compare.caveats import Pair, PairedLabels
from merilo.commands.compare.run import Runs
from merilo.data.measures import MeasureColumn
from merilo.results.measures import Measure, measure_differences
from merilo.results.scores import RunScores
from merilo.stats.column import Column
from merilo.stats.compare import Policy
from merilo.stats.corrected_pairs import PairLabels

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from merilo.commands.compare.result import Ranking

    Numbers = NDArray[np.float64]

METRIC = "id_recall"
MARGIN = 0.03
_RUN = cast("Any", SimpleNamespace(manifest=SimpleNamespace(judges={}), labels=None))
LABELLED = 40
"""Labelled samples of a study with labels."""


@dataclass(frozen=True)
class Found:
    """Rates over studies in which run 0 is the best, alone or among equals."""

    named: float
    """One run is called better than all others."""
    worse: float
    """Any run is called worse."""
    excluded: float
    """Run 0 is not among those that may be the best."""
    as_good: float
    """Any other run is called at most `MARGIN` worse than every other one."""


def kinds(n: int, k: int, rng: np.random.Generator, lost: float = 0.0) -> dict[str, Callable[[], Numbers]]:
    """Return kinds of scores, n x k: runs are equal in truth, but runs 1, 2, ... lose `lost`."""
    loss, uniform = np.r_[0.0, np.full(k - 1, lost)], rng.random

    def base() -> Numbers:
        return np.clip(rng.normal(0.85, 0.05, (n, 1)) + rng.normal(0, 0.03, (n, k)), 0, 1)

    def redrawn() -> Numbers:
        return np.where(uniform((n, k)) < 0.1, uniform((n, k)) < 0.8 - loss * 10, uniform((n, 1)) < 0.8) * 1.0

    return {
        "0/1 at .8": lambda: (uniform((n, k)) < rng.beta(4, 1, (n, 1)) * (1 - loss / 0.8)) * 1.0,
        "0/1 at .97": lambda: (uniform((n, k)) < 0.97 - loss) * 1.0,
        "0/1, one in ten drawn anew": redrawn,
        "quarters": lambda: rng.binomial(4, rng.beta(8, 2, (n, 1)) * (1 - loss / 0.8), (n, k)) / 4,
        "3 % break": lambda: np.where(uniform((n, k)) < 0.03 + loss / 0.85, 0, base()),
    }


def ranking(
    scores: Numbers,
    clusters: Sequence[int] | None = None,
    truth: Numbers | None = None,
    labelled: NDArray[np.int64] | None = None,
    **options: Any,  # Any: as `Runs.ranking`
) -> Ranking:
    """Return the ranking of these scores, samples x runs; `truth`: what annotators say of the `labelled` samples."""
    ids = tuple(map(str, range(len(scores))))
    columns = [Column.of(own.tolist(), (0.0, 1.0)) for own in scores.T]
    own = None if clusters is None else tuple(clusters)
    names = [f"run{place}" for place in range(len(columns))]
    runs = Runs(
        [RunScores(_RUN, ids, {METRIC: each}, own) for each in columns], names, (), Policy.DROP, judge_only=True
    )
    for one in range(len(columns)):
        for two in range(len(columns)):
            labels = {}
            if truth is not None and labelled is not None:
                parts = (truth[labelled, two], scores[labelled, two]), (truth[labelled, one], scores[labelled, one])
                labels = {METRIC: PairLabels(labelled, *parts)}
            both, named = {METRIC: (columns[two], columns[one])}, (names[one], names[two])
            pair = Pair((runs.scores[one], runs.scores[two]), named, both, PairedLabels(labels), (), Policy.DROP, {})
            pair._equal.append(frozenset())  # no store is read
            runs._pairs[one, two] = pair
    return runs.ranking(METRIC, **options)


def rates(
    kind: str,
    n: int,
    k: int,
    *,
    studies: int,
    seed: int,
    lost: float = 0.0,
    clustered: bool = False,
    labels: bool = False,
) -> Found:
    """Return how often rankings are wrong; `clustered`: five samples that share their scores' luck form a cluster.

    `labels`: the scores are a judge's, which errs on one sample in ten, and on two in ten of the last run.
    """
    found = np.zeros(4)
    for study in range(studies):
        rng = np.random.default_rng([seed, n, k, round(lost * 1000), study, clustered, labels])
        clusters, truth, labelled = None, None, None
        if clustered:
            scores = np.repeat(kinds(max(n // 5, 1), k, rng, lost)[kind](), 5, axis=0)
            moved = rng.random(scores.shape) < 0.3
            scores = np.where(moved, kinds(len(scores), k, rng, lost)[kind](), scores)
            clusters = np.repeat(np.arange(len(scores) // 5), 5).tolist()
        else:
            scores = kinds(n, k, rng, lost)[kind]()
        if labels:
            truth, rate = scores, np.r_[np.full(k - 1, 0.1), 0.2]
            scores = np.where(rng.random(truth.shape) < rate, rng.random(truth.shape) < 0.5, truth).astype(float)
            labelled = np.sort(rng.choice(len(truth), LABELLED, replace=False))
        each = ranking(scores, clusters, truth, labelled, within=MARGIN if lost else None)
        may = each.may_be_best or tuple(range(k))
        worse, good = len(may) < k, [place for place in each.as_good if place]
        found += len(may) == 1, worse, 0 not in may, bool(good)
    return Found(*(found / studies).tolist())


def power(k: int, *, studies: int, seed: int) -> tuple[float, float]:
    """Return how often run 1 is shown to be at most .05 worse: than every other one, and than run 0.

    All runs are equal; 400 samples, differences with a standard deviation of .3.
    """
    found = np.zeros(2)
    for study in range(studies):
        rng = np.random.default_rng([seed, k, study])
        scores = np.clip(0.5 + rng.normal(0, 0.3 / np.sqrt(2), (400, k)), 0, 1)
        good = [1 in ranking(scores, within=0.05, against=against).as_good for against in (None, 0)]
        found += good
    one, other = (found / studies).tolist()
    return one, other


def latencies(n: int, *, studies: int, seed: int, clusters: int | None = None) -> tuple[float, float]:
    """Return how often the intervals of the difference of means and of the ratio of medians cover the truth.

    Log-normal seconds with sigma 1, of which a fifth of the variance is the question's; 1 % take 30 s more. The run
    takes .8 of the time of the base.
    """
    column, size = MeasureColumn("latency_s", "s"), n if clusters is None else clusters
    own = None if clusters is None else (np.arange(n) % clusters).tolist()

    def seconds(rng: np.random.Generator, n: int, size: int) -> tuple[Numbers, Numbers]:
        shared = np.sqrt(0.2) * rng.normal(size=size)[np.arange(n) % size]
        both = [np.exp(shared + np.sqrt(0.8) * rng.normal(size=n)) + 30 * (rng.random(n) < 0.01) for _ in range(2)]
        return both[0], 0.8 * both[1]

    one, two = seconds(np.random.default_rng(seed), 4_000_000, 4_000_000)
    mean, ratio = 0.8 * (np.exp(0.5) + 0.3) - (np.exp(0.5) + 0.3), float(np.median(two) / np.median(one))
    covered = np.zeros(2)
    for study in range(studies):
        values = seconds(np.random.default_rng([seed, n, study]), n, size)
        base, run = ({"latency_s": Measure("latency_s", column, each, own)} for each in values)
        (each,) = measure_differences(base, run)
        for place, (ends, truth) in enumerate(((each["interval"], mean), (each["ratio_interval"], ratio))):
            covered[place] += ends[0] <= truth <= ends[1]
    means, medians = (covered / studies).tolist()
    return means, medians
