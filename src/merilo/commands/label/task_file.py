"""A file of tasks that is being filled in: every label is on the disk before the next task is asked.

What the form does not know (other columns, lines that are damaged, another tool's fields) stays as it is.
"""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from merilo.commands.label.csv_escaping import escaped, plain
from merilo.commands.label.tasks import COLUMNS, row_text, task_format, unsealed
from merilo.data.source import Format
from merilo.errors import DataError, RunError
from merilo.runs.publish import write_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_BOM: Final = "\ufeff"


@dataclass(frozen=True, slots=True)
class OpenTask:
    """A task of the file, as it stands now."""

    row: int
    """Its place in the file."""
    question: str
    texts: tuple[tuple[str, str], ...]
    labels: tuple[str, ...]
    """The possible answers; empty where it is a number."""
    explained: str
    """The same with their meanings, as they were written for people."""
    label: str
    """What was answered; empty where nothing was."""


class TaskFile:
    """A .jsonl or .csv file of tasks. Raises DataError where it holds none, RunError where it cannot be written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp = _stamp(path)
        text = _read(path)
        try:
            self._rows: _Rows = (_Cells if task_format(path) is Format.CSV else _Lines)(text)
        except csv.Error as error:
            raise DataError(f"{path} is damaged ({error}); save it as CSV in UTF-8 again.") from error
        self.tasks = [task for row in range(len(self._rows)) if (task := self._task(row)) is not None]
        self.unread = self._rows.unread
        """Lines that hold no task and stay as they are."""
        if not self.tasks:
            raise DataError(f"{path} holds no task to answer; draw some: merilo label RUN --metric METRIC -o {path}.")

    def answer(self, task: int, label: str, annotator: str = "") -> None:
        """Write down the label of a task, by its place in `tasks`; an empty one takes it away."""
        old = self.tasks[task]
        fields = {"label": label, **({"annotator": annotator if label else ""} if annotator else {})}
        before = self._rows.put(old.row, fields)
        try:
            self._save()
        except BaseException:
            self._rows.restore(old.row, before)
            raise
        self.tasks[task] = replace(old, label=label)

    def _task(self, row: int) -> OpenTask | None:
        fields = self._rows.fields(row)
        if fields is None:
            return None
        ticket = unsealed(fields.get("ticket", ""))
        if ticket is None or ticket.settled:
            return None
        texts = tuple((name, text) for name, text in fields.items() if name not in COLUMNS and text)
        question, explained = fields.get("question", ""), fields.get("labels", "")
        return OpenTask(row, question, texts, ticket.labels, explained, fields.get("label", "").strip())

    def _save(self) -> None:
        """Put the file in place whole, so that a reader and a crash find the old or the new one."""
        if _stamp(self._path) != self._stamp:
            raise RunError(
                f"{self._path} was changed by another program meanwhile; nothing was overwritten: start again to go on."
            )
        try:
            write_file(self._path, self._rows.text().encode("utf-8", "surrogateescape"))
        except OSError as error:
            raise RunError(
                f"{self._path} cannot be written ({error.strerror}); the last label is not in it."
            ) from error
        self._stamp = _stamp(self._path)


class _Rows(Protocol):
    """The rows of a file, most of them tasks."""

    unread: int
    """Rows that are not blank and hold no task."""

    def __len__(self) -> int: ...

    def fields(self, row: int) -> Mapping[str, str] | None:
        """The fields of a task; None for a row that is none."""
        ...

    def put(self, row: int, fields: Mapping[str, str]) -> object:
        """Change some fields of a row; what it was before."""
        ...

    def restore(self, row: int, before: object) -> None:
        """Undo `put`."""
        ...

    def text(self) -> str:
        """The whole file."""
        ...


class _Lines:
    """JSON Lines; a line is written anew only where it is answered."""

    def __init__(self, text: str) -> None:
        self._lines = text.removeprefix(_BOM).split("\n")
        self._records = [_record(line) for line in self._lines]
        self.unread = sum(
            not each and bool(line.strip()) for each, line in zip(self._records, self._lines, strict=True)
        )

    def __len__(self) -> int:
        return len(self._lines)

    def fields(self, row: int) -> Mapping[str, str] | None:
        record = self._records[row]
        return None if record is None else {name: "" if value is None else str(value) for name, value in record.items()}

    def put(self, row: int, fields: Mapping[str, str]) -> object:
        before = self._lines[row]
        record = {**(self._records[row] or {}), **{name: value or None for name, value in fields.items()}}
        self._records[row] = record
        self._lines[row] = _written(record)
        return before

    def restore(self, row: int, before: object) -> None:
        self._lines[row] = str(before)
        self._records[row] = _record(str(before))

    def text(self) -> str:
        return "\n".join(self._lines)


class _Cells:
    """CSV, as it was written or as a spreadsheet saved it."""

    def __init__(self, text: str) -> None:
        body = text.removeprefix(_BOM)
        self._start = text[: len(text) - len(body)]
        first = body.split("\n", 1)[0]
        self._delimiter = ";" if first.count(";") > first.count(",") else ","
        csv.field_size_limit(max(csv.field_size_limit(), len(body) + 1))  # one for the process; csv has no other
        self._rows = list(csv.reader(io.StringIO(body, newline=""), delimiter=self._delimiter))
        self._header = [cell.strip() for cell in self._rows[0]] if self._rows else []
        for name in ("label", "annotator"):
            if name not in self._header:
                self._header.append(name)
        self.unread = sum(bool(row) and not self._fits(row) for row in self._rows[1:])

    def __len__(self) -> int:
        return len(self._rows)

    def fields(self, row: int) -> Mapping[str, str] | None:
        cells = self._rows[row]
        if row == 0 or not self._fits(cells):
            return None
        return dict(zip(self._header, map(plain, cells), strict=False))

    def put(self, row: int, fields: Mapping[str, str]) -> object:
        before = list(self._rows[row])
        cells = [*before, *[""] * (len(self._header) - len(before))]
        for name, value in fields.items():
            cells[self._header.index(name)] = escaped(value)
        self._rows[row] = cells
        return before

    def restore(self, row: int, before: object) -> None:
        self._rows[row] = cast("list[str]", before)  # what `put` gave

    def text(self) -> str:
        return self._start + row_text([self._header, *self._rows[1:]], self._delimiter)

    def _fits(self, cells: list[str]) -> bool:
        """Rows of another length are damaged: nobody knows what their cells are."""
        return len(cells) in {len(self._header), len(self._rows[0])}


def _written(record: Mapping[str, Any]) -> str:  # Any: JSON
    text = json.dumps(record, ensure_ascii=False)
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half a character that the file wrote as a code
        return json.dumps(record)
    return text


def _record(line: str) -> dict[str, Any] | None:  # Any: JSON
    try:
        found: Any = json.loads(line)  # Any: JSON that nobody has looked at yet
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}).") from error


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size)
