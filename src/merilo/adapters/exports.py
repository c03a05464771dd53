"""Files that other systems write: traces, logs and results, recognised by their first record.

`results.toml` says where each evaluation tool writes what.
"""

from __future__ import annotations

import json
import re
import shlex
import tomllib
import zipfile
import zlib
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from math import nan
from os.path import isfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from merilo.adapters.base import Item
from merilo.adapters.spans import answer_in, conventions, documents_in, find, finite, frozen, question_in, tree_of
from merilo.adapters.traces import hop_items, items_of_traces, whole_item
from merilo.data import check
from merilo.data.content import at_path
from merilo.data.conversations import HOPS
from merilo.data.json_records import Decoder
from merilo.data.lines import ForeignRecords, RawRecord
from merilo.data.source import (
    MAX_LINE_BYTES,
    MAX_UNPACKED_BYTES,
    Format,
    RecordFile,
    data_name,
    format_of,
    open_unpacked,
    unreadable,
)
from merilo.errors import DataError, Problem, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from merilo.adapters.spans import SpanFile

    _Table: TypeAlias = Mapping[str, Any]  # Any: values of TOML

_ENTRY: Final = "samples/"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFile:
    """A kind of file of results; `results.toml` describes the fields."""

    name: str
    title: str
    package: str
    has: tuple[tuple[str, ...], ...]
    fields: Mapping[str, tuple[str, ...]]
    rows: tuple[str, ...] = ()
    version: str = ""
    unit: str = ""
    if_empty: str = ""
    part: _Table = field(default_factory=dict[str, Any])
    asserted: _Table = field(default_factory=dict[str, Any])
    metadata: tuple[str, ...] = ()
    notes: _Table = field(default_factory=dict[str, Any])
    named: tuple[_Table, ...] = ()
    scores: tuple[_Table, ...] = ()
    letters: _Table = field(default_factory=dict[str, Any])

    def rows_in(self, record: Mapping[str, object]) -> list[Mapping[str, object]] | None:
        """Return the rows in a record; None if it is a row itself."""
        found = next((path for path in self.rows if at_path(record, path) is not None), None)
        return None if found is None else _items(record, found)

    def item(self, row: Mapping[str, object], place: int) -> Item:
        """Return one row as a sample with its scores."""
        record: dict[str, Any] = {}  # Any: JSON
        used: set[str] = set()
        pairs = [(name, path) for name, paths in self.fields.items() for path in paths]
        for name, path in pairs:
            if name not in record and (found := _read(name, at_path(row, path))) not in (None, "", []):
                record[name] = found
                used.add(path)
        if self.part and "id" in record and isinstance(number := at_path(row, self.part["path"]), int):
            record["id"] = f"{record['id']}{self.part['sign']}{number}" if number > self.part["over"] else record["id"]
        if self.asserted and "reference" not in record:
            kinds, value = self.asserted["kinds"], self.asserted["value"]
            items = [each for each in _items(row, self.asserted["each"]) if each.get(self.asserted["kind"]) in kinds]
            texts = [text for each in items if isinstance(text := each.get(value), str)]
            record |= {"reference": texts[0]} if texts else {}
        objects = [(path, *pair) for path in self.metadata for pair in _object(row, path).items()]
        metadata = {name: each for path, name, each in objects if f"{path}.{name}" not in used}
        metadata |= {name: each for name, path in self.notes.items() if (each := at_path(row, path))}
        for table in self.named:
            metadata |= {table["note"]: found} if (found := {k: v for k, v in _pairs(row, table) if v}) else {}
        record |= {"metadata": metadata} if metadata else {}
        scores: dict[str, object] = {}
        for table in self.scores:
            for name, value in _pairs(row, table):  # the import checks the number of an item
                scores.setdefault(name, value if "each" in table else self._number(value))
        return Item(place, record=record, scores=scores, id=str(record.get("id", "")))

    def _number(self, value: object) -> float | None:
        """Return a score as a number; NaN if it is none, None if there is no value."""
        number = self.letters.get(value) if isinstance(value, str) else finite(value)
        return None if value is None else nan if number is None else number


