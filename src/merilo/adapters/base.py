"""What an adapter is: a reader of the objects or files of one other system.

A module of this package that assigns `ADAPTERS`, a tuple of adapters, is found by its file. An installed package
declares its own in the entry points `merilo.adapters`. `merilo.data.load` asks each adapter in turn.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from merilo.data.lines import ForeignRecords
from merilo.data.source import data_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from merilo.data.lines import ForeignRecord
    from merilo.errors import Problem


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


@dataclass(frozen=True, slots=True)
class Item:
    """One trace, test case or row of a file, at a place (line or record, from 1).

    - `record`: the sample as a record with merilo's field names; None if this is not a sample or cannot be read;
    - `problems`: what is wrong with a line or record that cannot be read;
    - `scores`: the scores as the file states them; NaN, or None, for one without a value;
    - `reason`: why this is not a sample; blank if it is one, or cannot be read;
    - `missing`: the parts that it does not state;
    - `kinds`: the number of spans by kind; empty for a file without spans.
    """

    place: int
    record: dict[str, Any] | None = None  # Any: JSON
    problems: tuple[Problem, ...] = ()
    scores: Mapping[str, object] = field(default_factory=dict[str, object])
    reason: str = ""
    missing: tuple[str, ...] = ()
    id: str = ""
    kinds: Mapping[str, int] = field(default_factory=dict[str, int])
