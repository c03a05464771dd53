"""One evaluation on disk: a directory that can be shown, replayed and audited alone.

::

    RUN/
      manifest.json    what was evaluated: data, metrics, judges, versions (same input, same bytes)
      outcomes.jsonl   one line for each sample and metric, in dataset order, then metric order
      summary.json     the aggregates
      usage.json       requests, tokens, money and time: everything that may differ between equal runs
      store.sqlite     samples, questions, verdicts, raw replies
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from merilo.errors import RunError
from merilo.runs.outcomes import OutcomeRecord, outcome_from
from merilo.runs.store import FORMAT, Asked, Store

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from merilo.data.sample import Sample
    from merilo.metrics.base import Outcome

T = TypeVar("T")

MANIFEST = "manifest.json"
OUTCOMES = "outcomes.jsonl"
SUMMARY = "summary.json"
USAGE = "usage.json"
STORE = "store.sqlite"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One metric over the samples of a run."""

    metric: str
    mean: float | None
    """Mean over the scored samples; None when none was scored."""
    interval: tuple[float, float] | None
    """Confidence interval of the mean over questions; None when it cannot be told (see `note`)."""
    level: float
    """The interval's confidence level, e.g. 0.95."""
    bounds: tuple[float | None, float | None] | None
    """The mean if every failed sample had the worst, and the best, value of the metric's range; None at the
    end where the range is infinite.
    """
    scored: int
    undefined: int
    failed: int
    counts: Mapping[str, int | None] = field(default_factory=dict[str, int | None])
    """Sums of the scores' counts; None for a count that some verdict cannot give."""
    reasons: Mapping[str, int] = field(default_factory=dict[str, int])
    """Why samples are undefined or failed → how many; the most frequent ones."""
    note: str = ""
    """Why there is no interval; empty when there is one."""
    flagged: int = 0
    """Scored samples of which something could not be read and was scored all the same."""
    flags: Mapping[str, int] = field(default_factory=dict[str, int])
    """What that was → on how many samples; the most frequent ones."""
    parts: tuple[str, ...] = ()
    """The metrics whose means make the mean of a composite, which has no value of a sample; else empty."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What was evaluated and by whom; equal input gives equal bytes."""

    merilo: str
    data: str
    fingerprint: str
    """Digest of the samples evaluated, in order."""
    samples: int
    skipped: tuple[str, ...]
    """One sentence for each record that was left out."""
    metrics: Mapping[str, int]
    """Text of each metric → its version, in the order asked for; the parts of composites are among them."""
    left_out: Mapping[str, str]
    """Metrics that could not be computed → why."""
    judges: Mapping[str, Mapping[str, object]]
    """Role → name and fingerprint of the judge."""
    splitter: str
    language: str | None = None
    notes: tuple[str, ...] = ()
    composites: Mapping[str, int] = field(default_factory=dict[str, int])
    """Text of each composite → its version, in the order asked for."""
    format: int = FORMAT

    def differences(self, other: Manifest) -> tuple[str, ...]:
        """What differs between two manifests, one phrase for each field that moves numbers; empty when nothing."""
        names = ("fingerprint", "metrics", "composites", "judges", "splitter", "language")
        mine, theirs = asdict(self), asdict(other)
        return tuple(name for name in names if _plain(mine[name]) != _plain(theirs[name]))


class ByMetric(dict[str, T]):
    """Values by a metric's whole text; `found["context_precision"]` finds the only one of that name."""

    def __missing__(self, name: str) -> T:
        texts = [text for text in self if re.split(r"[(@]", text)[0] == name]
        if len(texts) == 1:
            return self[texts[0]]
        which = f"several are called so: {', '.join(texts)}" if texts else f"there are {', '.join(self)}"
        raise KeyError(f"{name} ({which})")


@dataclass(frozen=True, slots=True)
class SampleResult:
    """One sample with the outcomes of all metrics."""

    sample: Sample
    outcomes: Mapping[str, Outcome]
    records: Mapping[str, OutcomeRecord]
    """The same outcomes as stored, with the keys of the questions behind them."""


