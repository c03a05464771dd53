"""The scores of a finished run as columns of numbers, read in one pass over its outcomes."""

from __future__ import annotations

import json
import re
from array import array
from collections import Counter
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from merilo.errors import RunError, UsageError
from merilo.metrics.text import is_called
from merilo.runs import shapes
from merilo.runs.clusters import clusters, without_cluster
from merilo.runs.run import OUTCOMES, open_store, opened
from merilo.runs.scales import recorded_scale
from merilo.runs.telling import cut_short
from merilo.stats.column import Column

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from merilo.runs.run import Run
    from merilo.runs.scales import Scale

_TEXT = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_NUMBERS = rb"\{(?:" + _TEXT + rb":(?:-?[0-9]+|null),?)+\}"
_LINE: Final = re.compile(
    rb'\{"sample":(' + _TEXT + rb'),"metric":(' + _TEXT + rb'),"outcome":"(?:score","value":(-?[0-9][^,]*)'
    rb'(?:,"counts":(' + _NUMBERS + rb'))?,"evidence":|(undefined)"|failed")'
)
"""The beginning of a line as this merilo writes it; whatever else is JSON is read as such."""
_SLACK = 1e-9
_SHOWN = 5
_SCORED, _UNDEFINED, _FAILED = 0, 1, 2
_STATES: Final = {"score": _SCORED, "undefined": _UNDEFINED, "failed": _FAILED}


@dataclass(frozen=True, eq=False)
class RunScores:
    """What a run says of its samples, metric by metric, as columns of numbers in one order of samples."""

    run: Run
    ids: tuple[str, ...]
    """The samples' ids, in dataset order."""
    columns: Mapping[str, Column]
    """By the metric's whole text, in the run's order; composites, which have no value of a sample, are not there."""
    clusters: tuple[Hashable, ...] | None
    """The name of each sample's cluster; None where each stands alone."""
    counts: Mapping[str, Mapping[str, NDArray[np.float64]]]
    """By metric and name of the count, one for each sample, 0 where it has no score; without those that some score
    could not give. Empty unless asked for.
    """

    def at(self, positions: Sequence[int]) -> RunScores:
        """The same of the samples in these places, in this order."""
        import numpy as np

        places = np.asarray(positions, dtype=np.intp)
        kept: list[int] = places.tolist()
        columns = {
            metric: replace(
                column, values=column.values[places], scored=column.scored[places], failed=column.failed[places]
            )
            for metric, column in self.columns.items()
        }
        return RunScores(
            run=self.run,
            ids=tuple([self.ids[place] for place in kept]),
            columns=columns,
            clusters=None if self.clusters is None else tuple([self.clusters[place] for place in kept]),
            counts={
                metric: {name: each[places] for name, each in named.items()} for metric, named in self.counts.items()
            },
        )


def read_scores(
    run: Run | str | Path,
    *,
    metrics: Sequence[str] | None = None,
    cluster: str | None = None,
    with_counts: bool = False,
) -> RunScores:
    """The scores of a run; of an interrupted one those of the samples so far.

    `metrics`: whole texts, or names where one metric alone is called so; None: all. `cluster`: a field of the samples
    or a key of their metadata; None: the one that the run was made with, if any; "": none.
    Raises UsageError for a metric that the run has not, DataError where samples are in no cluster, RunError where
    the run cannot be read or has no outcome.
    """
    this = opened(run)
    wanted = _wanted(this, metrics)
    ids, gathered = _read(this.file(OUTCOMES), wanted, with_counts=with_counts)
    if not ids:
        raise RunError(f"{this.path} has no outcome yet; run it to its end.")
    if len(ids) != this.done:
        raise cut_short(this.path, this.done, len(ids))
    columns = {
        metric: _column(each, recorded_scale(this.manifest, metric), metric, ids) for metric, each in gathered.items()
    }
    name = this.manifest.cluster if cluster is None else cluster
    return RunScores(
        run=this,
        ids=ids,
        columns=columns,
        clusters=_clusters(this, name, ids) if name else None,
        counts={metric: each.known_counts(len(ids)) for metric, each in gathered.items()} if with_counts else {},
    )


