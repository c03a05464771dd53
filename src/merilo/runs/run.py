"""One evaluation on disk: a directory that is complete in itself and can be shown, recomputed and audited.

::

    RUN/
      manifest.json    what was evaluated: data, metrics, judges, versions (same input, same bytes)
      outcomes.jsonl   one line for each sample and metric, in dataset order, then metric order
      summary.json     the aggregates
      seal.json        digests that tie the other files together (runs/seal.py)
      usage.json       requests, tokens, money and time: everything that may differ between equal runs
      store.sqlite     samples, questions, verdicts, raw replies
      ledger.jsonl     every request that was sent and its cost, if a model was asked that may cost something
      labels.jsonl     human labels, if some were attached

`Run.open` compares a run with its seal, so every reader does. The module is long because it defines the content of the
files together with the code that reads them.
"""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self, TypeVar

from merilo.errors import RunError, UsageError
from merilo.runs.directory import local_run
from merilo.runs.files import (
    LABELS,
    MANIFEST,
    OUTCOMES,
    SEAL,
    STORE,
    SUMMARY,
    USAGE,
    check_regular,
    damaged_error,
    missing_text_error,
    no_run,
    reading_outcomes,
    write_file,
)
from merilo.runs.manifest import Aggregate, Manifest, Summary, check_format, read_manifest, read_summary, read_usage
from merilo.runs.outcomes import (
    FAILED,
    SCORED,
    OutcomeRecord,
    may_be_of,
    outcome_from,
    outcome_lines,
    record_in,
    short_outcomes,
)
from merilo.runs.run_metrics import NO_SCALE, left_out_reasons, recorded_scale, resolve_metric
from merilo.runs.seal import Inspected, inspect_seal, publish, stamp
from merilo.runs.store import Store
from merilo.short_repr import short_repr, unknown_attribute

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from os import PathLike
    from pathlib import Path

    from merilo.data.sample import Sample
    from merilo.metrics.base import Outcome
    from merilo.runs.records import StoredQuestion

T = TypeVar("T")

_SLACK: Final = 1e-9
UNSPENT: Final[Mapping[str, object]] = {
    "requests": 0,
    "cached": 0,
    "input_tokens": 0,
    "output_tokens": 0,
    "cost_usd": 0.0,
    "adaptations": {},
}
"""The usage of a run without requests, except its seconds."""


class ByMetric(dict[str, T]):
    """Values by a metric's full text, or by a name such as `context_precision` that only one metric has."""

    def __missing__(self, name: str) -> T:
        try:
            return self[resolve_metric(name, self)]
        except UsageError as error:
            raise KeyError(str(error)) from None


@dataclass(frozen=True, slots=True, repr=False)
class SampleResult:
    """One sample with the outcomes of all metrics."""

    sample: Sample
    outcomes: Mapping[str, Outcome]
    records: Mapping[str, OutcomeRecord]
    """The same outcomes as stored, with the keys of their questions."""

    @classmethod
    def of(cls, sample: Sample, records: Sequence[OutcomeRecord]) -> SampleResult:
        """Return the sample with these records of its outcomes, in the order of the metrics."""
        by_metric = {record["metric"]: record for record in records}
        try:
            outcomes = ByMetric({name: outcome_from(record) for name, record in by_metric.items()})
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise RunError(
                f"{OUTCOMES} is damaged: an outcome of sample {sample.id!r} cannot be read ({error}). "
                "Repeat the command that wrote the run."
            ) from error
        return cls(sample, outcomes, by_metric)

    @property
    def scores(self) -> ByMetric[float | None]:
        """The score of each metric; None if there is none."""
        return ByMetric({name: record.get("value") for name, record in self.records.items()})

    if not TYPE_CHECKING:  # type checkers report an unknown attribute themselves

        def __getattr__(self, name: str) -> NoReturn:
            """Raise AttributeError that names what was probably meant."""
            raise unknown_attribute("sample", name)