@dataclass(frozen=True)
class Run:
    """A finished or interrupted run, read from its directory."""

    path: Path

    @classmethod
    def open(cls, path: str | Path) -> Run:
        """The run in this directory. Raises RunError when there is none."""
        run = cls(Path(path))
        try:
            found = (run.path / MANIFEST).is_file()
        except (OSError, ValueError) as error:
            raise RunError(f"{run.path} cannot be opened ({error}).") from error
        if not found:
            raise RunError(f"{run.path} is not the directory of a run: it has no {MANIFEST}.")
        if run.manifest.format > FORMAT:
            raise RunError(
                f"{run.path} has format {run.manifest.format}, this merilo reads up to {FORMAT}; upgrade merilo."
            )
        return run

    @cached_property
    def manifest(self) -> Manifest:
        """What was evaluated."""
        fields = _read_json(self.path / MANIFEST)
        try:
            fields.update(skipped=tuple(fields["skipped"]), notes=tuple(fields["notes"]))
            return Manifest(**fields)
        except (KeyError, TypeError) as error:
            raise RunError(f"{self.path / MANIFEST} is damaged ({error}); start a new run.") from error

    @cached_property
    def metrics(self) -> ByMetric[Aggregate]:
        """Aggregates by the metric's text, in the order asked for, then composites.

        A name alone will do where it is the only one.
        """
        rows: list[dict[str, Any]] = _read_json(self.path / SUMMARY)["metrics"]  # Any: the fields of Aggregate
        for row in rows:
            row.update(interval=_pair(row["interval"]), bounds=_pair(row["bounds"]), parts=tuple(row.get("parts", ())))
        return ByMetric({row["metric"]: Aggregate(**row) for row in rows})

    @property
    def complete(self) -> bool:
        """False when the run was interrupted before its last sample."""
        return bool(_read_json(self.path / SUMMARY)["complete"])

    @property
    def usage(self) -> Mapping[str, Any]:  # Any: numbers and nulls
        """Requests, cached answers, tokens, cost and seconds."""
        return _read_json(self.path / USAGE)

    @property
    def samples(self) -> Iterator[SampleResult]:
        """Every sample that has outcomes, in dataset order; reads the run as it goes."""
        store = Store.read(self.path / STORE)
        try:
            lines = self._grouped()
            for sample_id, records in lines:
                sample = store.sample(sample_id)
                if sample is None:
                    raise RunError(f"{self.path} is damaged: it has outcomes of sample {sample_id!r} but no text.")
                yield _result(sample, records)
        finally:
            store.close()

    def sample(self, sample_id: str) -> SampleResult:
        """One sample by its id. Raises RunError when the run has no such sample or no outcome of it yet."""
        for found, records in self._grouped():
            if found == sample_id:
                store = Store.read(self.path / STORE)
                try:
                    sample = store.sample(sample_id)
                finally:
                    store.close()
                if sample is not None:
                    return _result(sample, records)
        raise RunError(f"{self.path} has no outcome of a sample with the id {sample_id!r}.")

    def asked(self, keys: Sequence[str]) -> list[Asked]:
        """The questions under these hex keys, with answers, rubrics and raw replies; unknown keys are left out."""
        store = Store.read(self.path / STORE)
        try:
            found = [store.asked(bytes.fromhex(key)) for key in keys]
        finally:
            store.close()
        return [asked for asked in found if asked is not None]

    def records(self) -> Iterator[OutcomeRecord]:
        """Every outcome as a JSON-able record, in dataset order, then metric order."""
        path = self.path / OUTCOMES
        try:
            with path.open(encoding="utf-8") as lines:
                for line in lines:
                    record: Any = json.loads(line)  # Any: JSON that nobody has looked at yet
                    if not isinstance(record, dict):
                        raise RunError(f"{path} is damaged: a line is no JSON object; run it again.")
                    yield cast("OutcomeRecord", record)
        except FileNotFoundError:
            raise RunError(f"{path} does not exist: the run was stopped before it wrote it; run it again.") from None
        except (OSError, ValueError) as error:
            raise RunError(f"{path} is damaged ({error}); run it again with the same directory.") from error

    def _grouped(self) -> Iterator[tuple[str, list[OutcomeRecord]]]:
        group: list[OutcomeRecord] = []
        for record in self.records():
            if group and record["sample"] != group[0]["sample"]:
                yield group[0]["sample"], group
                group = []
            group.append(record)
        if group:
            yield group[0]["sample"], group


def write_json(path: Path, value: object) -> None:
    """Write a JSON file so that a reader sees the old or the new one, never a half."""
    text = json.dumps(value, ensure_ascii=False, indent=2) + "\n"
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8", errors="replace")
    part.replace(path)


def _result(sample: Sample, records: list[OutcomeRecord]) -> SampleResult:
    by_metric = {record["metric"]: record for record in records}
    outcomes = ByMetric({name: outcome_from(record) for name, record in by_metric.items()})
    return SampleResult(sample, outcomes, by_metric)


def _read_json(path: Path) -> dict[str, Any]:  # Any: JSON
    try:
        value: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError(f"{path} does not exist: the run was stopped before it wrote it; run it again.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{path} cannot be read ({error}); run it again with the same directory.") from error
    if not isinstance(value, dict):
        raise RunError(f"{path} is damaged: it holds no JSON object; run it again with the same directory.")
    return cast("dict[str, Any]", value)


def _pair(value: list[T] | None) -> tuple[T, T] | None:
    return None if value is None else (value[0], value[1])


def _plain(value: object) -> object:
    return json.loads(json.dumps(value))
