"""How definitions of one name score the same samples: the rows of a comparison, from a finished run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from merilo.metrics.lineage.same_verdicts import FORMS
from merilo.metrics.registry import metric_text
from merilo.stats.agreement import kendall_tau_b

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.metrics.base import Metric
    from merilo.metrics.lineage.form import Lineage
    from merilo.runs.run import Aggregate, Run

_Values = dict[str, float]


@dataclass(frozen=True, slots=True)
class DefinitionRow:
    """One definition of a family, over the samples of a run."""

    definition: str
    """The text of the metric, our own or published."""
    metric: str
    """The text of the metric that was computed: for a form, `same_verdicts(of=...)`."""
    aggregate: Aggregate
    asked: int
    """Questions behind its outcomes; equal ones count once."""
    tau_b: float | None
    """Kendall's tau-b with the first native metric over the samples that both scored; None when not defined."""
    compared: int
    """Samples that both scored."""
    formula: str
    left_out: str
    """What of the definition is not computed; empty where it is computed whole."""


@dataclass(frozen=True, slots=True)
class LineageTables:
    """A run with the definitions of each family; `left_out` tells the families and metrics that there are none of."""

    run: Run
    families: Mapping[Lineage, tuple[DefinitionRow, ...]]
    left_out: Mapping[str, str]


def tables_of(run: Run, plan: Mapping[Lineage, Mapping[str, str | Metric]]) -> dict[Lineage, tuple[DefinitionRow, ...]]:
    """Family → one row for each definition whose metric the run has; `plan`: definition → metric, native ones first."""
    values: dict[str, dict[str, float]] = {text: {} for text in run.metrics}
    keys: dict[str, set[str]] = {text: set() for text in run.metrics}
    for record in run.records():
        text = record["metric"]
        keys[text].update(record.get("trail", ()))
        if record["outcome"] == "score":
            values[text][record["sample"]] = record.get("value", 0.0)
    tables: dict[Lineage, tuple[DefinitionRow, ...]] = {}
    for family, metrics in plan.items():
        texts = {name: metric if isinstance(metric, str) else metric_text(metric) for name, metric in metrics.items()}
        there = {name: text for name, text in texts.items() if text in run.metrics}
        if there:
            native = values[next(iter(there.values()))]
            tables[family] = tuple(
                _row(name, run.metrics[text], (native, values[text]), len(keys[text])) for name, text in there.items()
            )
    return tables


def _row(definition: str, aggregate: Aggregate, values: tuple[_Values, _Values], asked: int) -> DefinitionRow:
    """One row; `values`: sample → value, of the first native metric and of this definition."""
    native, own = values
    common = [sample for sample in native if sample in own]
    form = FORMS.get(definition) if aggregate.metric != definition else None
    return DefinitionRow(
        definition=definition,
        metric=aggregate.metric,
        aggregate=aggregate,
        asked=asked,
        tau_b=kendall_tau_b([native[each] for each in common], [own[each] for each in common]),
        compared=len(common),
        formula=form.formula if form else "",
        left_out=form.left_out if form else "",
    )
