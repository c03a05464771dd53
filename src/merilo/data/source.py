"""Files as raw records: opening, unpacking and parsing them.

Nothing here depends on samples. JSON Lines and CSV are read line by line in constant memory; the text of a JSON file
is held whole, its records are not. The unpacked size of a gzip file is limited, because a few megabytes can unpack to
terabytes.
"""

import csv
import gzip
import io
import re
import sys
import zlib
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import Enum
from io import BufferedReader
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from merilo.data import check
from merilo.data.json_records import json_array, json_lines, json_objects
from merilo.data.lines import BOM, BUFFER_BYTES, Lines, RawRecord
from merilo.errors import DataError, Problem, UsageError

_MAX_ROW_LINES: Final = 100_000
"""Maximum lines of one row."""
_SEPARATOR: Final = re.compile(r"(?:\ufeff)?sep=(.)\s*", re.IGNORECASE)
_QUOTED: Final = re.compile(r'"[^"]*+"')
_ESCAPED_BYTE: Final = re.compile("[\udc80-\udcff]")


def csv_rows(lines: Lines, separator: str | None, name: str, limit: int) -> Iterator[RawRecord]:
    """Yield the rows under the header, each with its first line; `separator` None: detected from the header.

    `limit` is the maximum number of bytes of a row, which may have many lines. Raises DataError for a damaged header
    and for a longer row.
    """
    too_long: list[Problem] = []
    row_so_far = [0, 1]
    texts = _texts(lines, too_long, name, limit, row_so_far)
    first = next((text for text in texts if text.strip()), None)
    if first is not None and (stated := _SEPARATOR.fullmatch(first)):  # Excel states the separator in the first line
        separator, first = stated[1], next((text for text in texts if text.strip()), None)
    if first is None:
        return
    csv.field_size_limit(max(csv.field_size_limit(), limit))  # process-wide; csv has no other limit
    reader = csv.reader(chain([first], texts), delimiter=separator or delimiter(first), strict=True)
    header = _header(reader, name)
    while True:
        place = lines.number + 1
        row_so_far[:] = 0, place
        try:
            row = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            yield RawRecord(place, None, (Problem("a CSV row", f"one that is damaged ({error})"), *too_long))
        else:
            if too_long or any(cell and not cell.isspace() for cell in row):
                yield _csv_record(header, row, place, tuple(too_long))
        too_long.clear()


def _texts(lines: Lines, too_long: list[Problem], name: str, limit: int, row: list[int]) -> Iterator[str]:
    """Yield the lines as text, an empty one for each that is too long; raises DataError for a row of too many bytes.

    Without this limit, a quote that is not closed would make the rest of the file one row, and csv would hold all of
    it. `row`: the bytes of the row so far, and its first line.
    """
    for line in lines:
        if isinstance(line, Problem):
            too_long.append(line)
            yield ""
            continue
        row[0] += len(line)
        if row[0] > limit or lines.number - row[1] > _MAX_ROW_LINES:
            most = f"{limit:,} bytes" if row[0] > limit else f"{_MAX_ROW_LINES:,} lines"
            expected, advice = f"a row of at most {most}", "check for a quote that is not closed"
            raise DataError.of(Problem(expected, "a longer one", None, name, row[1], advice=advice))
        yield line.decode(errors="surrogateescape")  # one bad byte must not end the file


def delimiter(header: str) -> str:
    """Return the separator of a header: a tab if it has one, otherwise the most frequent of `,`, `;` and `|`."""
    bare = _QUOTED.sub("", header)
    # spreadsheets write ';' in many locales, and tabs where a table is copied
    return "\t" if "\t" in bare.strip() else max(",;|", key=bare.count)


def _header(reader: "Iterator[list[str]]", name: str) -> list[str]:
    try:
        header = [cell.strip() for cell in next(reader)]
        if header.count("") > 1:  # columns of a spreadsheet that were never filled
            header = [cell or f"column {place}" for place, cell in enumerate(header, start=1)]
    except csv.Error as error:
        raise DataError.of(Problem("a CSV header", f"one that is damaged ({error})", source=name, line=1)) from error
    if len(header) > check.MAX_COLUMNS:
        raise DataError.of(Problem(f"at most {check.MAX_COLUMNS:,} columns", f"{len(header):,}", source=name, line=1))
    if repeated := [cell for cell, count in Counter(header).items() if count > 1]:
        raise DataError.of(Problem("each column once", f"the column {repeated[0]!r} again", source=name, line=1))
    if (fault := check.text_fault("".join(header))) is not None:
        raise DataError.of(Problem("column names in UTF-8", fault, source=name, line=1))
    return header


