"""The result of a comparison of runs, independent of how it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NoReturn, cast

from merilo.results.estimate import DECIDED, Basis, Caveat, Estimate, Verdict, verdict
from merilo.results.faults import CANNOT_TELL
from merilo.short_repr import unknown_attribute
from merilo.stats.compare import Policy

if TYPE_CHECKING:
    from merilo.results.faults import Faults
    from merilo.results.sample_detail import SampleDetail
    from merilo.runs.run import Run
    from merilo.stats.compare import Comparison


@dataclass(frozen=True, slots=True)
class Side:
    """One of the runs."""

    name: str
    """The name of the run in this comparison; unique."""
    run: Run
    scored: int
    """Number of samples with outcomes."""
    absent: tuple[str, ...]
    """The first ids of its samples that are not in every other run."""

    absences: int
    """Number of samples that are not in every other run."""
    complete: bool
    """False for a run that was stopped before its last sample."""


@dataclass(frozen=True, slots=True)
class Row:
    """One metric of a run against the base."""

    metric: str
    other: int
    """The index of the run, from 1."""
    higher_is_better: bool
    comparison: Comparison
    """The run (first) minus the base (second)."""
    estimate: Estimate
    """The difference with its caveats."""

    @property
    def verdict(self) -> Verdict | None:
        """The verdict on the estimate; None if the metric is not primary."""
        if self.comparison.reading is None:
            return None
        return verdict(self.estimate, higher_is_better=self.higher_is_better)

    @property
    def unchecked(self) -> Caveat | None:
        """Why the judge alone may not name a winner; None if it may."""
        return self.estimate.caveat("judge-unchecked")

    @property
    def undecided(self) -> bool:
        """True if it cannot tell because the judge alone may not name a winner."""
        return self.unchecked is not None and self.verdict is Verdict.CANNOT_TELL

    @property
    def reason(self) -> str:
        """Why the verdict is "cannot tell"; otherwise empty."""
        forced = self.estimate.forced
        return "" if forced is None or self.verdict is not Verdict.CANNOT_TELL else forced.sentence

    @property
    def difference(self) -> float | None:
        """The mean of the run minus that of the base; None without a pair."""
        return self.estimate.value

    @property
    def interval(self) -> tuple[float, float] | None:
        """The ends of the difference's confidence interval; None if there is none."""
        return self.estimate.interval

    @property
    def base_mean(self) -> float | None:
        """The mean of the base over the pairs."""
        return self.comparison.second

    @property
    def run_mean(self) -> float | None:
        """The mean of the run over the pairs."""
        return self.comparison.first


@dataclass(frozen=True, slots=True)
class Moved:
    """A sample whose scores differ between runs, with its details in every run."""

    sample: str
    values: tuple[float | None, ...]
    """Its scores, one per run; None if it has none."""
    step: float
    """The score of the run with the largest distance from the base, minus that of the base."""
    cases: tuple[SampleDetail, ...]
    """One per run."""


@dataclass(frozen=True)
class RunComparison:
    """A comparison of runs over their common samples; every other run is compared with the first, the base.

    Differences are the run minus the base, so a drop is negative. Conclusions hold for all `primary` metrics and runs
    together.
    """

    sides: tuple[Side, ...]
    common: int
    """Number of samples that all runs have, with an equal question."""
    ids: tuple[str, ...]
    """The ids of these samples, in the first run's order."""
    rows: tuple[Row, ...]
    """By other run, then by metric in the first run's order."""
    primary: tuple[str, ...]
    """The metrics that conclusions are drawn for."""
    moved_by: str | None
    """The metric that ranks the samples that changed; None if no two scores differ."""
    moved: tuple[Moved, ...]
    """The samples that changed most, the largest change first."""
    movers: int
    """Number of samples with different scores of that metric."""
    caveats: tuple[Caveat, ...] = ()
    """What qualifies all numbers, and what is not compared."""
    undefined: Policy = Policy.DROP
    cluster: str | None = None
    """The field that clusters the samples; None: no clusters."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the runs."""
        return tuple(side.name for side in self.sides)

    def rows_of(self, other: int) -> list[Row]:
        """Return the rows of one of the other runs, by its index."""
        return [row for row in self.rows if row.other == other]

    def deciding(self, other: int = 1) -> list[Row]:
        """Return the rows that a conclusion on a run rests on: better or worse by human labels and by ids, if any is;
        otherwise by a judge alone that may name a winner.
        """
        decided = [row for row in self.rows_of(other) if row.verdict in DECIDED]
        return [row for row in decided if row.estimate.basis is not Basis.JUDGE] or decided

    def verdict_of(self, other: int = 1) -> Verdict:
        """Return the conclusion on a run: better or worse if its deciding rows agree.

        Without deciding rows: no difference shown if human labels correct a metric, or if no metric is undecided.
        """
        if decided := {row.verdict for row in self.deciding(other)}:
            return Verdict.CANNOT_TELL if len(decided) > 1 else cast("Verdict", decided.pop())
        rows = [row for row in self.rows_of(other) if row.verdict is not None]
        found = {row.verdict for row in rows}
        if found == {Verdict.NO_CHANGE}:
            return Verdict.NO_CHANGE
        corrected = any(row.estimate.basis is Basis.LABELS for row in rows)
        if Verdict.NOT_SHOWN in found and (corrected or not any(row.undecided for row in rows)):
            return Verdict.NOT_SHOWN
        return Verdict.CANNOT_TELL

    @property
    def verdict(self) -> Verdict:
        """The conclusion on the second run (see `verdict_of`)."""
        return self.verdict_of(1)

    @property
    def metrics(self) -> dict[str, Row]:
        """The second run against the base, by metric."""
        return {row.metric: row for row in self.rows_of(1)}

    @cached_property
    def faults(self) -> tuple[Faults, ...]:
        """The judge's verdicts on the common samples, one `Faults` per run; empty unless every run judges some."""
        from merilo.commands.calibrate.slices import faults_of

        shown = tuple(faults_of(side.run, judge_only=True).among(self.ids) for side in self.sides)
        return shown if all({*each} - {CANNOT_TELL} for each in shown) else ()

    if not TYPE_CHECKING:  # type checkers report an unknown attribute themselves

        def __getattr__(self, name: str) -> NoReturn:
            """Raise AttributeError that names what was probably meant."""
            raise unknown_attribute("comparison", name)
