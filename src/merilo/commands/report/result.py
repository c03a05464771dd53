"""The content of a report on one run, independent of its HTML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.commands.compare.notes import ComparisonNotes
    from merilo.results.faults import Faults
    from merilo.results.slices import Slices
    from merilo.runs.manifest import Aggregate
    from merilo.runs.run import Run
    from merilo.runs.scales import Scale

Value: TypeAlias = float | Literal[False] | None
"""The value of a metric: a score, None if it is undefined, FAILED if it failed."""
FAILED: Final = False
MOST: Final = 10_000
"""Runs with more samples are shown with their worst samples only."""
WORST: Final = 2_000
"""Number of samples shown of such a run."""


@dataclass(frozen=True, slots=True)
class Caution:
    """A limit of the numbers, shown before them."""

    heading: str
    text: str


@dataclass(frozen=True, slots=True)
class Card:
    """One metric of the run."""

    metric: str
    name: str
    """The metric as the page shows it: with a note if it is corrected."""
    aggregate: Aggregate
    scale: Scale
    weak: bool
    bins: tuple[int, ...]
    """Samples in each of ten equal parts of the range; empty for an infinite range."""


@dataclass(frozen=True, slots=True)
class Row:
    """One sample in the table."""

    id: str
    place: int
    """Its position in the data."""
    values: tuple[Value, ...]
    """One per metric."""
    fault: int
    """Position in `FAULTS`."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A sample of the page with its texts and details."""

    row: Row
    question: str
    response: str
    contexts: int
    differs: float | None
    """Certainty of the judge's most certain verdict from which an annotator differs; 0 if there is none, and None if
    no annotator judged the sample."""
    detail: Mapping[str, Any]
    """What the page shows of the opened sample (`commands/report/details.py`)."""


@dataclass(frozen=True)
class RunReport:
    """A run with all that its page shows."""

    run: Run
    facts: tuple[str, ...]
    cautions: tuple[Caution, ...]
    cards: tuple[Card, ...]
    faults: Faults
    """The faults of the whole run."""
    components: bool
    """True if the faults are sure enough to name the component to look at first."""
    slices: tuple[Slices, ...]
    """The slices by each field, the field to show first in front."""
    samples: int
    """Number of samples of the run with outcomes."""
    entries: tuple[Entry, ...]
    """The samples shown, the worst first."""
    passages: tuple[tuple[str, Sequence[str]], ...]
    """Id and sentences of each context of these samples, each once."""
    notes: tuple[ComparisonNotes, ...]
    """What the numbers rest on, in groups."""

    @property
    def name(self) -> str:
        """The name of the run: that of its directory."""
        return self.run.path.resolve().name
