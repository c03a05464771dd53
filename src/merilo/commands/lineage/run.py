"""How published definitions of one name score the same data, side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from merilo.commands.evaluate.run import run_evaluation
from merilo.commands.lineage.result import lineage_tables
from merilo.errors import UsageError
from merilo.metrics.lineage.formula import Lineage
from merilo.metrics.lineage.same_verdicts import FORMS, SameVerdicts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from merilo.commands.lineage.options import LineageOptions
    from merilo.commands.lineage.result import LineageTables
    from merilo.data.load import Records
    from merilo.metrics.base import Metric

NATIVE: Final[Mapping[Lineage, tuple[str, ...]]] = {
    Lineage.CONTEXT_RELEVANCE: (
        "context_relevance",
        "context_relevance(unit=context)",
        "context_relevance(unit=sentence)",
    ),
    Lineage.CONTEXT_PRECISION: (
        "context_precision(against=reference)",
        "context_precision",
        "context_ranking",
    ),
    Lineage.CONTEXT_RECALL: ("context_recall",),
    Lineage.FAITHFULNESS: ("faithfulness",),
    Lineage.ANSWER_RELEVANCY: ("answer_relevancy",),
}
"""Our own metrics of each family; the first that the data allows is what the others are compared with."""


async def run_lineage(data: str | PathLike[str] | Records, options: LineageOptions) -> LineageTables:
    """Evaluate the definitions of one or more families on one data set.

    By default each definition's formula is computed over the verdicts of our own metrics, so that nothing is asked
    twice. With `as_published` each definition asks its own questions. Definitions that the data or the judge does not
    support are left out, with the reason.

    Raises UsageError if `metrics` is given or no definition is left, and what `evaluate` raises.
    """
    if options.metrics is not None:
        raise UsageError("lineage() chooses its metrics by families; leave metrics out.")
    families = [_family(name) for name in options.families] or list(Lineage)
    plan = {family: _metrics(family, as_published=options.as_published) for family in families}
    metrics = [metric for rows in plan.values() for metric in rows.values()]
    run = await run_evaluation(data, replace(options, metrics=metrics, lenient=True))
    return lineage_tables(run, plan)


def _family(name: str) -> Lineage:
    try:
        return Lineage(name)
    except ValueError:
        raise UsageError(f"There is no family {name!r} of definitions; there are {', '.join(Lineage)}.") from None


def _metrics(family: Lineage, *, as_published: bool) -> dict[str, str | Metric]:
    """Definition → the metric to compute for it, native ones first."""
    found: dict[str, str | Metric] = {text: text for text in NATIVE[family]}
    for definition, form in FORMS.items():
        if form.lineage is family:
            found[definition] = definition if as_published else SameVerdicts(of=definition)
    return found
