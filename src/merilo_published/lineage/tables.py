"""The published definitions of one name computed on the same data, side by side, as rows of a table."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from merilo.commands.evaluate.options import Options
from merilo.commands.evaluate.run import run_evaluation
from merilo.errors import UsageError
from merilo.metrics.text import metric_text
from merilo.results.summary import ends
from merilo.runs.clusters import clusters_by_sample
from merilo.runs.run import open_store
from merilo.runs.run_metrics import recorded_scale, weak_metrics
from merilo.short_repr import short_repr
from merilo.stats.agreement import kendall_tau_b
from merilo.stats.means import mean_interval
from merilo_published.lineage.formula import Lineage
from merilo_published.lineage.same_verdicts import FORMS, SameVerdicts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from os import PathLike

    from merilo.data.load import Records
    from merilo.judges.base import JudgeLike
    from merilo.metrics.base import Metric
    from merilo.runs.manifest import Aggregate
    from merilo.runs.run import Run

NATIVE: Final[Mapping[Lineage, tuple[str, ...]]] = {
    Lineage.CONTEXT_RELEVANCE: (
        "context_relevance",
        "context_relevance(unit=context)",
        "context_relevance(unit=sentence)",
    ),
    Lineage.CONTEXT_PRECISION: ("context_precision(against=reference)", "context_precision", "context_ranking"),
    Lineage.CONTEXT_RECALL: ("context_recall",),
    Lineage.FAITHFULNESS: ("faithfulness",),
    Lineage.ANSWER_RELEVANCY: ("answer_relevancy",),
}
"""Our own metrics of each family; the first that the data allows is what the others are compared with."""

_Values = dict[str, float]
"""Sample → value, in dataset order."""


@dataclass(frozen=True, slots=True)
class DefinitionRow:
    """One definition of a family, over the samples of a run."""

    definition: str
    """The text of the metric, merilo's own or published."""
    metric: str
    """The text of the metric that was computed; for a published formula, `same_verdicts(of=...)`."""
    aggregate: Aggregate
    """Over all samples that this definition scored."""
    common_mean: float | None
    """Mean over the common samples of the family; None if the definition is not compared (see `CommonSamples`)."""
    common_interval: tuple[float, float] | None
    """Confidence interval of `common_mean`, at the level of the aggregate; None if there is none."""
    asked: int
    """Number of questions that its outcomes are based on; equal questions count once."""
    tau_b: float | None
    """Kendall's tau-b with the first row over the common samples; None when not defined."""
    compared: int
    """Number of samples in `common_mean` and `tau_b`."""
    formula: str
    left_out: str
    """The parts of the definition that are not computed; empty if it is computed completely."""
    weak: bool = False
    """True if the metric that was computed is weak with the judge."""


@dataclass(frozen=True, slots=True)
class CommonSamples:
    """The samples over which the definitions of a family are compared: those that all of them scored.

    A definition without any score is not compared. Definitions with the fewest scores are left out as well, until the
    common samples are at least half of the largest number that one definition scored. A definition may be undefined
    for most samples, and would otherwise leave too few common ones.
    """

    count: int
    most: int
    """The largest number of samples that one definition scored."""
    left_out: Mapping[str, int]
    """The definitions that are not compared → how many samples they scored."""
    with_all: int
    """Number of common samples if every definition with a score were compared."""
    same: bool
    """True if every definition is compared and scored the same samples."""


@dataclass(frozen=True, slots=True)
class DefinitionTables:
    """A run with the definitions of one family; `left_out`: metrics without a definition, and why."""

    run: Run
    family: Lineage
    rows: tuple[DefinitionRow, ...]
    """Native definitions first."""
    common: CommonSamples
    left_out: Mapping[str, str]

    def __repr__(self) -> str:
        return short_repr(self, run=self.run.path, family=self.family, rows=self.rows, left_out=self.left_out)


async def compute_definitions(
    data: str | PathLike[str] | Records,
    family: str,
    judge: JudgeLike | Sequence[JudgeLike] = "embedded",
    **options: Any,  # Any: the other options of an evaluation
) -> DefinitionTables:
    """Evaluate the definitions of a family on one data set.

    Each definition's formula is computed over the verdicts of merilo's own metrics, so no question is asked twice.
    Definitions that the data or the judge does not support are left out, with the reason. `options`: further options
    of an evaluation.

    Raises UsageError for an unknown family or if no definition is left, and what `evaluate` raises.
    """
    plan = _metrics(_family(family))
    wanted = Options(judge=judge, metrics=[*plan.values()], lenient=True, **options)
    return definition_tables(await run_evaluation(data, wanted), _family(family), plan)


