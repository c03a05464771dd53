"""Bytes as lines, and the records that readers make from them and adapters from other sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, cast

from merilo.errors import DataError, Problem
from merilo.plugins import Group, plugins

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from io import BufferedReader

    from merilo.data.sample import Sample

    ForeignRecord: TypeAlias = "Mapping[str, object] | Sample | RawRecord"


BUFFER_BYTES: Final = 2**18
SHOWN_PROBLEMS: Final = 20
BOM: Final = b"\xef\xbb\xbf"
_MAX_BLANK_LINES: Final = 100_000
"""Maximum blank lines in a row. More are not data, and skipping them would ignore Ctrl-C for minutes."""


class RawRecord(NamedTuple):
    """The content at a place (line, or record of a JSON file): an object, its problems, or both."""

    place: int
    value: dict[str, object] | None
    problems: tuple[Problem, ...] = ()


class Lines:
    """The lines of a stream as bytes; a line that is too long is skipped and replaced by a problem.

    Raises DataError, while it is read, for more than 100,000 blank lines in a row.
    """

    def __init__(self, stream: BufferedReader, limit: int, name: str) -> None:
        self._readline = stream.readline
        self._limit = limit
        self._name = name
        self.number = 0

    def __iter__(self) -> Iterator[bytes | Problem]:
        blank = 0
        while line := self._readline(self._limit + 1):
            self.number += 1
            if self.number == 1:
                line = line.removeprefix(BOM)
            blank = blank + 1 if line.isspace() else 0
            if blank > _MAX_BLANK_LINES:
                expected, advice = f"at most {_MAX_BLANK_LINES:,} blank lines in a row", "remove them"
                raise DataError.of(Problem(expected, "more", None, self._name, self.number, advice=advice))
            if len(line) <= self._limit:
                yield line
                continue
            while line and not line.endswith(b"\n"):
                line = self._readline(BUFFER_BYTES)
            yield Problem(f"a line of at most {self._limit:,} bytes", "a longer one")


def refusal(problems: Sequence[Problem]) -> DataError:
    """Return the error for a source with problems, whose message has the first 20 of them."""
    more = f" And {len(problems) - SHOWN_PROBLEMS:,} more." if len(problems) > SHOWN_PROBLEMS else ""
    shown = " ".join(each.message for each in problems[:SHOWN_PROBLEMS])
    return DataError(shown + more, problems=tuple(problems))


def encoding_fault(error: UnicodeDecodeError, before: int = 0) -> Problem:
    """Return the problem of a byte that is not valid UTF-8; `before`: the bytes before those that were decoded."""
    advice = "save the file as UTF-8"
    return Problem(
        "UTF-8 text", f"byte 0x{error.object[error.start]:02X} at byte {before + error.start + 1}", advice=advice
    )


@dataclass(frozen=True, slots=True)
class ForeignRecords:
    """The records of one source: the name of the data set, the source's name in messages, and the unit of a place."""

    name: str
    shown: str
    unit: str
    make: Callable[[], Iterable[ForeignRecord]]
    is_once: bool = False
    """True if the source can be read only once."""
    note: Callable[[], str] | None = None
    """Return what the user must know about the records, such as what was left out; asked after they were read."""
    cluster: str | None = None
    """The field whose equal values are dependent records; None if they are independent."""
    of_traces: Callable[[Collection[str] | None], ForeignRecords] | None = None
    """Return the records of traces, by tools that retrieve; None for other data."""

    def __iter__(self) -> Iterator[ForeignRecord]:
        return iter(self.make())


def adapted(source: object) -> object | None:
    """Return the records that an adapter makes of an object or a path; None if no adapter knows it."""
    for each in plugins(Group.ADAPTERS):
        loaded = each.load()
        adapters = cast("tuple[Callable[[object], object], ...]", loaded if isinstance(loaded, tuple) else (loaded,))
        for adapter in adapters:
            found = adapter(source)
            if found is not None:
                return found
    return None
