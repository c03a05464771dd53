"""Files as raw records: what opens them, what unpacks them, what reads them.

Nothing here knows what a sample is. JSON Lines and CSV are read line by line in constant memory; the text
of a JSON file is held whole, its records are not. What a gzip file unpacks to is bounded, for a few megabytes can
unpack to terabytes.
"""

import gzip
import io
import sys
import zlib
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from merilo.data.csv_records import csv_rows
from merilo.data.json_records import json_array, json_lines
from merilo.data.lines import BUFFER_BYTES, Lines, Peekable, RawRecord
from merilo.errors import DataError, Problem, UsageError

MAX_LINE_BYTES: Final = 64 * 2**20
"""Bytes of one line, or of one row of a table."""
MAX_UNPACKED_BYTES: Final = 4 * 2**30
"""Bytes that one gzip file may unpack to; a file that is not packed may have any size."""

_GZIP: Final = b"\x1f\x8b"  # how gzip files begin
_MAGIC = {
    b"PK\x03\x04": "a zip archive (or an Excel workbook)",
    b"PAR1": "a Parquet file",
    b"SQLite format 3": "an SQLite database",
    b"%PDF": "a PDF file",
    b"ARROW1": "an Arrow file",
    b"\x28\xb5\x2f\xfd": "a zstd archive",
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ": "an xz archive",
}
_UTF_16_OR_32 = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
_CONTROL = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b"))
_HEAD_BYTES = 4096


class Format(Enum):
    """How records stand in a file."""

    JSONL = "jsonl"
    JSON = "json"
    CSV = "csv"
    TSV = "tsv"


_SUFFIXES = {
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
    ".json": Format.JSON,
    ".csv": Format.CSV,
    ".tsv": Format.TSV,
}


def format_of(path: Path) -> Format:
    """The format that the file's name tells; raises UsageError for any other name."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] == [".gz"]:
        suffixes.pop()
    found = _SUFFIXES.get(suffixes[-1]) if suffixes else None
    if found is None:
        names = ", ".join(_SUFFIXES)
        raise UsageError(
            f"{path.name!r} has no known format; name the file with one of {names}, each perhaps with .gz. "
            "A TREC run is read beside its --qrels."
        )
    return found


def data_name(path: Path) -> str:
    """What a data set is called that stands in this file: its name without its endings."""
    return path.name.removesuffix(".gz").rsplit(".", 1)[0]


@dataclass(frozen=True, slots=True)
class RecordFile:
    """A file of records, or standard input where `path` is None.

    `check_head` and `records` raise DataError where the file as a whole cannot be read.
    """

    path: Path | None
    format: Format
    max_line_bytes: int = MAX_LINE_BYTES

    @property
    def name(self) -> str:
        """What messages call the file."""
        return "standard input" if self.path is None else self.path.name

    @property
    def unit(self) -> str:
        """What a record's place counts: "line" or, in JSON, "record"."""
        return "record" if self.format is Format.JSON else "line"

    def check_head(self) -> None:
        """Raise DataError where the file does not open or its first bytes are no text.

        A pipe is left alone, since what is looked at there is gone.
        """
        if self.path is not None and not _is_pipe(self.path):
            with self._opened():
                pass

    def records(self) -> Iterator[RawRecord]:
        """The records in their order; a damaged one says so, and reading goes on where it can."""
        with self._opened() as stream:
            lines = Lines(stream, self.max_line_bytes, self.name)
            try:
                match self.format:
                    case Format.JSONL:
                        yield from json_lines(lines)
                    case Format.JSON:
                        yield from json_array(stream, self.name)
                    case Format.CSV | Format.TSV:
                        separator = "\t" if self.format is Format.TSV else None
                        yield from csv_rows(lines, separator, self.name, self.max_line_bytes)
            except (OSError, EOFError, zlib.error) as error:
                yield RawRecord(lines.number + 1, None, (unreadable(error),))

    @contextmanager
    def _opened(self) -> Generator[Peekable]:
        with ExitStack() as stack:
            try:
                stream: Peekable
                if self.path is None:
                    stream = _unpacked(_standard_input(), self.name)
                else:
                    stream = stack.enter_context(open_unpacked(self.path))
                head = stream.peek(_HEAD_BYTES)[:_HEAD_BYTES]
            except (OSError, EOFError, zlib.error) as error:
                raise DataError.of(replace(unreadable(error), source=self.name)) from error
            if (fault := _head_fault(head)) is not None:
                raise DataError.of(Problem("UTF-8 text", fault, source=self.name))
            yield stream


def _is_pipe(path: Path) -> bool:
    try:
        return path.is_fifo()
    except OSError:  # opening it says what is wrong
        return False


@contextmanager
def open_unpacked(path: Path) -> Generator[Peekable]:
    """Open a file, and unpack it if its content is gzip, whatever its name.

    Raises OSError, EOFError or zlib.error, here or while reading, if the file cannot be read; DataError while reading
    if it unpacks to more than `MAX_UNPACKED_BYTES`.
    """
    with io.BufferedReader(io.FileIO(path), BUFFER_BYTES) as file:
        yield _unpacked(file, path.name)


def _unpacked(stream: Peekable, name: str) -> Peekable:
    if stream.peek(2)[:2] != _GZIP:
        return stream
    return io.BufferedReader(_Unpacked(stream, name, MAX_UNPACKED_BYTES), BUFFER_BYTES)


class _Unpacked(io.RawIOBase):
    """The content of a gzip file; reading raises DataError once it has given more than `limit` bytes."""

    def __init__(self, packed: Peekable, name: str, limit: int) -> None:
        self._content = gzip.GzipFile(fileobj=cast("BinaryIO", packed))  # reading is all that it does with the file
        self._name = name
        self._limit = limit
        self._given = 0

    def readable(self) -> bool:
        """See `io.RawIOBase.readable`."""
        return True

    def readinto(self, buffer: Any, /) -> int:  # Any: what can be written to has no name before Python 3.12
        """See `io.RawIOBase.readinto`; raises DataError."""
        count = self._content.readinto(memoryview(buffer)[:BUFFER_BYTES])  # it makes a copy of what it reads at once
        self._given += count
        if self._given > self._limit:
            advice = "unpack the file first (gunzip) if it is meant to be this large"
            got = f"at most {self._limit:,} bytes when it is unpacked"
            raise DataError.of(Problem(got, "more", source=self._name, advice=advice))
        return count


def _standard_input() -> Peekable:
    stream = sys.stdin.buffer
    if hasattr(stream, "peek"):
        return cast("Peekable", stream)  # what the interpreter itself opens
    return io.BufferedReader(io.BytesIO(stream.read()))


def unreadable(error: Exception) -> Problem:
    """What to say of a file that does not open, or breaks off."""
    match error:
        case FileNotFoundError():
            got = f"no file at {error.filename}"
        case IsADirectoryError():
            got = "a directory"
        case PermissionError():
            got = "one that may not be read (permission denied)"
        case EOFError():
            got = "a gzip file that breaks off"
        case _:
            got = f"an error ({error})"
    return Problem("a file that can be read to its end", got)


def _head_fault(head: bytes) -> str | None:
    if head.startswith(_UTF_16_OR_32):
        return "UTF-16 or UTF-32; save the file as UTF-8"
    for magic, kind in _MAGIC.items():
        if head.startswith(magic):
            return kind
    zeros = head.count(0)
    if zeros > len(head) * 0.3:
        return "UTF-16 or UTF-32 without a mark, or a binary file; save the file as UTF-8"
    if len(head.translate(None, _CONTROL)) < len(head) * 0.9:
        return "a binary file"
    return None
