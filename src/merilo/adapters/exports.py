"""Files that other systems write: traces, logs and results, recognised by their first record."""

from __future__ import annotations

import re
import shlex
import zlib
from collections import Counter
from dataclasses import dataclass, field, replace
from os.path import isfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from merilo.adapters.attributes import find, tree_of
from merilo.adapters.base import Item
from merilo.adapters.contents import conventions
from merilo.adapters.result_rows import ResultFile, inspect_archive, result_files
from merilo.adapters.traces import MAX_SPANS, hop_items, items_of_traces, whole_item
from merilo.data import check
from merilo.data.conversations import HOPS
from merilo.data.lines import ForeignRecords, RawRecord
from merilo.data.source import Format, RecordFile, data_name, format_of, open_unpacked, unreadable
from merilo.errors import DataError, Problem, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from merilo.adapters.contents import SpanFile

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
    in_order: bool = False
    """True if a trace ends after `MAX_SPANS` spans of others, so that the first traces need not the whole file."""

    def items(self, id: str | None = None) -> Iterator[Item]:
        """Yield the items; `id`: the key of a row that holds its id, None for the usual one."""
        if isinstance(self.kind, ResultFile):
            return _results(self.raw(), self.kind, id)
        items = hop_items if self.hops else whole_item
        return items_of_traces(self.raw(), self.kind, items, self.tools, in_order=self.in_order)

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
            of_traces=lambda tools, in_order: replace(self, tools=tools, in_order=in_order).records(id),
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
        if format_of(source) not in (Format.JSONL, Format.JSON) or _is_plain(source) or _is_long_other(source):
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


def _is_plain(path: Path) -> bool:
    """Return True if a file begins with a list of samples, so that its text need not be read for its first record."""
    with open_unpacked(path) as stream:
        return _PLAIN.match(stream.peek(_HEAD_BYTES)) is not None


def _is_long_other(path: Path) -> bool:
    """Return True if a first line is long and begins with no key of an export, so that it need not be held whole."""
    if format_of(path) is not Format.JSONL:
        return False
    with open_unpacked(path) as stream:
        head = stream.read(_LONG_BYTES)
    if len(head) < _LONG_BYTES or b"\n" in head:
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
        if any(all(_there(record, tree, name) for name in names) for names in file.has):
            return file
    return None


def _there(record: Mapping[str, object], tree: Mapping[str, object], name: str) -> bool:
    """Return True if a record has a dotted key; a list may be empty."""
    return name in record or find(record, name) is not None or find(tree, name) is not None


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
        if self.export.in_order and not isinstance(self.export.kind, ResultFile):
            parts.append(f"A trace ends after {MAX_SPANS:,} spans of others (--limit).")
        return f"Read as {self.export.kind.title}. {' '.join(parts)}".strip()


ADAPTERS: Final = (_foreign,)
