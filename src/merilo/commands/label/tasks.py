"""Tasks for people, as lines of JSON or rows of CSV: what is asked, and a sealed ticket that says how it was drawn.

A task's columns are: `task` (its id), `question`, the texts to read, `labels` (the possible answers), `label` and
`annotator` (to be filled in), `metric`, `run` and `seed` (where it is from), `ticket`. A labelling tool may change or
drop all but `task`, `ticket`, `label` and `annotator`; even the ticket where another file with the same tasks has it.
"""

from __future__ import annotations

import base64
import binascii
import csv
import io
import json
from dataclasses import astuple, dataclass
from enum import StrEnum
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from merilo.commands.label.csv_escaping import escaped
from merilo.data.source import Format, format_of
from merilo.errors import RunError, UsageError
from merilo.runs.publish import create_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

_VERSIONS: Final = (1, 2)
"""Of tickets: without and with the digest of the population."""
_LEAST_PROBABILITY: Final = 1e-9
_MOST_ITEMS: Final = 10**12
_SEALED: Final = "k"
COLUMNS: Final = ("task", "question", "labels", "label", "annotator", "metric", "run", "seed", "ticket")
"""Of every task, beside the texts to read, which stand after the question."""
SETTLED: Final = "settled"
"""The label of a task that needs no answer."""


class Unit(StrEnum):
    """What is drawn."""

    ITEMS = "items"
    """Some contexts or statements of a sample."""
    WHOLE = "whole"
    """All that the judge was asked about a sample."""
    VALUE = "value"
    """The metric's value of a sample, as a number."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a task is about, and how it was drawn."""

    fingerprint: str
    """Of the run's samples."""
    metric: str
    sample: str
    unit: Unit
    mark: str
    """Names the question; empty for a value, and where there is nothing to ask."""
    probability: float
    """With which the sample was drawn."""
    population: int
    """How many samples could have been drawn."""
    seed: int
    stratified: bool
    labels: tuple[str, ...] = ()
    """The possible answers; empty where it is a number."""
    among: str = ""
    """16 hexadecimal digits that name the samples that could have been drawn; empty where the ticket does not tell."""

    def sealed(self) -> str:
        """The ticket as one word, so that nobody reads from it by accident what was drawn more often."""
        *fields, among = astuple(self)
        record = [_VERSIONS[1], *fields, among] if among else [_VERSIONS[0], *fields]
        text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
        return _SEALED + base64.urlsafe_b64encode(text.encode("utf-8", "surrogatepass")).decode().rstrip("=")

    @property
    def task(self) -> str:
        """The task's id: a letter, so that no spreadsheet takes it for a number, and a digest of the ticket."""
        return "t" + blake2b(self.sealed().encode(), digest_size=6).hexdigest()

    @property
    def settled(self) -> bool:
        """True where the sample was drawn and nobody needs to be asked about it."""
        return not self.mark and self.unit is not Unit.VALUE


def unsealed(text: str) -> Ticket | None:
    """The ticket in a word; None for any other word."""
    if not text.startswith(_SEALED):
        return None
    body = text[len(_SEALED) :]
    try:
        raw = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)).decode("utf-8", "surrogatepass")
        fields: Any = json.loads(raw)  # Any: JSON that nobody has looked at yet
        version, *fields = fields
        among = "" if version == _VERSIONS[0] else str(fields.pop())
        fingerprint, metric, sample, unit, mark, probability, population, seed, stratified, labels = fields
        if version not in _VERSIONS or not _LEAST_PROBABILITY <= probability <= 1 or not 1 <= population <= _MOST_ITEMS:
            return None
        return Ticket(
            str(fingerprint),
            str(metric),
            str(sample),
            Unit(unit),
            str(mark),
            float(probability),
            int(population),
            int(seed),
            bool(stratified),
            tuple(str(label) for label in labels),
            among,
        )
    except (binascii.Error, ValueError, TypeError, IndexError, RecursionError, OverflowError):
        return None


def population_mark(samples: Iterable[str]) -> str:
    """16 hexadecimal digits that name these samples, by their ids, in whatever order."""
    found = blake2b(digest_size=8)
    for sample in sorted(samples):
        text = sample.encode("utf-8", "surrogatepass")
        found.update(b"%d:%s" % (len(text), text))
    return found.hexdigest()


@dataclass(frozen=True, slots=True)
class TaskLine:
    """One task as people see it."""

    ticket: Ticket
    question: str
    texts: tuple[tuple[str, str], ...]
    labels: str
    """The possible answers with their meanings."""
    label: str = ""

    def record(self) -> dict[str, object]:
        """The task as a JSON object; the texts stand after the question."""
        return {
            "task": self.ticket.task,
            "question": self.question,
            **dict(self.texts),
            "labels": self.labels,
            "label": self.label or None,
            "annotator": None,
            "metric": self.ticket.metric,
            "run": self.ticket.fingerprint,
            "seed": self.ticket.seed,
            "ticket": self.ticket.sealed(),
        }


def write_tasks(path: Path, tasks: Sequence[TaskLine]) -> None:
    """Write a new file of tasks, .jsonl or .csv. Raises UsageError for another name, or a file with other content."""
    form = task_format(path)
    records = [task.record() for task in tasks]
    text = _csv(records) if form is Format.CSV else "".join(_line(record) for record in records)
    mark = "\ufeff" if form is Format.CSV else ""  # spreadsheets recognise UTF-8 by it
    try:
        create_file(path, (mark + text).encode("utf-8", "backslashreplace"))
    except FileExistsError:
        raise UsageError(
            f"{path} exists and may hold labels; name another file, or label it: merilo label {path} --ask."
        ) from None
    except OSError as error:
        raise RunError(f"{path} cannot be written ({error.strerror}); name another file (-o).") from error


def task_format(path: Path) -> Format:
    """The format of a file of tasks by its name. Raises UsageError unless it is .jsonl or .csv."""
    suffix = path.suffix.lower()
    if suffix not in {".jsonl", ".ndjson", ".csv"}:
        raise UsageError(f"Tasks are written as JSON Lines or CSV: name the file .jsonl or .csv, not {path.name!r}.")
    return format_of(path)


def row_text(rows: Iterable[Sequence[str]], delimiter: str = ",") -> str:
    """Rows of cells as CSV; the cells are escaped already."""
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


def _line(record: Mapping[str, object]) -> str:
    return json.dumps(record, ensure_ascii=False) + "\n"
