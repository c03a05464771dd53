"""Rankings of systems by two judges: the systems' means by each judge, and Kendall's tau between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from merilo.metrics.registry import asks_judge
from merilo.results.scores import read_scores
from merilo.stats.agreement_intervals import MIN_SYSTEMS, system_agreement

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from merilo.results.scores import RunScores
    from merilo.runs.run import Run
    from merilo.stats.resampling import Measurement, Resampling


@dataclass(frozen=True, slots=True)
class SystemRanking:
    """The means of several systems by one metric, from two judges."""

    metric: str
    systems: tuple[str, ...]
    means: tuple[tuple[float, float], ...]
    """For each system the means by the first and the second judge, over the samples that both scored."""
    tau: Measurement
    """Kendall's tau-b, in [-1, 1]."""


def rankings(
    first: Sequence[Run], second: Sequence[Run], field: str | None, resampling: Resampling
) -> Iterator[SystemRanking]:
    """Yield a ranking per metric of the systems that both judges scored; nothing with fewer than five systems.

    `field`: the field to cluster samples by. None: by sample id, over all systems.
    """
    pairs = same_data(first, second)
    if len(pairs) < MIN_SYSTEMS:
        return
    names = _system_names([one for one, _ in pairs])
    scores = [(read_scores(one, cluster=field or ""), read_scores(other, cluster="")) for one, other in pairs]
    for metric, version in pairs[0][0].manifest.metrics.items():
        alike = all(run.manifest.metrics.get(metric) == version for pair in pairs for run in pair)
        if alike and asks_judge(metric):
            yield _ranking(metric, names, scores, resampling)


def _ranking(
    metric: str, names: Sequence[str], scores: Sequence[tuple[RunScores, RunScores]], resampling: Resampling
) -> SystemRanking:
    systems, first, second, own = list[str](), list[float](), list[float](), list[str]()
    means: list[tuple[float, float]] = []
    scored_systems: list[str] = []
    for name, (one, other) in zip(names, scores, strict=True):
        places = {sample: place for place, sample in enumerate(other.ids)}
        mine, theirs = one.columns[metric], other.columns[metric]
        start = len(first)
        for place, sample in enumerate(one.ids):
            there = places.get(sample)
            if there is not None and mine.scored[place] and theirs.scored[there]:
                systems.append(name)
                first.append(float(mine.values[place]))
                second.append(float(theirs.values[there]))
                own.append(sample if one.clusters is None else str(one.clusters[place]))
        if size := len(first) - start:
            scored_systems.append(name)
            means.append((sum(first[start:]) / size, sum(second[start:]) / size))
    tau = system_agreement(systems, first, second, clusters=own, resampling=resampling)
    return SystemRanking(metric, tuple(scored_systems), tuple(means), tau)


def same_data(first: Sequence[Run], second: Sequence[Run]) -> list[tuple[Run, Run]]:
    """Return pairs of runs over the same samples, one run of each judge (the first if there are several)."""
    mine, theirs = (_by_data(runs) for runs in (first, second))
    return [(run, theirs[mark]) for mark, run in mine.items() if mark in theirs]


def _by_data(runs: Sequence[Run]) -> dict[str, Run]:
    found: dict[str, Run] = {}
    for run in runs:
        found.setdefault(run.manifest.fingerprint, run)
    return found


def _system_names(runs: Sequence[Run]) -> list[str]:
    """Return the name of each system: the name of its data, or the run directory if several share that name."""
    data = [run.manifest.data for run in runs]
    return [name if data.count(name) == 1 else str(run.path) for name, run in zip(data, runs, strict=True)]