def _csv_record(header: list[str], row: list[str], place: int, problems: tuple[Problem, ...]) -> RawRecord:
    if problems or len(row) != len(header):
        shape = Problem(f"a row of {len(header)} cells, as in the header", f"one of {len(row)}")
        return RawRecord(place, None, problems or (shape,))
    for column, cell in zip(header, row, strict=True):
        if not cell.isascii() and (byte := _ESCAPED_BYTE.search(cell)):
            got = f"byte 0x{ord(byte[0]) - 0xDC00:02X}"
            problems += (Problem("UTF-8 text", got, column, advice="save the file as UTF-8"),)
    if not "".join(row).strip(" :-"):  # the rule of a Markdown table
        row = [""] * len(row)
    value: dict[str, object] = {column: cell or None for column, cell in zip(header, row, strict=True)}
    return RawRecord(place, None if problems else value, problems)


_FORMULA: Final = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_ESCAPED: Final = re.compile("'+[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")


def escaped(text: str) -> str:
    """Return the text, with an apostrophe before it if a spreadsheet would run it as a formula.

    `plain` removes the apostrophe.

    Source: OWASP, "CSV Injection": cells that begin with = + - @, a tab or a line end. Also their full-width forms.
    """
    return f"'{text}" if _FORMULA.match(text) else text


def plain(cell: str) -> str:
    """Undo `escaped`; return a cell that was not escaped unchanged."""
    return cell[1:] if _ESCAPED.match(cell) else cell


MAX_LINE_BYTES: Final = 64 * 2**20
"""Maximum bytes of one line, or of one row of a table."""
MAX_UNPACKED_BYTES: Final = 4 * 2**30
"""Maximum unpacked bytes of one gzip file; a file that is not packed may have any size."""
MAX_RATIO: Final = 200
"""Maximum ratio of unpacked to packed bytes from `RATIO_BYTES` on; text has 3 to 20, much repeated text 100."""
RATIO_BYTES: Final = 64 * 2**20
FREE_ROWS: Final = 10_000
"""Rows that any packed file may have; more need a byte of the file each, since a few bytes can repeat one for ever."""

_EMPTY_BYTES: Final = 2**18
"""Bytes of a packed file that may hold no content; unpacking empty parts takes longer than reading text."""
_GZIP: Final = b"\x1f\x8b"  # how gzip files begin
_MAGIC = {
    b"PK\x03\x04": "a zip archive or an Excel workbook; unpack it, or save the sheet as CSV",
    b"PAR1": "a Parquet file",
    b"SQLite format 3": "an SQLite database",
    b"%PDF": "a PDF file",
    b"ARROW1": "an Arrow file",
    b"\x28\xb5\x2f\xfd": "a zstd archive",
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ": "an xz archive",
    b"<!doctype html": "an HTML page",
    b"<html": "an HTML page",
    b"version https://git-lfs": "a pointer of Git LFS; fetch the file with git lfs pull",
}
_UTF_16_OR_32 = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
_CONTROL = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b"))
_HEAD_BYTES = 4096
_SEARCHED: Final = 1000
"""Names in a folder that are compared with that of a file that does not exist."""


class Format(Enum):
    """File formats of records."""

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

_JSON: Final = re.compile(rb"\[\s*\{|\{[ \t\r]*\n")
"""Matches the beginning of an array of objects, or of an object of several lines."""
_SEPARATED: Final = {"\t": "tab-separated", ";": "separated by semicolons", "|": "separated by bars"}
_SHOWN: Final = 5
_ADVICE: Final = {
    **dict.fromkeys((".xlsx", ".xls", ".xlsm", ".ods"), "Save the sheet as CSV."),
    **dict.fromkeys((".zip", ".tar", ".tgz", ".7z"), "Unpack it and name the file."),
}


def format_of(path: Path) -> Format:
    """Return the format that the file's name indicates; raises UsageError for any other name."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] == [".gz"]:
        suffixes.pop()
    found = _SUFFIXES.get(suffixes[-1]) if suffixes else None
    if found is None and not path.exists() and not path.is_symlink():
        raise no_such_file(path)
    if found is None and path.is_dir():
        is_run = (path / "manifest.json").exists()
        files = sorted(each.name for each in path.iterdir() if each.suffix in _SUFFIXES)[:_SHOWN]
        advice = (
            f"a run. To print it: merilo show {path}" if is_run else f"a directory. Files in it: {', '.join(files)}"
        )
        raise UsageError(f"{path} is {advice}")
    if found is None:
        names = ", ".join(_SUFFIXES)
        advice = _ADVICE.get(path.suffix.lower(), "To read a TREC run, add --qrels.")
        raise UsageError(
            f"Unknown format of {path.name!r}. Supported suffixes: {names} (.gz accepted), .parquet. {advice}"
        )
    return found


def data_name(path: Path) -> str:
    """Return the name of the data set in this file: the file's name without its suffixes."""
    return path.name.removesuffix(".gz").rsplit(".", 1)[0]


