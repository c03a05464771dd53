"""The result of a comparison of runs, independent of how it is shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NoReturn, cast

from merilo.data.measures import KNOWN
from merilo.errors import UsageError
from merilo.results.estimate import DECIDED, Basis, Caveat, Estimate, Verdict, verdict
from merilo.results.faults import CANNOT_TELL, Faults
from merilo.results.measures import Measure, in_all, read_measures, shared_measures
from merilo.short_repr import unknown_attribute
from merilo.stats.compare import Comparison, Policy

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from merilo.results.sample_detail import SampleDetail
    from merilo.runs.run import Run


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
    def improvement(self) -> float:
        """The difference, above 0 if the run is the better one; 0 without a pair."""
        return (self.difference or 0.0) * (1 if self.higher_is_better else -1)

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
class Ranking:
    """Several runs by one metric. All of its intervals hold together with 95 %; so do its bounds within a margin."""

    metric: str
    best: int
    """The index of the run with the best mean."""
    rows: tuple[Row, ...]
    """Each other run minus the best, the best of them first."""
    means: Mapping[int, float | None]
    """The mean of each run, best first. If labels correct a row: the corrected means, None for runs without one."""
    within: float | None = None
    """The margin, in the unit of the metric, above 0; None if none was given."""
    against: int | None = None
    """The index of the run that others are as good as; None for every other run."""
    as_good: tuple[int, ...] = ()
    """The runs that are shown to be at most `within` worse."""

    @property
    def may_be_best(self) -> tuple[int, ...]:
        """The runs that are not shown to be worse than the best: with 95 % the truly best is one. Empty if the judge
        may not decide about any run, such as the embedded judge alone.
        """
        if all(row.estimate.caveat("judge-unchecked") or row.estimate.caveat("judges-differ") for row in self.rows):
            return ()
        return (self.best, *(row.other for row in self.rows if row.verdict is not Verdict.WORSE))

    def row_of(self, place: int) -> Row | None:
        """Return the row of a run; None for the best."""
        return next((row for row in self.rows if row.other == place), None)


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
    """A comparison of runs over their common samples: of two, the second minus the first, which is the base.

    A drop is negative. Conclusions hold for all `primary` metrics together. Of several runs, each is compared with the
    best one by each metric (`rankings`).
    """

    sides: tuple[Side, ...]
    common: int
    """Number of samples that all runs have, with an equal question."""
    ids: tuple[str, ...]
    """The ids of these samples, in the first run's order."""
    rows: tuple[Row, ...]
    """By metric in the first run's order; of several runs, those of all rankings."""
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
    clusters: tuple[Hashable, ...] | None = field(default=None, repr=False)
    """The cluster of each common sample."""
    rankings: tuple[Ranking, ...] = ()
    """The runs by each metric, that of the choice first; empty for a pair of runs without a margin."""
    prefer: str = ""
    """The measure that chooses among equally good runs; empty for the first that all runs have."""

    @cached_property
    def measures(self) -> tuple[Mapping[str, Measure], ...]:
        """By run, the measures of the common samples; those of all runs over the samples with a number in each run.

        Raises RunError if the samples cannot be read.
        """
        computed = bool(self.rankings)
        return in_all([read_measures(each.run, self.ids, self.clusters, computed=computed) for each in self.sides])

    @cached_property
    def preferred(self) -> str | None:
        """The measure that chooses among equally good runs; None without one. Raises UsageError for an unknown one."""
        shared = shared_measures(self.measures)
        if self.prefer:
            known = KNOWN[self.prefer].name if self.prefer in KNOWN else self.prefer
            named = [name for name in shared if known in {name, self.measures[0][name].title}]
            if not named:
                listed = ", ".join(self.measures[0][name].title for name in shared) or "none"
                why = f"not all runs have a measure {self.prefer!r} with one unit and direction; they have {listed}"
                raise UsageError(f"--prefer: {why}.")
            return named[0]
        unlike = (name for name in shared if len({each[name].typical for each in self.measures}) > 1)
        return next(unlike, None)

    @cached_property
    def chosen(self) -> int | None:
        """The run to take: of those as good within the margin, or without one of those that may be the best, the one
        with the best preferred measure, on ties also with the best mean. None without such runs, and of several ones
        without such a measure.
        """
        found = self.rankings[0].may_be_best if self.rankings[0].within is None else self.rankings[0].as_good
        if (name := self.preferred) is None or not found:
            return found[0] if len(found) == 1 else None
        sign = -1 if self.measures[0][name].column.higher_is_better else 1
        ordered = [place for place in self.rankings[0].means if place in found]
        return min(ordered, key=lambda place: sign * self.measures[place][name].typical)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the runs."""
        return tuple(side.name for side in self.sides)

    @property
    def deciding(self) -> list[Row]:
        """The rows that the conclusion on a pair rests on: better or worse by human labels and by ids, if any is;
        otherwise by a judge alone that may name a winner.
        """
        decided = [row for row in self.rows if row.verdict in DECIDED]
        return [row for row in decided if row.estimate.basis is not Basis.JUDGE] or decided

    @property
    def verdict(self) -> Verdict:
        """The conclusion on the second run: better or worse if its deciding rows agree.

        Without deciding rows: no difference shown if human labels correct a metric, or if no metric is undecided. Of
        several runs: better if one is better than all others, otherwise no difference shown or cannot tell.
        """
        if self.rankings:
            unknown = all(row.verdict is Verdict.CANNOT_TELL for row in self.rankings[0].rows)
            alone = len(self.rankings[0].may_be_best) == 1
            return Verdict.CANNOT_TELL if unknown else Verdict.BETTER if alone else Verdict.NOT_SHOWN
        if decided := {row.verdict for row in self.deciding}:
            return Verdict.CANNOT_TELL if len(decided) > 1 else cast("Verdict", decided.pop())
        rows = [row for row in self.rows if row.verdict is not None]
        found = {row.verdict for row in rows}
        if found == {Verdict.NO_CHANGE}:
            return Verdict.NO_CHANGE
        corrected = any(row.estimate.basis is Basis.LABELS for row in rows)
        if Verdict.NOT_SHOWN in found and (corrected or not any(row.undecided for row in rows)):
            return Verdict.NOT_SHOWN
        return Verdict.CANNOT_TELL

    @property
    def metrics(self) -> dict[str, Row]:
        """The row of each metric; of several runs, that of the run that is nearest to the best."""
        return {row.metric: row for row in reversed(self.rows)}

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
