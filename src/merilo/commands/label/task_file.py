"""A file of tasks that is being filled in, how each task is answered, and the form in the terminal.

Every label is on disk before the next task is shown. Other columns, damaged lines and fields of other tools stay
unchanged.
"""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from copy import copy
from dataclasses import dataclass, replace
from math import inf, isfinite
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, cast

from merilo.commands.label.tasks import (
    COLUMNS,
    SETTLED,
    labelling_time,
    read_seconds,
    row_text,
    seconds_per_task,
    task_format,
    unsealed,
)
from merilo.data.source import Format, escaped, plain
from merilo.errors import DataError, RunError
from merilo.numbers import count
from merilo.rendering.page import Page, Span, Tone, page_width, show, write
from merilo.runs.files import staged, writing

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


_BOM: Final = "\ufeff"
_FILLED: Final = ("label", "annotator", "seconds")
"""The fields that an answer fills in."""


@dataclass(frozen=True, slots=True)
class OpenTask:
    """A task of the file with its current label."""

    row: int
    """Position of its row in the file, from 0."""
    id: str
    question: str
    texts: tuple[tuple[str, str], ...]
    labels: tuple[str, ...]
    """The possible answers; empty if the answer is a number."""
    explained: str
    """The same with their meanings, as text for annotators."""
    label: str
    """The label; empty if there is none yet."""
    sample: str
    """The id of the sample that the task is about."""
    pair: bool
    """True if the task was drawn from a pair of runs."""
    seconds: float | None = None
    """The time that its label took, if it is known."""


def open_task(row: int, record: Mapping[str, object]) -> OpenTask | None:
    """Return the task in these fields; None if they have no valid ticket, or if the task needs no answer."""
    fields = {name: "" if value is None else str(value) for name, value in record.items()}
    ticket = unsealed(fields.get("ticket", ""))
    if ticket is None or ticket.settled:
        return None
    return OpenTask(
        row,
        ticket.task,
        fields.get("question", ""),
        tuple((name, text) for name, text in fields.items() if name not in COLUMNS and text),
        ticket.labels,
        fields.get("labels", ""),
        fields.get("label", "").strip(),
        ticket.sample,
        pair=bool(ticket.other),
        seconds=read_seconds(fields.get("seconds")),
    )


