"""The formulas of published definitions over our own verdicts.

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
    """The families of definitions that go by one name; each is called as our own metric of it."""

    CONTEXT_RELEVANCE = "context_relevance"
    CONTEXT_PRECISION = "context_precision"
    CONTEXT_RECALL = "context_recall"
    FAITHFULNESS = "faithfulness"
    ANSWER_RELEVANCY = "answer_relevancy"


@dataclass(frozen=True, slots=True)
class SharedVerdicts(Generic[S]):
    """The native verdicts that a family's formulas share, and how they are asked for."""

    needs: frozenset[str]
    asks: Kinds
    plan: Callable[[Sample], Plan[S]]
    at_most: Callable[[Sample], int]


@dataclass(frozen=True, slots=True)
class DefinitionFormula(Generic[S]):
    """A published definition's formula over native verdicts."""

    definition: str
    """The text of the published metric."""
    lineage: Lineage
    formula: str
    """In words."""
    left_out: str
    """What of the definition is not in the formula."""
    working: str
    """How the value came about, with the names of counts in braces: `{relevant} of {contexts} contexts`."""
    shared: SharedVerdicts[S]
    score: Callable[[Sample, S], Score | Undefined]

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        """The definition's value for one sample, from native verdicts."""
        seen = yield from self.shared.plan(sample)
        return self.score(sample, seen)

    def explain(self, counts: Mapping[str, int | None]) -> str:
        """How a value with these counts came about; a count that is not known is a dash."""
        return self.working.format_map({name: "-" if count is None else count for name, count in counts.items()})
