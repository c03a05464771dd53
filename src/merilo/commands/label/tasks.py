"""Tasks for annotators, as JSON Lines or CSV: a question with its texts, and an encoded ticket on the draw.

A task's columns are: `task` (its id), `question`, the texts to read, `labels` (the possible answers), `label`,
`annotator` and `seconds` (to be filled in), `metric` and `run` (its source), `ticket`. A labelling tool may
change or drop all columns except `task`, `ticket`, `label` and `annotator`. It may drop `ticket` too if another file
with the same tasks has it.
"""

from __future__ import annotations

import base64
import binascii
import csv
import io
import json
from dataclasses import dataclass, fields
from enum import StrEnum
from hashlib import blake2b
from statistics import median
from typing import TYPE_CHECKING, Final

from merilo.data.source import Format, escaped, format_of
from merilo.errors import DataError, RunError, UsageError
from merilo.runs.files import create_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

_VERSION: Final = 4
"""Version of the ticket format. A ticket of another version is refused."""
_MIN_PROBABILITY: Final = 1e-9
_MAX_ITEMS: Final = 10**12
_SEALED: Final = "k"
COLUMNS: Final = ("task", "question", "labels", "label", "annotator", "seconds", "metric", "run", "ticket")
"""Columns of every task; the texts to read come after the question and have their own columns."""
_LONGEST_LINE: Final = 2**22
"""Bytes of the first line that are read to recognise a file of tasks."""
SETTLED: Final = "settled"
"""The label of a task that needs no answer."""
ASSUMED_S: Final = 7.0
"""Seconds that a task takes, assumed until enough are measured."""
PAUSE_S: Final = 120.0
"""A task that took longer was interrupted; its time is not stored."""
_TIMED: Final = 10
"""Measured tasks from which their median is used."""


def seconds_per_task(measured: Sequence[float]) -> float:
    """Return the median of the measured seconds per task; the assumed seconds if fewer than ten are measured."""
    return median(measured) if len(measured) >= _TIMED else ASSUMED_S


def labelling_time(tasks: int, seconds: float) -> str:
    """Return the time that tasks take, such as `about 14 min`; `seconds`: of one task."""
    return f"about {max(1, round(tasks * seconds / 60)):,} min"


def things_of(texts: Iterable[Sequence[tuple[str, str]]]) -> str:
    """Return the name of what the tasks with these texts are about: `context`, `statement`, or `item` for several."""
    names = {"context", "statement"}
    found = {next((name for name, _ in each if name in names), "item") for each in texts}
    return found.pop() if len(found) == 1 else "item"


def read_seconds(value: object) -> float | None:
    """Return the seconds in a field of a labelled task; None if they are missing, not a number, or a pause."""
    try:
        found = float(str(value))
    except ValueError:
        return None
    return found if 0 <= found <= PAUSE_S else None


class Unit(StrEnum):
    """The object that each label is about."""

    ITEMS = "items"
    """Some contexts or statements of a sample."""
    WHOLE = "whole"
    """All contexts or statements of a sample."""
    VALUE = "value"
    """The metric's value of a sample, a number."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """The subject of a task, and how it was drawn."""

    fingerprint: str
    """Fingerprint of the run's samples."""
    metric: str
    sample: str
    unit: Unit
    mark: str
    """Digest of the question; empty for a value, and if there is nothing to ask."""
    probability: float
    """Probability with which the sample was drawn, in (0, 1]."""
    population: int
    """Number of samples that could have been drawn."""
    labels: tuple[str, ...] = ()
    """The possible answers; empty if the answer is a number."""
    among: str = ""
    """Digest of the samples that could have been drawn, 16 hexadecimal digits."""
    other: str = ""
    """Fingerprint of the second run's samples if the task was drawn from a pair of runs; empty otherwise."""

    def drawn_from(self, fingerprint: str) -> bool:
        """Return True if the task was drawn from a run over the samples with this fingerprint."""
        return fingerprint in {self.fingerprint, self.other or self.fingerprint}

    def sealed(self) -> str:
        """Return the ticket encoded as one word."""
        record = [_VERSION, *(getattr(self, each.name) for each in fields(self))]
        text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
        return _SEALED + base64.urlsafe_b64encode(text.encode("utf-8", "surrogatepass")).decode().rstrip("=")

    @property
    def task(self) -> str:
        """The task's id: `t`, so that a spreadsheet does not read it as a number, and a digest of the ticket."""
        return "t" + blake2b(self.sealed().encode(), digest_size=6).hexdigest()

    @property
    def settled(self) -> bool:
        """True if the drawn sample needs no label, as its value follows without a judge."""
        return not self.mark and self.unit is not Unit.VALUE