@dataclass(frozen=True, slots=True)
class SampleResults:
    """The samples of a run with their outcomes, read from disk when they are used."""

    run: Run

    def __repr__(self) -> str:
        return short_repr(self, run=self.run.path, samples=len(self))

    def __iter__(self) -> Iterator[SampleResult]:
        return self.run.shown.read_samples()

    def __len__(self) -> int:
        return self.run.done

    def __getitem__(self, index: int) -> SampleResult:
        """Return the sample at a position; a negative one counts from the end. Raises IndexError."""
        position = index + len(self) if index < 0 else index
        found = next(islice(self, position, None), None) if position >= 0 else None
        if found is None:
            raise IndexError(f"The run has {len(self):,} samples, so there is none at {index}.")
        return found


@dataclass(frozen=True, init=False)
class Run:
    """A finished or interrupted run, read from its directory; `merilo.Run` also draws it."""

    path: Path

    def __init__(self, path: str | PathLike[str], *, labels: bool = True) -> None:
        """Open the run in this directory, as `Run.open` does."""
        object.__setattr__(self, "path", local_run(path))  # the class is frozen
        _check_files(self.path)
        if faults := [text for name, text in self._inspected.broken.items() if labels or name != LABELS]:
            raise RunError(faults[0])
        _ = self.manifest  # raises for a damaged one

    @classmethod
    def open(cls, path: str | PathLike[str], *, labels: bool = True) -> Self:
        """Return the run in this directory, or at an address such as s3://bucket/runs/first (a copy is read).

        `labels`: False if the attached labels are not read, so that they may differ from the seal. Raises RunError if
        there is no run, or if one of its files differs from its seal.
        """
        return cls(path, labels=labels)

    @classmethod
    def of(cls, run: Run, **changed: object) -> Self:
        """Return an open run as one of this class, with what was read of it."""
        found = object.__new__(cls)
        found.__dict__.update(run.__dict__, **changed)
        return found

    @cached_property
    def _inspected(self) -> Inspected:
        try:
            return inspect_seal(self.path)
        except OSError as error:
            raise RunError(f"{self.path} cannot be read ({error}). Make it readable.") from error

    def file(self, name: str) -> Path:
        """Return the path with the content of a file of the run, such as `outcomes.jsonl`.

        It may be a part file, see `runs/seal.py`. Raises RunError if the file was changed since the run was opened.
        """
        was = self._inspected
        if name in was.stamps and stamp(self.path / name) != was.stamps[name]:
            now = inspect_seal(self.path)
            if name in now.broken:
                raise RunError(now.broken[name])
            if now.seal != was.seal:
                raise RunError(f"{self.path} was written again since it was opened. Open it again.")
        return was.files.get(name, self.path / name)

    @cached_property
    def manifest(self) -> Manifest:
        """Data, metrics and judges of the evaluation."""
        return read_manifest(self.file(MANIFEST))

    @cached_property
    def metrics(self) -> ByMetric[Aggregate]:
        """Aggregates by the metric's text, in the order given, then composites.

        A name alone works if only one metric has it.
        """
        found = ByMetric({row.metric: row for row in self._summary.metrics})
        if other := sorted(found.keys() ^ {*self.manifest.metrics, *self.manifest.composites}):
            raise damaged_error(self.path / SUMMARY, f"{other[0]} is not in both the summary and the manifest")
        for row in found.values():
            low, high = (NO_SCALE if row.parts else recorded_scale(self.manifest, row.metric)).span
            if row.mean is not None and not low - _SLACK <= row.mean <= high + _SLACK:
                raise damaged_error(self.path / SUMMARY, f"the mean of {row.metric} is outside its range")
        return found

    @property
    def complete(self) -> bool:
        """False if the run was interrupted before its last sample."""
        return self._summary.complete

    @cached_property
    def _summary(self) -> Summary:
        return read_summary(self.file(SUMMARY))

    @property
    def done(self) -> int:
        """Number of samples with outcomes."""
        return self._summary.samples

    @property
    def usage(self) -> Mapping[str, Any]:  # Any: numbers and nulls
        """Requests, cached answers, tokens, cost and seconds."""
        return {name: value for name, value in read_usage(self.file(USAGE)).items() if name != "seal"}

    @property
    def labels(self) -> Path | None:
        """The file of the human labels attached to the run; None if there are none."""
        path = self.file(LABELS)
        return path if path.exists() else None

    @property
    def shown(self) -> Run:
        """The run with the verdicts to show: the judge's own. `merilo.Run` has those by the levels of its labels."""
        return self

    @property
    def view(self) -> tuple[Path, Callable[[StoredQuestion], StoredQuestion]] | None:
        """What `with_answers` was given; None for the run as it is stored."""
        found: tuple[Path, Callable[[StoredQuestion], StoredQuestion]] | None = self.__dict__.get("_viewed")
        return found

    @property
    def _outcomes(self) -> Path:
        return self.file(OUTCOMES) if self.view is None else self.view[0]

    def with_answers(self, outcomes: Path, answered: Callable[[StoredQuestion], StoredQuestion]) -> Run:
        """Return the run with the records of another file of outcomes, and questions with other answers."""
        return Run.of(self, _viewed=(outcomes, answered))

    @property
    def samples(self) -> SampleResults:
        """The samples with outcomes, in dataset order: iterable, read lazily; `samples[0]` and `len(samples)` work."""
        return SampleResults(self)

    def __len__(self) -> int:
        return self.done

    def __iter__(self) -> Iterator[SampleResult]:
        return self.shown.read_samples()

    def __getitem__(self, metric: str) -> Aggregate:
        """Return the aggregate of a metric, by name or full text. Raises KeyError for another name.

        `merilo.Run` has the one that every page shows: corrected by the human labels attached to the run.
        """
        try:
            return self._reported[metric]
        except KeyError:
            if next(self.records_of([metric]), None) is not None:
                raise KeyError(f"{metric!r} is a sample: use run.sample({metric!r}).") from None
            raise

    @property
    def _reported(self) -> ByMetric[Aggregate]:
        """The aggregates to report."""
        return self.metrics

    def __getattr__(self, name: str) -> Any:  # Any: raises, for every name that the class does not have
        """Raise AttributeError that names what was probably meant."""
        own = not name.startswith("_") and name in self.metrics
        raise unknown_attribute("run", name, f"use run[{name!r}]" if own else "")

    def kept(self, make: Callable[[Run], T]) -> T:
        """Return what `make` returns for this run; kept until other labels are attached to it."""
        kept: dict[object, tuple[object, T]] = self.__dict__.setdefault("_kept", {})
        labels = self.path / LABELS
        state = stamp(labels) if labels.exists() else None
        if make not in kept or kept[make][0] != state:
            kept[make] = state, make(self)
        return kept[make][1]

    def mean(self, metric: str) -> float | None:
        """Return the mean of a metric as in `run[metric]`; None if no sample was scored."""
        return self[metric].mean

    def values(self, metric: str) -> list[float | None]:
        """Return the score of each sample in dataset order, None if it has none."""
        return [record.get("value") for record in self.shown.brief_records([metric_in(self, metric)])]

    def read_samples(self, wanted: Collection[str] | None = None) -> Iterator[SampleResult]:
        """Yield every sample with outcomes, in dataset order; `samples` is the public way to them.

        `wanted`: the ids of the samples to yield; the outcomes of others are not decoded. None: all.
        """
        with closing(open_store(self)) as store:
            records = self.records() if wanted is None else self.records_of(wanted)
            for sample_id, own in groupby(records, key=itemgetter("sample")):
                sample = store.sample(sample_id)
                if sample is None:
                    raise missing_text_error(self.path, sample_id)
                yield SampleResult.of(sample, list(own))

    def sample(self, sample_id: str) -> SampleResult:
        """Return one sample by its id. Raises RunError if the run has no such sample or no outcome of it yet."""
        found = next(self.shown.read_samples([sample_id]), None)
        if found is None:
            raise RunError(f"{self.path} has no outcome of a sample with the id {sample_id!r}.")
        return found

    def asked(self, keys: Sequence[str]) -> list[StoredQuestion]:
        """Return the questions under these hex keys, with answers, rubrics and raw replies. Ignores unknown keys."""
        with closing(open_store(self)) as store:
            found = [asked for key in keys if (asked := store.asked(bytes.fromhex(key))) is not None]
        return found if self.view is None else [*map(self.view[1], found)]

    def records(self) -> Iterator[OutcomeRecord]:
        """Yield every outcome as a JSON-able record, in dataset order, then metric order."""
        return (record for _, record in self.lines())

    def lines(self) -> Iterator[tuple[bytes, OutcomeRecord]]:
        """Yield the line of every outcome with its record, in the order of `records`."""
        path = self._outcomes
        with reading_outcomes(path):
            yield from ((line, record_in(line)) for line in outcome_lines(path))

    def records_of(self, samples: Collection[str], metrics: Collection[str] | None = None) -> Iterator[OutcomeRecord]:
        """Yield the outcomes of these samples as `records` does; the lines of others are not parsed.

        `metrics`: full texts; None: all.
        """
        path = self._outcomes
        with reading_outcomes(path):
            for line in outcome_lines(path):
                if may_be_of(line, samples, metrics):
                    record = record_in(line)
                    if record["sample"] in samples and (metrics is None or record["metric"] in metrics):
                        yield record

    def brief_records(
        self, metrics: Collection[str], *, whole: Collection[str] = frozenset()
    ) -> Iterator[OutcomeRecord]:
        """Yield the outcomes of these metrics (full texts) as `records` does, without evidence, counts and trail.

        Memory does not grow with the run. `whole`: those of `metrics` whose records are yielded whole. Raises RunError
        if the outcomes are missing or damaged.
        """
        path, line = self._outcomes, b""

        def noted() -> Iterator[bytes]:
            nonlocal line
            for line in outcome_lines(path):  # noqa: UP028  the line is read below
                yield line

        with reading_outcomes(path):
            for sample, metric, state, value in short_outcomes(noted(), frozenset(metrics)):
                if metric in whole:
                    yield record_in(line)
                elif metric is not None and state == SCORED:
                    yield {"sample": sample, "metric": metric, "outcome": "score", "value": value}
                elif metric is not None:
                    yield {"sample": sample, "metric": metric, "outcome": "failed" if state == FAILED else "undefined"}