def _family(name: str) -> Lineage:
    try:
        return Lineage(name)
    except ValueError:
        raise UsageError(f"There is no family {name!r} of definitions; there are {', '.join(Lineage)}.") from None


def _metrics(family: Lineage) -> dict[str, str | Metric]:
    found: dict[str, str | Metric] = {text: text for text in NATIVE[family]}
    found |= {definition: SameVerdicts(of=definition) for definition, form in FORMS.items() if form.lineage is family}
    return found


def definition_tables(run: Run, family: Lineage, plan: Mapping[str, str | Metric]) -> DefinitionTables:
    """Return one row per definition whose metric the run has; `plan`: definition → metric, native ones first."""
    values: dict[str, _Values] = {text: {} for text in run.metrics}
    keys: dict[str, set[str]] = {text: set() for text in run.metrics}
    for record in run.records():
        text = record["metric"]
        keys[text].update(record.get("trail", ()))
        if record["outcome"] == "score":
            values[text][record["sample"]] = record.get("value", 0.0)
    texts = {name: metric if isinstance(metric, str) else metric_text(metric) for name, metric in plan.items()}
    scores = {name: values[text] for name, text in texts.items() if text in run.metrics}
    compared = _compared(scores)
    shared = _shared(compared.values())
    table = _Table(run, next(iter(scores)), compared, shared, _clusters(run))
    rows = tuple(table.row(name, texts[name], len(keys[texts[name]])) for name in scores)
    return DefinitionTables(run, family, rows, _common(scores, compared, len(shared)), run.manifest.left_out)


def _compared(scores: Mapping[str, _Values]) -> dict[str, _Values]:
    """Return the definitions to compare, by the rule of `CommonSamples`."""
    compared = {name: values for name, values in scores.items() if values}
    most = max(map(len, compared.values()), default=0)
    while 2 * len(_shared(compared.values())) < most:
        fewest = min(map(len, compared.values()))
        rest = {name: values for name, values in compared.items() if len(values) > fewest}
        if not rest:
            break
        compared = rest
    return compared


def _shared(scores: Iterable[_Values]) -> list[str]:
    """Return the samples that all of these definitions scored, in the order of the data."""
    first, *others = [*scores] or [{}]
    return [sample for sample in first if all(sample in each for each in others)]


def _common(scores: Mapping[str, _Values], compared: Mapping[str, _Values], count: int) -> CommonSamples:
    most = max(map(len, scores.values()))
    left_out = {name: len(values) for name, values in scores.items() if name not in compared}
    with_all = len(_shared(values for values in scores.values() if values))
    return CommonSamples(count, most, left_out, with_all, same=count == most and not left_out)


def _clusters(run: Run) -> dict[str, str]:
    """Return sample → cluster; empty if the run has no clusters."""
    if run.manifest.cluster is None:
        return {}
    with closing(open_store(run)) as store:
        return clusters_by_sample(store.sample_records(), run.manifest.cluster)


@dataclass(frozen=True, slots=True)
class _Table:
    """The shared data of the rows of one family."""

    run: Run
    first: str
    """The first native definition."""
    compared: Mapping[str, _Values]
    shared: Sequence[str]
    cluster_of: Mapping[str, str]

    def row(self, definition: str, metric: str, asked: int) -> DefinitionRow:
        """Return the row of one definition."""
        form = FORMS.get(definition) if metric != definition else None
        values = self._values(definition)
        estimate = mean_interval(
            values,
            recorded_scale(self.run.manifest, metric).span,
            clusters=[self.cluster_of[each] for each in self.shared] if values and self.cluster_of else None,
        )
        first = self._values(self.first)
        return DefinitionRow(
            definition=definition,
            metric=metric,
            aggregate=self.run.metrics[metric],
            common_mean=estimate.value,
            common_interval=ends(estimate.interval),
            asked=asked,
            tau_b=kendall_tau_b(first, values) if first and values else None,
            compared=len(values),
            formula=form.formula if form else "",
            left_out=form.left_out if form else "",
            weak=metric in weak_metrics(self.run.manifest),
        )

    def _values(self, definition: str) -> list[float]:
        """Return the values of the common samples; empty if the definition is not compared."""
        own = self.compared.get(definition)
        return [own[each] for each in self.shared] if own is not None else []