@cache
def result_files() -> tuple[ResultFile, ...]:
    """Return the kinds of files in the table, read once."""
    table = tomllib.loads(files("merilo.adapters").joinpath("results.toml").read_text("utf-8"))
    return tuple(ResultFile(**frozen(row)) for row in table["files"])


def _read(name: str, value: object) -> object:
    """Return the value of a field in any of the forms in which tools write it; None if it has none."""
    if name == "id":
        return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else None
    if value is None:
        return None
    if name.endswith("_contexts"):
        return [{"text": value}] if isinstance(value, str) else [e for e in documents_in(value) if "text" in e] or None
    text = question_in(value) if name == "user_input" else answer_in(value)
    is_json = text is None and name == "response" and (check.is_record(value) or check.is_list(value))
    return json.dumps(value, ensure_ascii=False) if is_json else text


def _pairs(row: Mapping[str, object], table: Mapping[str, Any]) -> Iterator[tuple[str, object]]:  # Any: TOML
    """Yield the names and values that a table of scores or notes describes."""
    if "each" in table:
        for each in _items(row, table["each"]):
            names = [name for path in table["name"] if isinstance(name := at_path(each, path), str)]
            yield from ((name, at_path(each, table["value"])) for name in names[:1])
    elif "of" in table:
        for name, given in _object(row, table["of"]).items():
            value = at_path(given, table["value"]) if "value" in table else given
            inner = value.items() if check.is_record(value) else ()
            yield from ((f"{name}.{part}", each) for part, each in inner)
            yield from [] if inner else [(name, value)]
    else:
        yield table["name"], at_path(row, table["value"])


def _items(row: Mapping[str, object], path: str) -> list[Mapping[str, object]]:
    found = at_path(row, path)
    return [each for each in found if check.is_record(each)] if check.is_list(found) else []


def _object(row: Mapping[str, object], path: str) -> Mapping[str, object]:
    return found if check.is_record(found := at_path(row, path)) else {}


def inspect_archive(path: Path) -> Iterator[RawRecord]:
    """Yield the samples of an `.eval` log, a zip archive with one JSON file per sample.

    Raises DataError if the archive cannot be read, or unpacks to more than other packed files may.
    """
    number, unpacked, decode = 0, 0, Decoder().line
    try:
        with zipfile.ZipFile(path) as archive:
            names = [each for each in archive.namelist() if each.startswith(_ENTRY) and each.endswith(".json")]
            for number, name in enumerate(names, start=1):
                with archive.open(name) as entry:
                    content = entry.read(MAX_LINE_BYTES + 1)
                unpacked += len(content)
                if len(content) > MAX_LINE_BYTES or unpacked > MAX_UNPACKED_BYTES:
                    raise DataError.of(Problem("a smaller sample", "a longer one", source=path.name, line=number))
                yield decode(content, number)
    except NotImplementedError as error:  # zipfile does not know the compression, which is zstd
        advice = "convert it: inspect log convert --to json --output-dir DIR"
        got = "one that Python reads only from version 3.14 on"
        raise DataError.of(
            Problem("an .eval log without zstd compression", got, None, path.name, advice=advice)
        ) from error
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError) as error:
        advice = "write it again, or convert it: inspect log convert --to json --output-dir DIR"
        problem = Problem(
            "a readable .eval log", f"an error ({error})", None, path.name, number or None, "sample", advice
        )
        raise DataError.of(problem) from error


_SCANNED: Final = 20
"""Records that are read to recognise a file: the first ones may be damaged."""
_WRAPPERS: Final = ("data", "spans", "runs", "traces", "records")
"""Keys of an object under which an interface of a system answers with the list of its records."""
_PLAIN: Final = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"(?:samples|rows)"\s*:')
_HEAD_BYTES: Final = 256
_LONG_BYTES: Final = 2**16
_ARCHIVE: Final = ".eval"


