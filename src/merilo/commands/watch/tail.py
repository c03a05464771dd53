"""New records of a source that grows: a file or folder of JSON Lines with rows or spans.

::

    files ──> complete lines after the last position ──> rows, or the traces whose last span is old ──> arrivals

A file is recognised by the first and the last 4 KiB of what was read of it, so it may be renamed, rotated or packed.
Spans that are not complete yet are read again at the next look, so nothing of them is stored.
"""

from __future__ import annotations

import re
import zlib
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from io import BufferedReader
from itertools import chain
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from merilo.adapters.exports import ResultFile, kind_of
from merilo.adapters.traces import items_of_traces, whole_item
from merilo.commands.watch.settings import storable
from merilo.data.aliases import aliases
from merilo.data.json_records import Decoder
from merilo.data.lines import BUFFER_BYTES, RawRecord
from merilo.data.source import no_such_file, open_unpacked
from merilo.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from merilo.adapters.base import Item
    from merilo.adapters.spans import Span, SpanFile

_COMPARED: Final = 4096
"""Bytes at the start and at the end of what was read by which a file is recognised."""
_MAX_ROW_BYTES: Final = 2**23
"""A longer row is damaged, as it would not fit the lines of a run."""
_OFFSET_BITS: Final = 48
"""A place is the number of the file, then the offset in it."""
_ROTATED: Final = re.compile(r"[.-]\d")
_NAMES: Final = re.compile(r"\.(jsonl|ndjson|json)([.-].*)?$")


class Arrival(NamedTuple):
    """A row or a complete trace."""

    id: str
    record: dict[str, Any]  # Any: JSON
    spans: int = 0
    """Number of spans of a trace; 0 for a row."""


@dataclass(frozen=True, slots=True)
class Position:
    """The part of a file that is done: `offset` unpacked bytes, of which `head` and `tail` are digests.

    `end`: the bytes that were read; those from `offset` on are read again. `size` and `changed` are as the system gave
    them then, so that a file without a change is not opened.
    """

    path: str
    size: int
    changed: int
    inode: int = 0
    offset: int = 0
    end: int = 0
    head: str = ""
    tail: str = ""


