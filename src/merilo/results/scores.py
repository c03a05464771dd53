"""The scores of a finished run as columns of numbers, read in one pass over its outcomes."""

from __future__ import annotations

from array import array
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice
from math import isfinite
from typing import TYPE_CHECKING

from merilo.errors import RunError
from merilo.runs.clusters import clusters, without_cluster
from merilo.runs.files import OUTCOMES, reading_outcomes, truncated_error
from merilo.runs.outcomes import FAILED, SCORED, ShortOutcome, outcome_lines, short_outcomes
from merilo.runs.run import Run, metric_in, open_store, opened
from merilo.runs.run_metrics import Scale, recorded_scale
from merilo.stats.column import Column

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence
    from pathlib import Path


_SLACK = 1e-9
_SHOWN = 5


@dataclass(frozen=True, eq=False)
class RunScores:
    """The scores of a run, one column of numbers per metric, all in the same order of samples."""

    run: Run
    ids: tuple[str, ...]
    """The samples' ids, in dataset order."""
    columns: Mapping[str, Column]
    """By the metric's full text, in the run's order; without composites, which have no value per sample."""
    clusters: tuple[Hashable, ...] | None
    """The name of each sample's cluster; None if samples are not clustered."""

    def at(self, positions: Sequence[int]) -> RunScores:
        """Return the scores of the samples at these positions, in this order."""
        import numpy as np

        places = np.asarray(positions, dtype=np.intp)
        indices: list[int] = places.tolist()
        columns = {
            metric: replace(
                column, values=column.values[places], scored=column.scored[places], failed=column.failed[places]
            )
            for metric, column in self.columns.items()
        }
        return RunScores(
            run=self.run,
            ids=tuple([self.ids[place] for place in indices]),
            columns=columns,
            clusters=None if self.clusters is None else tuple([self.clusters[place] for place in indices]),
        )


def read_scores(
    run: Run | str | Path, *, metrics: Sequence[str] | None = None, cluster: str | None = None, like: Sequence[str] = ()
) -> RunScores:
    """Return the scores of a run; for an interrupted run, those of the samples so far.

    `metrics`: full texts, or unambiguous names; None: all. `cluster`: a field of the samples or a key of their
    metadata; None: the one that the run was made with, if any; "": none. `like`: the ids of another run; equal
    ids share one text object, which saves memory for two large runs. Raises UsageError for a metric that the run does
    not have, DataError if samples have no cluster, and RunError if the run cannot be read or has no outcome.
    """
    this = opened(run)
    wanted = _wanted(this, metrics)
    ids, gathered = _read(this.file(OUTCOMES), wanted, like=like)
    if not ids:
        raise RunError(f"{this.path} has no outcomes yet. To resume the run, repeat its command.")
    if len(ids) != this.done:
        raise truncated_error(this.path, this.done, len(ids))
    columns = {
        metric: _column(each, recorded_scale(this.manifest, metric), metric, ids) for metric, each in gathered.items()
    }
    name = this.manifest.cluster if cluster is None else cluster
    return RunScores(run=this, ids=ids, columns=columns, clusters=_clusters(this, name, ids) if name else None)


@dataclass(slots=True)
class _Gathered:
    """The outcomes of one metric while they are read."""

    values: array[float] = field(default_factory=lambda: array("d"))
    states: bytearray = field(default_factory=bytearray)


def _read(path: Path, wanted: Sequence[str], *, like: Sequence[str]) -> tuple[tuple[str, ...], dict[str, _Gathered]]:
    """Return the ids of all samples, and the outcomes of the wanted metrics. Raises RunError."""
    with reading_outcomes(path):
        return _gather(short_outcomes(outcome_lines(path), frozenset(wanted)), wanted, like)


def _gather(
    outcomes: Iterator[ShortOutcome], wanted: Sequence[str], like: Sequence[str]
) -> tuple[tuple[str, ...], dict[str, _Gathered]]:
    """Return ids and outcomes for `_read`. Raises ValueError unless each sample has one outcome of each metric."""
    gathered = {metric: _Gathered() for metric in wanted}
    ids: list[str] = []
    for sample, metric, state, value in outcomes:
        if not ids or sample != ids[-1]:
            place = len(ids)  # of two equal texts, one is held
            ids.append(like[place] if place < len(like) and like[place] == sample else sample)
        if metric is None:
            continue
        found = gathered[metric]
        if len(found.states) != len(ids) - 1:
            raise ValueError(f"sample {sample!r}, or the one before it, does not have exactly one outcome of {metric}")
        found.values.append(value)
        found.states.append(state)
    if _may_repeat(ids) and len(set(ids)) < len(ids):
        twice = next(sample for sample, times in Counter(ids).items() if times > 1)
        raise ValueError(f"sample {twice!r} occurs twice")
    if any(len(each.states) != len(ids) for each in gathered.values()):
        last = ids[-1] if ids else ""
        raise ValueError(f"the last sample, {last!r}, does not have exactly one outcome of each metric")
    return tuple(ids), gathered


def _may_repeat(ids: Sequence[str]) -> bool:
    """Return False if no two ids are equal, from their hashes: an eighth of the memory of a set."""
    import numpy as np

    hashes = np.sort(np.fromiter(map(hash, ids), np.int64, len(ids)))
    return bool((hashes[1:] == hashes[:-1]).any())


def _wanted(run: Run, metrics: Sequence[str] | None) -> tuple[str, ...]:
    """Return the full texts of the requested metrics, in the run's order. Raises UsageError."""
    there = tuple(run.manifest.metrics)
    if metrics is None:
        return there
    chosen = {metric_in(run, name) for name in ([metrics] if isinstance(metrics, str) else metrics)}
    return tuple(text for text in there if text in chosen)


def _column(gathered: _Gathered, scale: Scale, metric: str, ids: Sequence[str]) -> Column:
    """Return the outcomes as a column. Raises RunError if a score is not finite or outside the metric's range."""
    import numpy as np

    values = np.frombuffer(gathered.values, dtype=np.float64)
    states = np.frombuffer(gathered.states, dtype=np.uint8)
    low, high = scale.span
    slack = _SLACK * max(abs(end) for end in (low, high, 1.0) if isfinite(end))
    scored = states == SCORED
    wrong = scored & ~(np.isfinite(values) & (values >= low - slack) & (values <= high + slack))
    if wrong.any():
        place = int(np.argmax(wrong))
        raise RunError(
            f"{metric} of sample {ids[place]!r} is {values[place]}, not a finite number from {low:g} to {high:g}. "
            "Fix the metric and run it again, or choose other metrics."
        )
    return Column(values, scored, states == FAILED, scale.span, scale.higher_is_better)


def _clusters(run: Run, name: str, ids: Sequence[str]) -> tuple[Hashable, ...]:
    """Return the cluster of each sample. Raises DataError if one has none, RunError if the run is damaged."""
    with closing(open_store(run)) as store:
        found = list(islice(clusters(store, name), len(ids)))
    if len(found) != len(ids) or any(each.sample != known for each, known in zip(found, ids, strict=True)):
        raise RunError(f"{run.path} is damaged: its outcomes do not match its samples. Run it again.")
    missing = [each.sample for each in found if each.cluster is None]
    if missing:
        raise without_cluster(name, len(missing), missing[:_SHOWN])
    one_of: dict[str, str] = {}
    return tuple([one_of.setdefault(each.cluster, each.cluster) for each in found if each.cluster is not None])