class TaskFile:
    """A .jsonl or .csv file of tasks.

    Raises DataError if the file has no task, RunError if it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        """The file."""
        self._stamp = _stamp(path)
        text = _read(path)
        try:
            self._rows: _Lines | _Cells = (_Cells if task_format(path) is Format.CSV else _Lines)(text)
        except csv.Error as error:
            raise DataError(f"{path} is not valid CSV ({error}). Save it as CSV in UTF-8 again.") from error
        self.tasks = [task for row in range(len(self._rows)) if (task := self._task(row)) is not None]
        self.unread = self._rows.unread
        """Number of lines without a readable task; they stay unchanged."""
        if not self.tasks:
            raise DataError(
                f"No task to label in {path}. Draw tasks from a run: merilo label RUN --metric M --out NEW_FILE."
            )

    @property
    def time_left(self) -> str:
        """The time that the tasks without a label take, by the seconds of those with one."""
        known = [task.seconds for task in self.tasks if task.seconds is not None]
        return labelling_time(sum(not task.label for task in self.tasks), seconds_per_task(known))

    @property
    def records(self) -> list[dict[str, object]]:
        """Every task without its label, as the fields of its row; also those that need no answer, with theirs."""
        found: dict[str, dict[str, object]] = {}
        for row in range(len(self._rows)):
            fields = self._rows.fields(row)
            ticket = None if fields is None else unsealed(fields.get("ticket", ""))
            if fields is not None and ticket is not None:
                filled = {**dict.fromkeys(_FILLED), "label": SETTLED if ticket.settled else None}
                found.setdefault(ticket.task, {**fields, "task": ticket.task, **filled})
        return list(found.values())

    def answer(self, task: int, label: str, annotator: str = "", seconds: float | None = None) -> None:
        """Save the label of a task, by its position in `tasks`; an empty label removes it. `seconds`: its time."""
        old = self.tasks[task]
        fields = {"label": label, **({"annotator": annotator if label else ""} if annotator else {})}
        fields["seconds"] = "" if seconds is None or not label else f"{seconds:.1f}"
        rows = self._rows.changed(old.row, fields)
        self._save(rows.text())
        self._rows = rows
        self.tasks[task] = replace(old, label=label, seconds=read_seconds(fields["seconds"]))

    def _task(self, row: int) -> OpenTask | None:
        fields = self._rows.fields(row)
        return None if fields is None else open_task(row, fields)

    def _save(self, text: str) -> None:
        """Replace the file atomically, so that a reader or a crash sees the old or the new version."""
        with writing(self.path, "the last label was not saved"), staged(self.path) as out:
            if _stamp(self.path) != self._stamp:  # compared here, where no other process can write
                raise RunError(
                    f"Another program changed {self.path} meanwhile, so the last label was not saved. "
                    "Repeat the command."
                )
            out.write(text.encode("utf-8", "surrogateescape"))
        self._stamp = _stamp(self.path)


class _Lines:
    """JSON Lines; only labelled lines are rewritten. `unread`: number of lines that are neither blank nor a task."""

    def __init__(self, text: str) -> None:
        self.lines = text.removeprefix(_BOM).split("\n")
        self.records = [_record(line) for line in self.lines]
        self.unread = sum(not each and bool(line.strip()) for each, line in zip(self.records, self.lines, strict=True))

    def __len__(self) -> int:
        return len(self.lines)

    def fields(self, row: int) -> Mapping[str, str] | None:
        """Return the fields of a task; None for a row that is not a task."""
        record = self.records[row]
        return None if record is None else {name: "" if value is None else str(value) for name, value in record.items()}

    def changed(self, row: int, fields: Mapping[str, str]) -> _Lines:
        """Return a copy in which some fields of a row are changed."""
        found = copy(self)
        record = {**(self.records[row] or {}), **{name: value or None for name, value in fields.items()}}
        found.records = [*self.records[:row], record, *self.records[row + 1 :]]
        found.lines = [*self.lines[:row], _written(record), *self.lines[row + 1 :]]
        return found

    def text(self) -> str:
        return "\n".join(self.lines)


class _Cells:
    """CSV, as merilo wrote it or as a spreadsheet saved it."""

    def __init__(self, text: str) -> None:
        body = text.removeprefix(_BOM)
        self._start = text[: len(text) - len(body)]
        first = body.split("\n", 1)[0]
        self._delimiter = ";" if first.count(";") > first.count(",") else ","
        csv.field_size_limit(max(csv.field_size_limit(), len(body) + 1))  # the limit is global: csv has none per reader
        self.rows = list(csv.reader(io.StringIO(body, newline=""), delimiter=self._delimiter))
        self._header = [cell.strip() for cell in self.rows[0]] if self.rows else []
        for name in _FILLED:
            if name not in self._header:
                self._header.append(name)
        self.unread = sum(bool(row) and not self._fits(row) for row in self.rows[1:])

    def __len__(self) -> int:
        return len(self.rows)

    def fields(self, row: int) -> Mapping[str, str] | None:
        cells = self.rows[row]
        if row == 0 or not self._fits(cells):
            return None
        return dict(zip(self._header, map(plain, cells), strict=False))

    def changed(self, row: int, fields: Mapping[str, str]) -> _Cells:
        found = copy(self)
        cells = [*self.rows[row], *[""] * (len(self._header) - len(self.rows[row]))]
        for name, value in fields.items():
            cells[self._header.index(name)] = escaped(value)
        found.rows = [*self.rows[:row], cells, *self.rows[row + 1 :]]
        return found

    def text(self) -> str:
        return self._start + row_text([self._header, *self.rows[1:]], self._delimiter)

    def _fits(self, cells: list[str]) -> bool:
        """Return True if the row has as many cells as the header, which is needed to name them."""
        return len(cells) in {len(self._header), len(self.rows[0])}


def _written(record: Mapping[str, Any]) -> str:  # Any: JSON
    text = json.dumps(record, ensure_ascii=False)
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a lone surrogate that the file contains as an escape
        return json.dumps(record)
    return text


def _record(line: str) -> dict[str, Any] | None:  # Any: JSON
    try:
        value: Any = json.loads(line)  # Any: JSON, not validated yet
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _read(path: Path) -> str:
    try:
        if path.exists() and not (path.is_file() and path.stat().st_size <= _MAX_BYTES):
            raise DataError(f"{path} is not a regular file, or has more than {_MAX_BYTES:,} bytes.")
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        raise DataError(f"No such file: {path}.") from None
    except OSError as error:
        raise DataError(f"Cannot read {path} ({error.strerror}).") from error


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_size)


_MAX_BYTES: Final = 2**28
_RANGE: Final = re.compile(r"a number from (\S+) to (\S+)")
"""The `labels` text of a task that asks for a number."""
_LETTERS: Final = {"yes": "y", "no": "n"}
READ: Final = frozenset({"context", "contexts", "texts", "response", "reference"})
"""Names of the texts to read, which may be long; all others name what the task is about."""
_LONGEST_NUMBER: Final = 24
_NUMBER: Final = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)(e[+-]?\d+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Key:
    """One possible answer: the text to type and the label it stands for."""

    typed: str
    label: str
    meaning: str


def keys_of(task: OpenTask, reserved: frozenset[str]) -> tuple[Key, ...]:
    """Return what can be typed: one-letter labels, or numbers if a label is longer or among `reserved`.

    Empty if the answer is a number. `reserved`: keys of commands.
    """
    short = [_LETTERS.get(label, label) for label in task.labels]
    if any(len(each) > 1 or each.casefold() in reserved for each in short) or len({*short}) < len(short):
        short = [str(place) for place in range(1, len(short) + 1)]
    meanings = _meanings(task)
    return tuple(Key(*each) for each in zip(short, task.labels, meanings, strict=True))


def named(name: str) -> str:
    """Return the name of a text for people."""
    return "question" if name == "user_input" else name.replace("_", " ")


def range_of(task: OpenTask) -> tuple[float, float]:
    """Return the smallest and the largest number that a task accepts; infinite if it names no range."""
    ends = _RANGE.fullmatch(task.explained)
    try:
        return (float(ends[1]), float(ends[2])) if ends else (-inf, inf)
    except ValueError:
        return (-inf, inf)


def meant(keys: tuple[Key, ...], task: OpenTask, text: str) -> str | None:
    """Return the label that a text stands for, or a number in the range as it was typed; None for any other text."""
    if keys:
        return next((key.label for key in keys if text in {key.typed.casefold(), key.label.casefold()}), None)
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        return None
    low, high = range_of(task)
    value = float(text.replace(",", "."))
    return text if isfinite(value) and low <= value <= high else None


def _meanings(task: OpenTask) -> list[str]:
    """Return the meaning of each label; all blank if the text has no longer one part per label."""
    parts = task.explained.split("; ")
    if len(parts) != len(task.labels):
        return [""] * len(task.labels)
    pairs = zip(parts, task.labels, strict=True)
    return [part[len(label) + 2 :] if part.startswith(f"{label}: ") else "" for part, label in pairs]


# -- the form in the terminal --------------------------------------------------------------------------

_BACK, _SKIP, _QUIT = "b", "s", "q"
_WORDS: Final = {"back": _BACK, "skip": _SKIP, "quit": _QUIT}
_TAKEN: Final = frozenset({_BACK, _SKIP, _QUIT, *_WORDS})


def ask_tasks(file: TaskFile, *, annotator: str = "") -> int:
    """Ask for a label of every unlabelled task, in file order, until the last task or `q`.

    Return the number of tasks labelled for the first time.
    """
    answered = 0
    if file.unread:
        write(f"{count(file.unread, 'line')} without a readable task, left unchanged.\n")
    at = _next(file, -1)
    while at is not None:
        task = file.tasks[at]
        keys = keys_of(task, _TAKEN)
        show(_page(file, at, task))
        start = monotonic()
        typed = _typed(keys, task)
        if typed is None or typed == _QUIT:
            break
        if typed == _BACK:
            at = max(at - 1, 0)
        elif typed == _SKIP:
            at = _next(file, at)
        else:
            answered += not task.label
            file.answer(at, typed, annotator, read_seconds(monotonic() - start))
            at = _next(file, at)
    _goodbye(file, ended=at is None)
    return answered


def _next(file: TaskFile, at: int) -> int | None:
    """Return the position of the next unlabelled task after this one; None if there is none."""
    return next((place for place in range(at + 1, len(file.tasks)) if not file.tasks[place].label), None)


def _page(file: TaskFile, at: int, task: OpenTask) -> Page:
    page = Page(page_width())
    page.line("")
    labelled = sum(bool(each.label) for each in file.tasks)
    done = f"Task {at + 1} of {len(file.tasks)}, {labelled} labelled, {file.time_left} left"
    page.text(done, tone=Tone.QUIET)
    # The texts to read may be long: what the task is about comes after them, next to the prompt.
    for name, text in sorted(task.texts, key=lambda each: each[0] not in READ):
        page.heading(named(name))
        page.text(text, indent=2)
    page.blank()
    page.text(task.question, tone=Tone.STRONG)
    keys = keys_of(task, _TAKEN)
    if keys:
        page.entries([(key.typed, _meaning(key)) for key in keys])
    else:
        page.text(task.explained or "a number", indent=2)
    page.line(Span("s skip, b back, q quit", Tone.QUIET))
    if task.label:
        page.text(f"Labelled {task.label} so far; press Enter to keep it.", tone=Tone.QUIET)
    return page


def _meaning(key: Key) -> str:
    if key.typed == key.label:
        return key.meaning
    return f"{key.label}: {key.meaning}" if key.meaning else key.label


def _typed(keys: tuple[Key, ...], task: OpenTask) -> str | None:
    """Return the typed label or command letter (`b`, `s`, `q`); None at the end of the input."""
    while True:
        write("> ")
        line = sys.stdin.readline()
        if not line:
            return None
        text = line.strip().casefold()
        if not text and task.label:
            return _SKIP
        if (letter := _WORDS.get(text, text)) in {_BACK, _SKIP, _QUIT}:
            return letter
        found = meant(keys, task, text)
        if found is not None:
            return found
        which = ", ".join(key.typed for key in keys) or task.explained or "a number"
        write(f"Type {which}, or s, b, q.\n")


def _goodbye(file: TaskFile, *, ended: bool) -> None:
    left = sum(not task.label for task in file.tasks)
    done = len(file.tasks) - left
    text = f"{done} of {count(len(file.tasks), 'task')} labelled"
    if left:
        text += f"; {left} skipped" if ended else f"; {left} left"
        text += ". Repeat the command to label " + ("it" if left == 1 else "them")
    write(f"\n{text}.\n")
