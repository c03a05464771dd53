"""Records that adapters make of the objects and files of other systems (`merilo.adapters`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, cast

from merilo.plugins import Group, plugins

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from merilo.data.lines import RawRecord
    from merilo.data.sample import Sample

    ForeignRecord: TypeAlias = "Mapping[str, object] | Sample | RawRecord"


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