def open_store(run: Run) -> Store:
    """Return the open store of a run, for reading. Raises RunError if it was changed since the run was opened."""
    return Store.read(run.file(STORE))


def unchecked_run(path: Path) -> Run:
    """Return the run in a directory without comparing it with its seal, for code that then checks or repairs it."""
    run = object.__new__(Run)
    object.__setattr__(run, "path", path)  # the class is frozen
    return run


def opened(run: Run | str | PathLike[str], *, labels: bool = True) -> Run:
    """Return the run, opened if a directory was given; `labels` as in `Run.open`. Raises RunError."""
    return run if isinstance(run, Run) else Run.open(run, labels=labels)


def metric_in(run: Run, name: str) -> str:
    """Return the full text of the run's only metric with this name. Raises UsageError that suggests names."""
    found = run.manifest
    return resolve_metric(
        name, found.metrics, composites=found.composites, left_out=left_out_reasons(found, name), where=run.path
    )


def _check_files(path: Path) -> None:
    """Raise RunError if a directory does not contain a run, or contains one of another format."""
    try:
        found = (path / MANIFEST).is_file() or (path / SEAL).is_file()
        if path.is_dir():
            check_regular(path)
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be opened ({error}). Name a run directory.") from error
    if not found:
        raise no_run(path, MANIFEST)
    check_format(path / MANIFEST)


def json_text(value: object) -> str:
    """Return the content of a JSON file of a run."""
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def publish_new(
    path: Path, manifest: Manifest, summary: Mapping[str, object], usage: Mapping[str, object], store: Store
) -> None:
    """Publish a new run, whose outcomes are in their part file, with the copy of its manifest in the store."""
    texts = {MANIFEST: json_text(manifest.to_fields()), SUMMARY: json_text(summary)}
    store.put_copy(MANIFEST, texts[MANIFEST])
    publish(path, texts, streamed=True, usage=usage, store=store)


def write_json(path: Path, value: object) -> None:
    """Write a JSON file so that a reader sees the old or the new one, never a part of one."""
    write_file(path, json_text(value))