@dataclass(frozen=True, slots=True)
class Export:
    """A file that another system wrote: its kind, and its items in order."""

    path: Path
    kind: SpanFile | ResultFile
    raw: Callable[[], Iterator[RawRecord]]
    """Return the records of the file."""
    version: str
    """The version of the package that the file states; blank if it states none."""
    unit: str
    """What a place counts: a line, a test case, a sample of an archive, or a record of a JSON file."""
    hops: bool = False
    """True if each retrieval of a trace is a sample."""
    tools: Collection[str] | None = None
    """The names of the tools that retrieve; None: those whose results are passages."""

    def items(self, id: str | None = None) -> Iterator[Item]:
        """Yield the items; `id`: the key of a row that holds its id, None for the usual one."""
        if isinstance(self.kind, ResultFile):
            return _results(self.raw(), self.kind, id)
        items = hop_items if self.hops else whole_item
        return items_of_traces(self.raw(), self.kind, items, self.tools)

    def records(self, id: str | None = None) -> ForeignRecords:
        """Return the samples; `id`: the key of a row that holds its id, None for the usual one."""
        found = Contents(self)

        def read() -> Iterator[RawRecord]:
            for item in found.items(id):
                if item.problems or item.record is not None:
                    yield RawRecord(item.place, item.record, item.problems)
            if not found.samples and not found.problems:
                raise DataError.of(found.none())

        name, cluster = (f"{data_name(self.path)}-hops", "trace_id") if self.hops else (data_name(self.path), None)
        return ForeignRecords(
            name,
            self.path.name,
            self.unit,
            read,
            note=found.note,
            cluster=cluster,
            of_traces=lambda tools: replace(self, tools=tools).records(id),
        )


def export_of(source: object) -> Export | None:
    """Return the export in a file; None if the file is not one that merilo knows. Raises nothing.

    The name of a file of traces may end in `#hops`.
    """
    if not isinstance(source, Path):
        return None
    if not isfile(source):  # noqa: PTH113  Path.is_file raises PermissionError
        file = source.with_name(source.name.removesuffix(HOPS)) if len(source.name) > len(HOPS) else source
        found = None if file == source else export_of(file)
        return replace(found, hops=True) if found is not None and not isinstance(found.kind, ResultFile) else None
    if source.name.endswith(_ARCHIVE):
        return _export(source, {"epoch": 1, "target": "", "input": "", "id": ""}, lambda: inspect_archive(source))
    try:
        if format_of(source) not in (Format.JSONL, Format.JSON) or _is_other(source):
            return None
        read = _records_of(source)
        for record, _ in zip(read(), range(_SCANNED), strict=False):
            if record.value is not None:
                return _export(source, record.value, read)
    except (DataError, UsageError, OSError, EOFError, zlib.error):
        return None  # the reader of tables reports the problem
    return None


def damage_of(path: Path) -> DataError | None:
    """Return why no record of a file can be read; None if one can, or if files of its name are not read as records."""
    problems: list[Problem] = []
    try:
        if format_of(path) not in (Format.JSONL, Format.JSON):
            return None
        for record, _ in zip(_records_of(path)(), range(_SCANNED), strict=False):
            if record.value is not None:
                return None
            problems += [replace(each, source=path.name, line=record.place) for each in record.problems]
    except DataError as error:
        return error
    except UsageError:
        return None
    except (OSError, EOFError, zlib.error) as error:
        return DataError.of(replace(unreadable(error), source=path.name))
    return DataError.of(problems[0]) if problems else None


def _is_other(path: Path) -> bool:
    """Return True if the first record need not be read, which may be long: the file begins with a list of samples, or
    its first line with no key of an export.
    """
    with open_unpacked(path) as stream:
        if _PLAIN.match(stream.peek(_HEAD_BYTES)) is not None:
            return True
        head = stream.read(_LONG_BYTES)
    if format_of(path) is not Format.JSONL or len(head) < _LONG_BYTES or b"\n" in head:
        return False
    kinds: tuple[SpanFile | ResultFile, ...] = (*conventions().files, *result_files())
    keys = {name.rpartition(".")[2] for file in kinds for names in file.has for name in names}
    return not any(f'{key}"'.encode() in head for key in (*keys, *_WRAPPERS))


def _records_of(path: Path) -> Callable[[], Iterator[RawRecord]]:
    file = RecordFile(path, format_of(path), objects=True)

    def read() -> Iterator[RawRecord]:
        for record in file.records():
            if record.value is not None and (listed := _wrapped(record.value)) is not None:
                for place, each in enumerate(listed, start=1):
                    good = check.is_record(each)
                    problems = () if good else (Problem("an object", check.shown(each)),)
                    yield RawRecord(place, dict(each) if check.is_record(each) else None, problems)
            else:
                yield record

    return read