@dataclass(slots=True)
class _Gathered:
    """The outcomes of one metric."""

    values: array[float] = field(default_factory=lambda: array("d"))
    states: bytearray = field(default_factory=bytearray)
    counts: dict[str, array[float]] = field(default_factory=dict[str, "array[float]"])
    unknown: set[str] = field(default_factory=set[str])
    """Counts that some score could not give."""

    def count(self, counts: Mapping[str, int | None]) -> None:
        """Take in the counts of the sample whose outcome was taken in last."""
        place = len(self.values) - 1
        for name, amount in counts.items():
            if amount is None:
                self.unknown.add(name)
                continue
            found = self.counts.setdefault(name, array("d"))
            if len(found) < place:
                found.extend([0.0] * (place - len(found)))
            found.append(amount)

    def known_counts(self, samples: int) -> dict[str, NDArray[np.float64]]:
        """Each count that every score could give, one number for each sample."""
        import numpy as np

        found: dict[str, NDArray[np.float64]] = {}
        for name, amounts in self.counts.items():
            if name not in self.unknown:
                found[name] = np.zeros(samples)
                found[name][: len(amounts)] = amounts
        return found


def _read(path: Path, wanted: Sequence[str], *, with_counts: bool) -> tuple[tuple[str, ...], dict[str, _Gathered]]:
    """The ids of all samples, and the outcomes of the wanted metrics. Raises RunError."""
    try:
        with path.open("rb") as lines:
            return _gather(_outcomes(lines, frozenset(wanted), with_counts=with_counts), wanted)
    except FileNotFoundError:
        raise RunError(f"{path} does not exist: the run was stopped before it wrote it; run it again.") from None
    except (OSError, ValueError) as error:
        raise RunError(f"{path} is damaged ({error}); run it again with the same directory.") from error


def _gather(outcomes: Iterator[_Outcome], wanted: Sequence[str]) -> tuple[tuple[str, ...], dict[str, _Gathered]]:
    """What `_read` gives. Raises ValueError unless each sample has one outcome of each metric."""
    gathered = {metric: _Gathered() for metric in wanted}
    ids: list[str] = []
    for sample, metric, state, value, counts in outcomes:
        if not ids or sample != ids[-1]:
            ids.append(sample)
        if metric is None:
            continue
        found = gathered[metric]
        if len(found.states) != len(ids) - 1:
            raise ValueError(f"sample {sample!r}, or the one before it, has not one outcome of {metric}")
        found.values.append(value)
        found.states.append(state)
        if counts:
            found.count(counts)
    if len(set(ids)) < len(ids):
        twice = next(sample for sample, times in Counter(ids).items() if times > 1)
        raise ValueError(f"sample {twice!r} is there twice")
    if any(len(each.states) != len(ids) for each in gathered.values()):
        raise ValueError(f"the last sample, {ids[-1] if ids else ''!r}, has not one outcome of each metric")
    return tuple(ids), gathered


class _Outcome(NamedTuple):
    """What is needed of a line."""

    sample: str
    metric: str | None
    """None for one that is not wanted; nothing of it is read."""
    state: int
    value: float
    counts: Mapping[str, int | None] | None


def _outcomes(lines: Iterable[bytes], wanted: frozenset[str], *, with_counts: bool) -> Iterator[_Outcome]:
    """What each line says. Raises ValueError for one that is no outcome."""
    metrics: dict[bytes, str | None] = {}
    raw, sample = b"", ""
    for line in lines:
        found = _LINE.match(line)
        if found is None or not line.endswith(b"}\n"):
            outcome = _from_json(line, wanted)
            raw, sample = b"", outcome.sample
            yield outcome
            continue
        if found[1] != raw:
            raw = found[1]
            sample = _text(raw)
        if found[2] not in metrics:
            name = _text(found[2])
            metrics[found[2]] = name if name in wanted else None
        metric, value, counts = metrics[found[2]], found[3], None
        if metric is not None and with_counts and found[4]:
            counts = _counts(found[4])
        if value is not None:
            yield _Outcome(sample, metric, _SCORED, float(value), counts)
        else:
            yield _Outcome(sample, metric, _UNDEFINED if found[5] else _FAILED, 0.0, None)