@dataclass(slots=True)
class Tail:
    """What arrived in a source since the last look. `positions` and the counts are complete once `arrivals` ends."""

    source: Path
    known: Sequence[Position]
    now: float
    settle_s: float
    damaged: int = 0
    read: int = 0
    left_out: int = 0
    positions: list[Position] = field(default_factory=list[Position])
    _found: set[Position] = field(default_factory=set[Position])
    _unsettled: int | None = None

    def arrivals(self) -> Iterator[Arrival]:
        """Yield rows and settled traces. Raises DataError if the source was rewritten or is not traffic."""
        records = self._records()
        first = next(records, None)
        kind = None if first is None or first.value is None else kind_of(first.value)
        if isinstance(kind, ResultFile):
            raise DataError(f"{self.source} has {kind.title}, not traffic. Evaluate it: merilo run {self.source}")
        if first is not None:
            records = chain([first], records)
            yield from self._rows(records) if kind is None else self._traces(records, kind)
        self._settle_positions()

    def _rows(self, records: Iterable[RawRecord]) -> Iterator[Arrival]:
        for record in records:
            row = dict(record.value or {})
            name = next((each for each in row if each == "id" or aliases().field_of(each) == "id"), None)
            id_ = None if name is None else row.pop(name)
            if not isinstance(id_, str | int) or id_ == "":
                offset = record.place & ((1 << _OFFSET_BITS) - 1)
                id_ = f"{offset}-{_digest(repr(row).encode())[:12]}"
            id_ = storable(str(id_))
            yield Arrival(id_, {"id": id_, **row})

    def _traces(self, records: Iterable[RawRecord], kind: SpanFile) -> Iterator[Arrival]:
        for item in items_of_traces(records, kind, self._settled):
            if item.record is None:
                self.left_out += 1
            else:
                yield Arrival(item.id, item.record, sum(item.kinds.values()))

    def _settled(self, spans: Sequence[Span], place: int) -> tuple[Item, ...]:
        """Return the sample of a trace, or nothing if it may get more spans; a time far in the future is an error."""
        end = max(max(span.start, span.end) for span in spans) / 1e9
        if abs(self.now - end) >= self.settle_s:
            return whole_item(spans, place)
        self._unsettled = place if self._unsettled is None else min(place, self._unsettled)
        return ()

    def _records(self) -> Iterator[RawRecord]:
        """Yield the readable records; count the damaged ones."""
        decode = Decoder().line
        for place, line in self._file_lines():
            if not line.isspace():
                record = decode(line, place)
                if record.value is None:
                    self.damaged += 1
                else:
                    self.read += 1
                    yield record

    def _file_lines(self) -> Iterator[tuple[int, bytes]]:
        for path in self._files():
            try:
                yield from self._new_lines(path)
            except (FileNotFoundError, EOFError):  # rotated meanwhile; a packed file that is still being written
                continue
            except (OSError, zlib.error) as error:
                raise DataError(f"{path} cannot be read ({error}). Repair or remove it.") from error

    def _new_lines(self, path: Path) -> Iterator[tuple[int, bytes]]:
        """Yield the complete lines; the position is that of the start until all files are read."""
        stat, known = path.stat(), self._known(path)
        begun = replace(
            known or Position("", 0, 0), path=str(path), size=stat.st_size, changed=stat.st_mtime_ns, inode=stat.st_ino
        )
        place, offset = len(self.positions) << _OFFSET_BITS, begun.offset
        self.positions.append(begun)
        if known is not None:
            self._found.add(known)
            if known.offset == known.end and (known.size, known.changed) == (begun.size, begun.changed):
                return
        with open_unpacked(path) as stream:
            _skip(stream, offset)
            try:
                while (line := stream.readline(_MAX_ROW_BYTES)).endswith(b"\n") or len(line) == _MAX_ROW_BYTES:
                    start, offset = offset, offset + len(line)
                    while line and not line.endswith(b"\n"):  # a line that is too long is damaged
                        line = stream.readline(BUFFER_BYTES)
                        offset += len(line)
                        line = b"!\n" if line.endswith(b"\n") else line
                    yield place | start, line
            finally:
                self.positions[-1] = replace(begun, end=offset)

    def _settle_positions(self) -> None:
        """Set how far each file is done: up to the first span of the first trace that is not settled."""
        cut = self._unsettled
        at = len(self.positions) if cut is None else cut >> _OFFSET_BITS
        for number, each in enumerate(self.positions[: at + 1]):
            done = each.end if cut is None or number < at else cut & ((1 << _OFFSET_BITS) - 1)
            with suppress(FileNotFoundError), open_unpacked(Path(each.path)) as stream:
                head, tail = _digests(stream, done)
                self.positions[number] = replace(each, offset=done, head=head, tail=tail)
        gone = [each for each in self.known if each not in self._found]
        self.positions = [*gone, *self.positions][-1_000:]

    def _files(self) -> list[Path]:
        """Return the files, the one that changed first at the front.

        Rotated ones of a single file have a number or date in their names. Those that the watch did not read count if
        they are newer than what it read.
        """
        source = self.source
        if source.is_dir():
            found = [each for each in source.iterdir() if _NAMES.search(each.name) and each.is_file()]
        elif source.is_file() or self.known:  # a file that is being rotated is not there for a moment
            found, since = [source] if source.is_file() else [], max((each.changed for each in self.known), default=inf)
            for each in source.parent.iterdir():
                more = each.name.removeprefix(source.stem).removeprefix(source.suffix)  # app.log.1, app-2026-11-01.log
                if more != each.name and _ROTATED.match(more) and each.is_file() and self.known:
                    found += [each] if each.stat().st_mtime_ns >= since or self._known(each) is not None else []
        else:
            raise no_such_file(source)
        return sorted(found, key=lambda each: (each.stat().st_mtime_ns, each.name))

    def _known(self, path: Path) -> Position | None:
        """Return the position of a file, by its content. Raises DataError if what was read of it has changed."""
        stat, known = path.stat(), sorted(self.known, key=lambda each: each.path != str(path))
        if known and (known[0].path, known[0].size, known[0].changed) == (str(path), stat.st_size, stat.st_mtime_ns):
            return known[0]
        with open_unpacked(path) as stream:
            begin = stream.read(_COMPARED)
        for each in known:
            if each.offset and _digest(begin[: each.offset]) == each.head:
                with open_unpacked(path) as stream:
                    if _digests(stream, each.offset) == (each.head, each.tail):
                        return each
                # Another file that begins like this one: the next one of a rotation, which may have been copied.
                same = (each.path, each.inode) == (str(path), stat.st_ino) and each not in self._found
                if same and each.end <= stat.st_size:
                    advice = "Append to files and rename them, but do not edit them, or start a new watch (--state)"
                    raise DataError(f"{path} was rewritten before byte {each.offset:,}, which was read. {advice}.")
        return None


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def _digests(stream: BufferedReader, offset: int) -> tuple[str, str]:
    """Return the digests of the first and the last bytes before `offset`, from the start of a stream."""
    head = stream.read(min(offset, _COMPARED))
    _skip(stream, max(0, offset - 2 * _COMPARED))
    return _digest(head), _digest((head + stream.read(min(_COMPARED, offset - len(head))))[-_COMPARED:])


def _skip(stream: BufferedReader, count: int) -> None:
    """Skip bytes; those of a packed file have to be unpacked."""
    if isinstance(stream, BufferedReader) and stream.seekable():
        stream.seek(count, 1)
        return
    while count > 0 and (read := len(stream.read(min(count, BUFFER_BYTES)))):
        count -= read
