"""Runs held against each other: what there is to show of it, whoever shows it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from merilo.renderers import render
from merilo.stats.compare import Policy, Reading
from merilo.stats.intervals import LEVEL

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from merilo.results.sample_detail import Case
    from merilo.runs.run import Run
    from merilo.stats.compare import Comparison

SHOWN = 20
"""So many of the samples that moved most are looked up, unless more or fewer are asked for."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the runs."""

    name: str
    """How it is called here; no two are called alike."""
    run: Run
    scored: int
    """How many samples it has outcomes of."""
    absent: tuple[str, ...]
    """The ids of its samples that are not in every other run; the first ones."""

    absences: int
    """How many there are of them."""
    complete: bool
    """False for a run that was stopped before its last sample."""


@dataclass(frozen=True, slots=True)
class Row:
    """One metric of the first run and of another."""

    metric: str
    other: int
    """The number of the other run, from 1."""
    higher_is_better: bool
    comparison: Comparison
    one_sided: tuple[str, ...] = ()
    """The ids of the samples that are scored in one of the two only; the first ones."""

    @property
    def ahead(self) -> int | None:
        """The number of the run that the reading says is better; None where it says nothing of the kind."""
        reading = self.comparison.reading
        if reading not in {Reading.FIRST_HIGHER, Reading.SECOND_HIGHER}:
            return None
        return 0 if (reading is Reading.FIRST_HIGHER) == self.higher_is_better else self.other


@dataclass(frozen=True, slots=True)
class Moved:
    """A sample whose scores lie far apart, with what every run keeps of it."""

    sample: str
    values: tuple[float | None, ...]
    """Its scores, one for each run; None where there is none."""
    step: float
    """The score of the first run less that of the run from which it lies farthest."""
    cases: tuple[Case, ...]
    """One for each run."""


@dataclass(frozen=True)
class RunComparison:
    """Runs over the samples that all of them have; each but the first is compared with the first.

    Differences are first - other. Readings hold for all `primary` metrics and runs together.
    """

    sides: tuple[Side, ...]
    common: int
    """How many samples all runs have, with an equal question."""
    rows: tuple[Row, ...]
    """By other run, then by metric in the first run's order."""
    primary: tuple[str, ...]
    """The metrics that get a reading."""
    chosen: bool
    """Whether the primary metrics were named; if not, they are all."""
    moved_by: str | None
    """The metric by which the samples moved; None where no two scores differ."""
    moved: tuple[Moved, ...]
    """The samples that moved most, the farthest first."""
    movers: int
    """How many samples have different scores of that metric."""
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])
    """Metrics that cannot be compared → why."""
    other_questions: int = 0
    """How many common ids name other questions in some run; they are not compared."""
    differing: tuple[str, ...] = ()
    """What of the yardstick differs between the runs, a phrase each; only where that was allowed."""
    notes: tuple[str, ...] = ()
    """What has to be known before the numbers are believed, a sentence each."""
    level: float = LEVEL
    undefined: Policy = Policy.DROP
    cluster: str | None = None
    """What the samples were grouped by."""

    @property
    def names(self) -> tuple[str, ...]:
        """How the runs are called."""
        return tuple(side.name for side in self.sides)

    @property
    def metrics(self) -> dict[str, Comparison]:
        """By metric, the comparison of the first two runs."""
        return {row.metric: row.comparison for row in self.rows if row.other == 1}

    def to_frame(self) -> pd.DataFrame:
        """One row for each metric and other run, with the fields of the JSON. Needs pandas."""
        return cast("pd.DataFrame", render(self, "frame"))

    def _repr_html_(self) -> str:
        """The paired table, as a notebook shows it."""
        return str(render(self, "html"))

    def __str__(self) -> str:
        """The page that `merilo compare` prints, 80 columns wide."""
        return str(render(self, "text"))