@lru_cache(maxsize=4_096)
def _counts(text: bytes) -> dict[str, int | None]:
    """Counts as JSON; most samples have the same few."""
    found: dict[str, int | None] = json.loads(text)
    return found


def _text(quoted: bytes) -> str:
    """The text that stands in quotation marks."""
    return str(json.loads(quoted)) if b"\\" in quoted else quoted[1:-1].decode()


def _from_json(line: bytes, wanted: frozenset[str]) -> _Outcome:
    """What a line says that is not laid out as ours are. Raises ValueError."""
    try:
        record: dict[str, Any] = json.loads(line)  # Any: JSON that nobody has looked at yet
        sample, metric = str(record["sample"]), str(record["metric"])
        state = _STATES[record["outcome"]]
        value = float(record["value"]) if state == _SCORED else 0.0
        counts: dict[str, int | None] | None = record.get("counts")
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"a line is no outcome: {type(error).__name__} {error}") from error
    if counts is not None and (bad := shapes.COUNTS(counts)):
        raise ValueError(f"the count {bad} of a score is not a number")
    return _Outcome(sample, metric if metric in wanted else None, state, value, counts)


def _wanted(run: Run, metrics: Sequence[str] | None) -> tuple[str, ...]:
    """The whole texts of the metrics asked for, in the run's order. Raises UsageError."""
    there = tuple(run.manifest.metrics)
    if metrics is None:
        return there
    chosen = {_whole(name, there, run) for name in ([metrics] if isinstance(metrics, str) else metrics)}
    return tuple(text for text in there if text in chosen)


def _whole(name: str, there: Sequence[str], run: Run) -> str:
    """The whole text of the one metric that is called so."""
    if name in there:
        return name
    same = [text for text in there if is_called(text, name)]
    if len(same) == 1:
        return same[0]
    if same:
        raise UsageError(f"Several metrics of {run.path} are called {name}; write one of {', '.join(same)}.")
    composites = run.manifest.composites
    if any(is_called(text, name) for text in composites):
        raise UsageError(f"{name} is made of means and has no value for a sample; name the metrics it is made of.")
    near = get_close_matches(name, there, n=3)
    advice = f"did you mean {' or '.join(near)}?" if near else f"it has {', '.join(there[:_SHOWN])}"
    more = "" if near else f"{f' and {len(there) - _SHOWN} more' * (len(there) > _SHOWN)}."
    raise UsageError(f"{run.path} has no metric {name!r}; {advice}{more}")


def _column(gathered: _Gathered, scale: Scale, metric: str, ids: Sequence[str]) -> Column:
    """The outcomes as a column. Raises RunError where a score is not finite or lies outside the metric's range."""
    import numpy as np

    values = np.frombuffer(gathered.values, dtype=np.float64)
    states = np.frombuffer(gathered.states, dtype=np.uint8)
    low, high = scale.span
    slack = _SLACK * max(abs(end) for end in (low, high, 1.0) if isfinite(end))
    scored = states == _SCORED
    wrong = scored & ~(np.isfinite(values) & (values >= low - slack) & (values <= high + slack))
    if wrong.any():
        place = int(np.argmax(wrong))
        raise RunError(
            f"{metric} of sample {ids[place]!r} is {values[place]}, which is no finite number from {low:g} to "
            f"{high:g}; nothing can be concluded from it: mend the metric and run it again, or name other metrics."
        )
    return Column(values, scored, states == _FAILED, scale.span, scale.higher_is_better)


def _clusters(run: Run, name: str, ids: Sequence[str]) -> tuple[Hashable, ...]:
    """The cluster of each sample. Raises DataError where one has none, RunError where the run is damaged."""
    store = open_store(run)
    try:
        found = list(islice(clusters(store, name), len(ids)))
    finally:
        store.close()
    if len(found) != len(ids) or any(each.sample != known for each, known in zip(found, ids, strict=True)):
        raise RunError(f"{run.path} is damaged: its outcomes are not those of its samples; run it again.")
    missing = [each.sample for each in found if each.cluster is None]
    if missing:
        raise without_cluster(name, len(missing), missing[:_SHOWN])
    one_of: dict[str, str] = {}
    return tuple([one_of.setdefault(each.cluster, each.cluster) for each in found if each.cluster is not None])
