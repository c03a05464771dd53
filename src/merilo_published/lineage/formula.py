"""A published definition's formula over merilo's verdicts, and the plan that computes it.

A `DefinitionFormula` separates a published formula from the questions that its system asks. So definitions can be
compared on one set of verdicts, with any judge, and the only difference is the formula. `left_out` states what of the
definition is not in it. Both use the functions in `merilo.metrics.formulas`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan
    from merilo.metrics.base import Kinds, Score, Undefined

S = TypeVar("S")


class Lineage(StrEnum):
    """Families of definitions with one name; each is named like merilo's own metric."""

    CONTEXT_RELEVANCE = "context_relevance"
    CONTEXT_PRECISION = "context_precision"
    CONTEXT_RECALL = "context_recall"
    FAITHFULNESS = "faithfulness"
    ANSWER_RELEVANCY = "answer_relevancy"


@dataclass(frozen=True, slots=True)
class SharedVerdicts(Generic[S]):
    """The native verdicts that a family's formulas share, and the plan that asks for them."""

    needs: frozenset[str]
    asks: Kinds
    plan: Callable[[Sample], Plan[S]]
    max_questions: Callable[[Sample], int]


@dataclass(frozen=True, slots=True)
class DefinitionFormula(Generic[S]):
    """A published definition's formula over native verdicts."""

    definition: str
    """The text of the published metric."""
    lineage: Lineage
    formula: str
    """The formula in words."""
    left_out: str
    """The parts of the definition that are not in the formula."""
    working: str
    """The computation of the value, with the names of counts in braces: `{relevant} of {contexts} contexts`."""
    shared: SharedVerdicts[S]
    score: Callable[[Sample, S], Score | Undefined]

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        seen = yield from self.shared.plan(sample)
        return self.score(sample, seen)

    def explain(self, counts: Mapping[str, int | None]) -> str:
        """Return the computation of a value with these counts; an unknown count is a dash."""
        return self.working.format_map({name: "-" if count is None else count for name, count in counts.items()})
