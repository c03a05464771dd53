"""Compute the published definitions of one name on the same data, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from merilo.commands.evaluate.options import Options
from merilo.commands.evaluate.run import run_evaluation
from merilo.commands.metrics.definition_tables import definition_tables
from merilo.errors import UsageError
from merilo.metrics.lineage.formula import Lineage
from merilo.metrics.lineage.same_verdicts import FORMS, SameVerdicts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from merilo.commands.metrics.definition_tables import DefinitionTables
    from merilo.data.load import Records
    from merilo.judges.base import JudgeLike
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
    """Return definition → the metric to compute for it, native ones first."""
    found: dict[str, str | Metric] = {text: text for text in NATIVE[family]}
    found |= {definition: SameVerdicts(of=definition) for definition, form in FORMS.items() if form.lineage is family}
    return found