def unsealed(text: str) -> Ticket | None:
    """Return the ticket that `Ticket.sealed` encoded; None for any other text.

    Raises DataError for a ticket of another version.
    """
    if not text.startswith(_SEALED):
        return None
    body = text[len(_SEALED) :]
    try:
        raw = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)).decode("utf-8", "surrogatepass")
        version, *own = json.loads(raw)
        if version != _VERSION:
            raise DataError("The tasks were drawn by another version of merilo. Draw new ones: merilo label RUN.")
        fingerprint, metric, sample, unit, mark, probability, population, labels, among, other = own
        if not _MIN_PROBABILITY <= probability <= 1 or not 1 <= population <= _MAX_ITEMS:
            return None
        return Ticket(
            str(fingerprint),
            str(metric),
            str(sample),
            Unit(unit),
            str(mark),
            float(probability),
            int(population),
            tuple(str(label) for label in labels),
            str(among),
            str(other),
        )
    except (binascii.Error, ValueError, TypeError, IndexError, RecursionError, OverflowError):
        return None


def population_mark(samples: Iterable[str]) -> str:
    """Return a digest of these sample ids, 16 hexadecimal digits, whatever their order."""
    found = blake2b(digest_size=8)
    for sample in sorted(samples):
        text = sample.encode("utf-8", "surrogatepass")
        found.update(b"%d:%s" % (len(text), text))
    return found.hexdigest()


def side_mark(fingerprint: str) -> str:
    """Return the mark of a task that asks for the metric's value in the run with this fingerprint, if there are two."""
    return f"value {fingerprint}"


@dataclass(frozen=True, slots=True)
class TaskLine:
    """One task as annotators see it."""

    ticket: Ticket
    question: str
    texts: tuple[tuple[str, str], ...]
    labels: str
    """The possible answers with their meanings."""
    label: str = ""

    def record(self) -> dict[str, object]:
        """Return the task as a JSON object; the texts come after the question."""
        return {
            "task": self.ticket.task,
            "question": self.question,
            **dict(self.texts),
            "labels": self.labels,
            "label": self.label or None,
            "annotator": None,
            "seconds": None,
            "metric": self.ticket.metric,
            "run": self.ticket.fingerprint,
            "ticket": self.ticket.sealed(),
        }


def write_tasks(path: Path, tasks: Sequence[TaskLine]) -> None:
    """Write a new file of tasks, .jsonl or .csv.

    Raises UsageError for another file type and for an existing file with other content.
    """
    form = task_format(path)
    records = [task.record() for task in tasks]
    lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    text = _csv(records) if form is Format.CSV else "".join(lines)
    mark = "\ufeff" if form is Format.CSV else ""  # spreadsheets need it to recognise UTF-8
    try:
        create_file(path, (mark + text).encode("utf-8", "backslashreplace"))
    except FileExistsError:
        raise UsageError(
            f"{path} exists and may contain labels. Name another file, or label this one: merilo label {path}."
        ) from None
    except OSError as error:
        raise RunError(f"Cannot write {path} ({error.strerror}). Name another file (--out).") from error


def task_format(path: Path) -> Format:
    """Return the format of a file of tasks by its name. Raises UsageError unless it is .jsonl, .ndjson or .csv."""
    suffix = path.suffix.lower()
    if suffix not in {".jsonl", ".ndjson", ".csv"}:
        raise UsageError(f"A file of tasks ends in .jsonl or .csv, got {path.name!r}.")
    return format_of(path)


def row_text(rows: Iterable[Sequence[str]], delimiter: str = ",") -> str:
    """Return rows of escaped cells as CSV."""
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter, lineterminator="\r\n").writerows(rows)
    return out.getvalue()


def _csv(records: Sequence[Mapping[str, object]]) -> str:
    texts = dict.fromkeys(name for record in records for name in record if name not in COLUMNS)
    header = [*COLUMNS[:2], *texts, *COLUMNS[2:]]
    rows = [[_cell(record.get(name)) for name in header] for record in records]
    return row_text([header, *rows])


def _cell(value: object) -> str:
    return "" if value is None else escaped(str(value))
