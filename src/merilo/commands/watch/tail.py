"""New records of a source that grows: a file or folder of JSON Lines with rows or spans, or lines of standard input.

::

    files ──> complete lines after the last position ──> rows, or the traces whose last span is old ──> arrivals

A file is recognised by the first and the last 4 KiB of what was read of it, so it may be renamed, rotated or packed.
Spans that are not complete yet are read again at the next look, so nothing of them is stored.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from merilo.adapters.exports import ResultFile, kind_of
from merilo.adapters.traces import items_of_traces, whole_item
from merilo.data.aliases import aliases
from merilo.data.json_records import Decoder
from merilo.data.lines import BUFFER_BYTES
from merilo.data.source import MAX_LINE_BYTES, no_such_file, open_unpacked
from merilo.errors import DataError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Sequence

    from merilo.adapters.base import Item
    from merilo.adapters.contents import SpanFile
    from merilo.adapters.spans import Span
    from merilo.data.lines import Peekable, RawRecord

_COMPARED: Final = 4096
"""Bytes at the start and at the end of what was read by which a file is recognised."""
_OFFSET_BITS: Final = 48
"""A place is the number of the file, then the offset in it."""
_NAMES: Final = re.compile(r"\.(jsonl|ndjson|json)([.-].*)?$")
_MAX_POSITIONS: Final = 1_000


class Arrival(NamedTuple):
    """A row or a complete trace."""

    id: str
    record: dict[str, Any]  # Any: JSON
    spans: int = 0
    """Number of spans of a trace; 0 for a row."""


@dataclass(frozen=True, slots=True)
class Position:
    """The part of a file that is done: `offset` unpacked bytes, of which `head` and `tail` are digests.

    `end`: the bytes that were read; those from `offset` on are read again. The other fields are as the system gave them
    then, so that a file without a change is not opened.
    """

    path: str
    device: int
    inode: int
    size: int
    changed: int
    offset: int = 0
    end: int = 0
    head: str = ""
    tail: str = ""


@dataclass(slots=True)
class Tail:
    """What arrived in a source since the last look. `positions` and the counts are complete once `arrivals` ends.

    `source`: None for `lines` of standard input, of which those from `kept` on must be given again.
    """

    source: Path | None
    known: Sequence[Position]
    now: float
    settle_s: float
    lines: Sequence[bytes] = ()
    damaged: int = 0
    left_out: int = 0
    kept: int = 0
    positions: list[Position] = field(default_factory=list[Position])
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
            yield Arrival(str(id_), {"id": str(id_), **row})

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
        for place, line in enumerate(self.lines) if self.source is None else self._file_lines():
            if not line.isspace():
                record = decode(line, place)
                if record.value is None:
                    self.damaged += 1
                else:
                    yield record

    def _file_lines(self) -> Iterator[tuple[int, bytes]]:
        for path in self._files():
            with suppress(FileNotFoundError, EOFError):  # rotated meanwhile; a packed file that is still being written
                stat = path.stat()
                known = self._known(path, stat)
                begun = Position(str(path), stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)
                if known is not None:
                    begun = replace(begun, offset=known.offset, end=known.end, head=known.head, tail=known.tail)
                    if known.offset == known.end and (known.size, known.changed) == (begun.size, begun.changed):
                        self.positions.append(begun)
                        continue
                with open_unpacked(path) as stream:
                    _skip(stream, begun.offset)
                    yield from self._new_lines(stream, begun)

    def _new_lines(self, stream: Peekable, begun: Position) -> Iterator[tuple[int, bytes]]:
        """Yield the complete lines; the position is that of the start until all files are read."""
        place, offset = len(self.positions) << _OFFSET_BITS, begun.offset
        self.positions.append(begun)
        try:
            while (line := stream.readline(MAX_LINE_BYTES)).endswith(b"\n") or len(line) == MAX_LINE_BYTES:
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
        self.kept = len(self.lines) if cut is None else cut
        at = len(self.positions) if cut is None else cut >> _OFFSET_BITS
        for number, each in enumerate(self.positions):
            if number <= at:
                done = each.end if number < at or cut is None else cut & ((1 << _OFFSET_BITS) - 1)
                with suppress(FileNotFoundError), open_unpacked(Path(each.path)) as stream:
                    head, tail = _digests(stream, done)
                    self.positions[number] = replace(each, offset=done, head=head, tail=tail)
        there = {(each.device, each.inode) for each in self.positions}
        gone = [each for each in self.known if (each.device, each.inode) not in there]
        self.positions = [*gone, *self.positions][-_MAX_POSITIONS:]

    def _files(self) -> list[Path]:
        """Return the files, the one that changed first at the front."""
        if (source := self.source) is None:
            return []
        if source.is_dir():
            found = [each for each in source.iterdir() if _NAMES.search(each.name) and each.is_file()]
        elif source.is_file() or self.known:  # a file that is being rotated is not there for a moment
            rotated = [each for each in source.parent.glob(f"{source.stem}*") if each != source and each.is_file()]
            found = [each for each in rotated if self._known(each, each.stat()) is not None]
            found += [source] if source.is_file() else []
        else:
            raise no_such_file(source)
        return sorted(found, key=lambda each: (each.stat().st_mtime_ns, each.name))

    def _known(self, path: Path, stat: os.stat_result) -> Position | None:
        """Return the position of a file, by its content. Raises DataError if what was read of it has changed."""
        own = [each for each in self.known if (each.device, each.inode) == (stat.st_dev, stat.st_ino)]
        for each in own:
            if (each.size, each.changed) == (stat.st_size, stat.st_mtime_ns):
                return each
        with open_unpacked(path) as stream:
            begin = stream.read(_COMPARED)
        for each in (*own, *(other for other in self.known if other not in own)):
            if each.offset and _digest(begin[: each.offset]) == each.head:
                with open_unpacked(path) as stream:
                    if _digests(stream, each.offset) == (each.head, each.tail):
                        return each
                if each in own or each.path == str(path):
                    advice = "Append to files and rename them, but do not edit them, or start a new watch (--state)"
                    raise DataError(f"{path} was rewritten before byte {each.offset:,}, which was read. {advice}.")
        return None


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def _digests(stream: Peekable, offset: int) -> tuple[str, str]:
    """Return the digests of the first and the last bytes before `offset`, from the start of a stream."""
    if offset <= 2 * _COMPARED:
        data = stream.read(offset)
        return _digest(data[:_COMPARED]), _digest(data[-_COMPARED:])
    head = stream.read(_COMPARED)
    _skip(stream, offset - 2 * _COMPARED)
    return _digest(head), _digest(stream.read(_COMPARED))


def _skip(stream: Peekable, count: int) -> None:
    """Skip bytes; those of a packed file have to be unpacked."""
    seek = getattr(stream, "seek", None)
    if seek is not None and getattr(stream, "seekable", bool)():
        seek(count, 1)
        return
    while count > 0 and (read := len(stream.read(min(count, BUFFER_BYTES)))):
        count -= read