def _wrapped(record: Mapping[str, object]) -> list[object] | None:
    """Return the list of records in an answer of an interface, if it is one."""
    for key in _WRAPPERS:
        listed = record.get(key)
        if check.is_list(listed) and listed and check.is_record(listed[0]) and kind_of(listed[0]) is not None:
            return list(listed)
    return None


def kind_of(record: Mapping[str, object]) -> SpanFile | ResultFile | None:
    """Return the kind of file that has such a record; None if it is none of another system."""
    tree = tree_of({name: None if check.is_list(value) and not value else value for name, value in record.items()})
    known: tuple[SpanFile | ResultFile, ...] = (*conventions().files, *result_files())
    for file in known:
        if any(
            all((name in record or find(record, name) is not None or find(tree, name) is not None) for name in names)
            for names in file.has
        ):
            return file
    return None


def _export(path: Path, record: Mapping[str, object], read: Callable[[], Iterator[RawRecord]]) -> Export | None:
    file = kind_of(record)
    if file is None:
        return None
    unit = "sample" if path.name.endswith(_ARCHIVE) else "line" if format_of(path) is Format.JSONL else "record"
    if not isinstance(file, ResultFile):
        return Export(path, file, read, "", unit)
    stated = find(record, file.version) if file.version else None
    return Export(path, file, read, stated if isinstance(stated, str) else "", file.unit or unit)


def _results(records: Iterator[RawRecord], file: ResultFile, id: str | None) -> Iterator[Item]:
    number = 0
    for record in records:
        if record.value is None:
            yield Item(record.place, problems=record.problems)
            continue
        nested = file.rows_in(record.value)
        for row in [record.value] if nested is None else nested:
            number += 1
            item = file.item(row, record.place if nested is None else number)
            if id is not None and item.record is not None:
                item.record["id"] = row.get(id)
            yield item


def _foreign(source: object) -> ForeignRecords | None:
    """Return the samples of an export, for `merilo.data.load`."""
    found = export_of(source)
    return None if found is None else found.records()


@dataclass(slots=True)
class Contents:
    """The number of samples in an export, of their parts, and of what is not a sample."""

    export: Export
    samples: int = 0
    kinds: Counter[str] = field(default_factory=Counter[str])
    missing: Counter[str] = field(default_factory=Counter[str])
    left_out: Counter[str] = field(default_factory=Counter[str])
    """Reasons why something is not a sample."""
    scores: Counter[str] = field(default_factory=Counter[str])
    problems: list[Problem] = field(default_factory=list[Problem])

    def items(self, id: str | None = None) -> Iterator[Item]:
        """Yield the items, and count them from 0; `id`: the key of a row that holds its id."""
        name, unit = self.export.path.name, self.export.unit
        self.samples = 0
        for count in (self.kinds, self.missing, self.left_out, self.scores, self.problems):
            count.clear()
        for item in self.export.items(id):
            self.kinds.update(item.kinds)
            if item.problems:
                self.problems += [replace(each, source=name, line=item.place, unit=unit) for each in item.problems]
            elif item.record is None:
                self.left_out[item.reason] += 1
            else:
                self.samples += 1
                self.missing.update(item.missing)
                self.scores.update(item.scores.keys())
            yield item

    def none(self) -> Problem:
        """Return the problem of an export without a sample."""
        path, kind = self.export.path, self.export.kind
        got, advice = "none", kind.if_empty if isinstance(kind, ResultFile) else ""
        if self.left_out:
            reasons = "; ".join(f"{number:,} left out: {why}" for why, number in sorted(self.left_out.items()))
            got, advice = f"none ({reasons})", f"list each: merilo import {shlex.quote(path.name)} --list"
        return Problem("at least one sample", got, source=path.name, advice=advice)

    def note(self) -> str:
        """Return which traces were left out, and which parts of samples are missing."""
        parts = [f"{number:,} not a sample: {reason}." for reason, number in sorted(self.left_out.items())]
        parts += [f"{number:,} without {name}." for name, number in sorted(self.missing.items())]
        return f"Read as {self.export.kind.title}. {' '.join(parts)}".strip()


ADAPTERS: Final = (_foreign,)
