"""The metric that computes a published definition's formula over merilo's own verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from merilo.errors import UsageError
from merilo.metrics.base import Card, Kinds, MetricDefaults, Score, Undefined
from merilo.metrics.text import with_version
from merilo_published.lineage.contexts import PRECISION_FORMS, RELEVANCE_FORMS
from merilo_published.lineage.statements import ANSWER_FORMS, FAITHFULNESS_FORMS, RECALL_FORMS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan
    from merilo_published.lineage.formula import DefinitionFormula

FORMS: Final[dict[str, DefinitionFormula[Any]]] = {  # Any: the verdict type differs between forms
    form.definition: form
    for form in (*RELEVANCE_FORMS, *PRECISION_FORMS, *RECALL_FORMS, *FAITHFULNESS_FORMS, *ANSWER_FORMS)
}
"""Published definitions whose formulas can be computed over native verdicts, by their text."""
FAMILIES: Final[Mapping[str, str]] = {definition: form.lineage.value for definition, form in FORMS.items()}
"""The family of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SameVerdicts(MetricDefaults):
    """A published definition's formula over the verdicts of merilo's own metrics, in [0, 1].

    `of` is the text of a published metric, such as "ragas-0.1.9:context_relevancy". Edge cases (nothing retrieved, no
    statement) follow the definition; a lost verdict fails the sample, as in all native metrics. `FORMS[of]` has the
    formula and the parts of the definition that are left out. Raises UsageError for a definition without a form.
    """

    name: ClassVar[str] = "same_verdicts"
    version: ClassVar[int] = 1
    ranked: ClassVar[bool] = True  # the forms of average precision are
    card: ClassVar[Card] = Card(
        summary="A published definition's formula over native verdicts.",
        meaning="the formula of another tool",
        formula="That of the published metric named by `of`.",
        questions="Those of the native metric of the same family.",
        when="To see how much of a difference between two tools comes from the formula.",
        when_not="To reproduce a number of another tool: its judge gets other questions. Use the published "
        "metric itself.",
        family="lineage",
    )

    of: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "of", with_version(self.of))  # a frozen class has no other way to set a field
        if self.of not in FORMS:
            raise UsageError(f"No formula of {self.of!r} over native verdicts; available: {', '.join(FORMS)}.")

    @property
    def form(self) -> DefinitionFormula[Any]:  # Any: as in FORMS
        """The formula, and the parts that it leaves out."""
        return FORMS[self.of]

    @property
    def needs(self) -> frozenset[str]:
        """The fields that the native questions of the family need."""
        return self.form.shared.needs

    @property
    def asks(self) -> Kinds:
        """The native questions of the family."""
        return self.form.shared.asks

    def max_questions(self, sample: Sample) -> int:
        return self.form.shared.max_questions(sample)

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        return (yield from self.form.plan(sample))
