"""Result files of evaluation tools as samples with scores; `results.toml` says where each tool writes what."""

from __future__ import annotations

import json
import tomllib
import zipfile
import zlib
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from math import nan
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from merilo.adapters.attributes import finite
from merilo.adapters.base import Item
from merilo.adapters.contents import answer_in, documents_in, frozen, question_in
from merilo.data import check
from merilo.data.content import at_path
from merilo.data.json_records import Decoder
from merilo.data.source import MAX_LINE_BYTES, MAX_UNPACKED_BYTES
from merilo.errors import DataError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from merilo.data.lines import RawRecord

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
