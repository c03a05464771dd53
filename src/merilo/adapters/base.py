"""What an adapter is: a reader of the objects or files of one other system.

A module of this package that assigns `ADAPTERS`, a tuple of adapters, is found by its file. An installed package
declares its own in the entry points `merilo.adapters`. `merilo.data.load` asks each adapter in turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from merilo.data.foreign import ForeignRecords
from merilo.data.source import data_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from merilo.data.foreign import ForeignRecord


@dataclass(frozen=True, slots=True)
class Adapter:
    """A reader of the objects or files of one system.

    - `recognises`: True for an object, or the `Path` of a file or folder, that it reads. It looks at names, attributes
      and the first bytes only, imports nothing, and raises nothing.
    - `samples`: yields the records of such a source, in order, each time it is called. The keys are fields of a sample
      or names that `load` knows; a `RawRecord` also carries problems and a place. Raises DataError if the source as a
      whole cannot be read.
    - `unit`: what a place counts in messages, such as "row" or "line".
    """

    name: str
    recognises: Callable[[object], bool]
    samples: Callable[[Any], Iterable[ForeignRecord]]  # Any: whatever `recognises` accepted
    unit: str = "record"

    def __call__(self, source: object) -> ForeignRecords | None:
        """Return the records of a source; None if it is not of this system."""
        if not self.recognises(source):
            return None
        name = data_name(source) if isinstance(source, Path) else "records"
        shown = source.name if isinstance(source, Path) else self.name
        is_once = hasattr(source, "__next__")
        return ForeignRecords(name, shown, self.unit, lambda: self.samples(source), is_once=is_once)
