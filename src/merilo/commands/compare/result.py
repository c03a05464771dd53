"""The result of a comparison of runs, independent of how it is shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from math import isfinite
from typing import TYPE_CHECKING, Final, cast

from merilo.renderers import notebook_html, render
from merilo.results.basis import Basis
from merilo.short_repr import short_repr
from merilo.stats.compare import Policy

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from merilo.results.sample_detail import SampleDetail
    from merilo.runs.run import Run
    from merilo.stats.compare import Comparison
    from merilo.stats.corrected_pairs import ErrorDifference

MAX_CUT_PAIRS: Final = 5_000
"""Maximum number of pairs to compare over the same number of contexts; of more, a random sample is compared."""


class Verdict(StrEnum):
    """The conclusion on a metric: a run against the base."""

    BETTER = "better"
    WORSE = "worse"
    NOT_SHOWN = "no difference shown"
    NO_CHANGE = "no change"
    """Inputs and outcomes are equal on every sample."""
    CANNOT_TELL = "cannot tell"


DECIDED: Final = frozenset({Verdict.BETTER, Verdict.WORSE})


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
    verdict: Verdict | None
    """None if the metric is not primary."""
    reason: str = ""
    """Why the verdict is "cannot tell"; otherwise empty."""
    unchecked: bool = False
    """True if the judge alone may not name a winner: the embedded judge; any judge, if human labels of the metric's
    verdicts exist and do not correct it.
    """
    one_sided: tuple[str, ...] = ()
    """The first ids of the samples that are scored in one of the two runs only."""
    weak: bool = False
    """True if the metric is weak with the judge of one of the two runs."""
    basis: Basis = Basis.JUDGE
    """What the numbers rest on."""
    same_contexts: Comparison | None = None
    """The comparison by the judge's verdicts on the same number of contexts in both runs, per sample the smaller one;
    None if the numbers are equal, or if the metric does not judge each context alone.
    """
    span: tuple[float, float] = (0.0, 1.0)
    """The range of the metric."""
    errors: ErrorDifference | None = None
    """The judge's mean errors on the run (first) and the base by the labelled pairs; None without any, and if the judge
    did not judge some samples.
    """

    @property
    def undecided(self) -> bool:
        """True if it cannot tell because the judge alone may not name a winner."""
        return self.unchecked and bool(self.reason)

    @property
    def worth(self) -> float:
        """A small difference, 5 % of the range: merilo says how many questions show it. 0 if the range is infinite."""
        width = self.span[1] - self.span[0]
        return 0.05 * width if isfinite(width) else 0.0

    @property
    def difference(self) -> float | None:
        """The mean of the run minus that of the base; None without a pair."""
        return self.comparison.difference

    @property
    def interval(self) -> tuple[float, float] | None:
        """The ends of the difference's confidence interval; None if there is none."""
        return self.comparison.interval.ends

    @property
    def base_mean(self) -> float | None:
        """The mean of the base over the pairs."""
        return self.comparison.second

    @property
    def run_mean(self) -> float | None:
        """The mean of the run over the pairs."""
        return self.comparison.first

    @property
    def labelled(self) -> int:
        """The number of labelled pairs."""
        return 0 if self.comparison.correction is None else self.comparison.correction.labelled

    @property
    def kinder_to(self) -> int | None:
        """The index of the run that the judge favours; None if the interval of the error difference includes 0."""
        if self.errors is None or not self.errors.sign:
            return None
        return self.other if (self.errors.sign > 0) == self.higher_is_better else 0


@dataclass(frozen=True, slots=True)
class ContextNumbers:
    """The mean numbers of retrieved contexts of two runs whose samples have different numbers."""

    other: int
    """The index of the other run, from 1."""
    first: float
    second: float
    samples: int
    """The number of samples whose contexts are known in both runs."""


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
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])
    """Metrics that cannot be compared → why."""
    other_questions: int = 0
    """Number of common ids that name another question in some run; they are not compared."""
    differing: tuple[str, ...] = ()
    """A phrase for each difference in judge, rubrics or versions; empty unless such differences were allowed."""
    contexts: tuple[ContextNumbers, ...] = ()
    """One for each other run that retrieved another number of contexts for some sample."""
    notes: tuple[str, ...] = ()
    """Warnings on the interpretation of the numbers, a sentence each."""
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
        return [row for row in decided if row.basis is not Basis.JUDGE] or decided

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
        corrected = any(row.basis is Basis.LABELS for row in rows)
        if Verdict.NOT_SHOWN in found and (corrected or not any(row.undecided for row in rows)):
            return Verdict.NOT_SHOWN
        return Verdict.CANNOT_TELL

    @property
    def verdict(self) -> Verdict:
        """The conclusion on the second run (see `verdict_of`)."""
        return self.verdict_of(1)

    @property
    def conclusion(self) -> str:
        """The conclusion on the second run, in one or two sentences."""
        return str(render(self, "conclusion"))

    @property
    def by_judge_alone(self) -> bool:
        """True if a judge answered, and human labels correct no number."""
        found = {row.basis for row in self.rows}
        return Basis.JUDGE in found and Basis.LABELS not in found

    @property
    def weak(self) -> frozenset[str]:
        """The metrics that are weak with the judge of a run."""
        return frozenset(row.metric for row in self.rows if row.weak)

    @property
    def metrics(self) -> dict[str, Row]:
        """The second run against the base, by metric."""
        return {row.metric: row for row in self.rows_of(1)}

    def to_frame(self) -> pd.DataFrame:
        """Return one row per metric and other run, with the fields of the JSON. Raises UsageError without pandas."""
        return cast("pd.DataFrame", render(self, "frame"))

    def _repr_html_(self) -> str:
        """Return the printed text for notebooks."""
        return notebook_html(self)

    def __str__(self) -> str:
        return str(render(self, "text"))

    def __repr__(self) -> str:
        return short_repr(
            self, runs=", ".join(self.names), common=self.common, metrics=self.metrics, primary=self.primary
        )