@dataclass(frozen=True, slots=True)
class RecordFile:
    """A file of records, or standard input if `path` is None.

    `by_content` and `records` raise DataError if the file as a whole cannot be read.
    """

    path: Path | None
    format: Format
    max_line_bytes: int = MAX_LINE_BYTES
    objects: bool = False
    """Read each object at the top of a JSON file as a record, instead of the array that it contains."""
    separated: str = ""
    """What separates the cells of a .csv file, if it is not a comma."""

    @property
    def name(self) -> str:
        """The name of the file in messages."""
        return "standard input" if self.path is None else self.path.name

    @property
    def unit(self) -> str:
        """The unit in which a record's place is counted: "line" or, in JSON, "record"."""
        return "record" if self.format is Format.JSON else "line"

    def placed(self, raw: RawRecord, problems: Iterable[Problem] | None = None) -> list[Problem]:
        """Return the problems of a record, otherwise its own, with the file and its place there."""
        own = raw.problems if problems is None else problems
        return [replace(each, source=each.source or self.name, line=raw.place, unit=self.unit) for each in own]

    def by_content(self) -> "RecordFile":
        """Return the file, as JSON if it is named .jsonl and begins with an array or an object of several lines.

        Raises DataError if the file does not open or its first bytes are not text. A pipe is not checked, because bytes
        that are read from it are gone.
        """
        with suppress(OSError):  # opening it raises a clearer error
            if self.path is None or self.path.is_fifo():
                return self
        with self._opened() as stream:
            head = stream.peek(_HEAD_BYTES)[:_HEAD_BYTES].removeprefix(BOM).lstrip()
        if self.format is Format.CSV:
            sign = delimiter(head.partition(b"\n")[0].decode(errors="replace"))
            return replace(self, separated=_SEPARATED.get(sign, ""))
        is_json = self.format is Format.JSONL and _JSON.match(head) is not None
        return replace(self, format=Format.JSON) if is_json else self

    def records(self) -> Iterator[RawRecord]:
        """Yield the records in their order; a damaged one has problems, and reading continues if possible."""
        with self._opened() as stream:
            lines = Lines(stream, self.max_line_bytes, self.name)
            packed = getattr(getattr(stream, "raw", None), "packed_bytes", None)
            try:
                for number, record in enumerate(self._records(stream, lines), start=1):
                    if packed is not None and number > FREE_ROWS and number > packed():
                        raise too_many_rows(self.name)
                    yield record
            except (OSError, EOFError, zlib.error) as error:
                yield RawRecord(lines.number + 1, None, (unreadable(error),))

    def _records(self, stream: BufferedReader, lines: Lines) -> Iterator[RawRecord]:
        match self.format:
            case Format.JSONL:
                return json_lines(lines)
            case Format.JSON:
                return json_objects(stream, self.name) if self.objects else json_array(stream, self.name)
            case Format.CSV | Format.TSV:
                separator = "\t" if self.format is Format.TSV else None
                return csv_rows(lines, separator, self.name, self.max_line_bytes)

    @contextmanager
    def _opened(self) -> Generator[BufferedReader]:
        with ExitStack() as stack:
            try:
                if self.path is None:
                    stream = _unpacked(_standard_input(), self.name)
                else:
                    stream = stack.enter_context(open_unpacked(self.path))
                head = stream.peek(_HEAD_BYTES)[:_HEAD_BYTES]
            except FileNotFoundError as error:
                raise no_such_file(self.path) from error
            except (OSError, EOFError, zlib.error) as error:
                raise DataError.of(replace(unreadable(error), source=self.name)) from error
            if (fault := _head_fault(head)) is not None:
                raise DataError.of(Problem("UTF-8 text", fault, source=self.name))
            yield stream


@contextmanager
def open_unpacked(path: Path) -> Generator[BufferedReader]:
    """Open a file, and unpack it if its content is gzip, whatever its name.

    Raises OSError, EOFError or zlib.error, here or while reading, if the file cannot be read; DataError while reading
    if it unpacks to more than `MAX_UNPACKED_BYTES`.
    """
    with path.open("rb") as file:
        yield _unpacked(file, path.name)


def _unpacked(stream: BufferedReader, name: str) -> BufferedReader:
    if stream.peek(2)[:2] != _GZIP:
        return stream
    return BufferedReader(_Unpacked(stream, name, MAX_UNPACKED_BYTES), BUFFER_BYTES)


class _Unpacked(io.RawIOBase):
    """The content of a gzip file; reading raises DataError once it has returned more than `limit` bytes."""

    def __init__(self, packed: BufferedReader, name: str, limit: int) -> None:
        self._packed = _Counted(packed, self)
        self._content = gzip.GzipFile(fileobj=cast("BinaryIO", self._packed))  # GzipFile only reads the file
        self.name = name
        self._limit = limit
        self.given = 0

    def readable(self) -> bool:
        """See `io.RawIOBase.readable`."""
        return True

    def packed_bytes(self) -> int:
        """Return the number of bytes read from the file so far."""
        return self._packed.count

    def readinto(self, buffer: Any, /) -> int:  # Any: writable buffers have no type before Python 3.12
        """See `io.RawIOBase.readinto`; raises DataError."""
        count = self._content.readinto(
            memoryview(buffer)[:BUFFER_BYTES]
        )  # GzipFile copies each chunk, so the chunk is bounded
        self.given += count
        needed, got = "", "more"
        if self.given > RATIO_BYTES and self.given > MAX_RATIO * self._packed.count:
            needed = f"a file that becomes at most {MAX_RATIO} times larger when it is unpacked"
            got = f"{self._packed.count:,} bytes that became {self.given:,}"
        elif self.given > self._limit:
            needed = f"at most {self._limit:,} bytes when it is unpacked"
        if needed:
            advice = "unpack the file first (gunzip) if it is meant to be this large"
            raise DataError.of(Problem(needed, got, source=self.name, advice=advice))
        return count


class _Counted:
    """A stream that counts the bytes that were read from it. Raises DataError if they unpack to far fewer."""

    def __init__(self, stream: BufferedReader, content: "_Unpacked") -> None:
        self._stream = stream
        self._content = content
        self.count = 0

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes."""
        found = self._stream.read(size)
        self.count += len(found)
        if self.count > _EMPTY_BYTES + 2 * self._content.given:
            needed, got = "a gzip file with content", f"{self.count:,} bytes that unpack to {self._content.given:,}"
            raise DataError.of(Problem(needed, got, source=self._content.name))
        return found


def too_many_rows(name: str) -> DataError:
    """Return the error for a packed file with more rows than bytes."""
    needed = f"at most {FREE_ROWS:,} rows, or one for each byte of the packed file"
    return DataError.of(Problem(needed, "more", source=name, advice="write each row once"))


def _standard_input() -> BufferedReader:
    stream = sys.stdin.buffer
    if hasattr(stream, "peek"):
        return cast("BufferedReader", stream)  # the stream that the interpreter opens
    return BufferedReader(io.BytesIO(stream.read()))


def no_such_file(path: Path | None) -> DataError:
    """Return the error for a file that does not exist, with a similar name in its folder."""
    near: list[str] = []
    with suppress(OSError):
        names = [] if path is None else [each.name for each in islice(path.parent.iterdir(), _SEARCHED)]
        near = get_close_matches(path.name, names, n=1) if path is not None else []
    advice = f" Did you mean {near[0]}?" if near else ""
    return DataError(f"No such file: {path}.{advice}", problems=(Problem("a readable file", f"no file at {path}"),))


def unreadable(error: Exception) -> Problem:
    """Return the problem of a file that does not open or is truncated."""
    match error:
        case IsADirectoryError():
            got = "a directory"
        case PermissionError():
            got = "a file without read permission"
        case EOFError():
            got = "a truncated gzip file"
        case _:
            got = f"an error ({error})"
    return Problem("a readable file", got)


def _head_fault(head: bytes) -> str | None:
    if head.startswith(_UTF_16_OR_32):
        return "UTF-16 or UTF-32; save the file as UTF-8"
    for magic, kind in _MAGIC.items():
        if head[: len(magic)] == magic or head[: len(magic)].lower() == magic:
            return kind
    zeros = head.count(0)
    if zeros > len(head) * 0.3:
        return "UTF-16 or UTF-32 without a byte order mark, or a binary file; save the file as UTF-8"
    if len(head.translate(None, _CONTROL)) < len(head) * 0.9:
        return "a binary file"
    return None
