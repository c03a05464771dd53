"""Noise sensitivity: the fraction of wrong statements that the response takes from the contexts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.judging.ask import both, together
from merilo.judging.kinds.statements import Statements
from merilo.judging.kinds.support import Support
from merilo.metrics.base import Kinds, Score, Undefined, choice
from merilo.metrics.steps import (
    BLANK_REFERENCE,
    BLANK_RESPONSE,
    REFERENCE_STATES_NOTHING,
    RESPONSE_STATES_NOTHING,
    about_statements,
    check_evidence,
    max_contexts,
    max_statements,
    statements_of,
    states_nothing,
    support_by,
    support_of,
)
from merilo.metrics.variants import ResponseMetric

if TYPE_CHECKING:
    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan

_NOTHING_TO_READ = "no context was retrieved, or every one is blank"


class NoiseSource(StrEnum):
    """Sources of noise among the contexts."""

    RELEVANT = "relevant"
    """Contexts that support at least one statement of the reference."""
    IRRELEVANT = "irrelevant"
    """Contexts that support none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseSensitivity(ResponseMetric):
    """Share of the response's statements that are wrong and come from the contexts; lower is better.

    Meaning: wrong statements from the contexts
    Formula: Statements of the response that the reference does not support and a relevant context does (of=irrelevant:
        only contexts do that are not relevant) / distinct statements of the response. A context is relevant when it
        supports a statement of the reference.
    Questions: Two Statements questions; for each distinct statement of the response two Support questions, for each of
        the reference one.
    Undefined: no context was retrieved, or every one is blank | the response is blank | the reference is blank | the
        response makes no statement | the reference makes no statement
    Use: To see whether wrong answers come from contexts that also have the right text (of=relevant) or from contexts
        that should not have been retrieved (of=irrelevant).
    Not: To see how much is wrong in total: use answer_correctness. Made-up statements do not count here.
    See: answer_correctness | faithfulness | context_recall
    Source: Ru et al. 2024, RAGChecker (arXiv 2408.08067), section 3.3; also in the ragas library.

    A context is relevant when it supports at least one statement of the reference. A statement of the response is
    wrong when the reference does not support it. `of=irrelevant` counts those that contexts support, none of them
    relevant. A statement that no context supports counts in neither: it is made up, which faithfulness measures.

    Unlike in RAGChecker, contexts are judged together and named by number, so a statement that only several contexts
    together support counts as coming from them.

    Not monotone in Support: a statement that a context supports after all is noise if the reference does not support
    it, and a reference statement found in a context makes that context relevant.
    """

    name: ClassVar[str] = "noise_sensitivity"
    higher_is_better: ClassVar[bool] = False
    not_monotone_in: ClassVar[Kinds] = frozenset({Support})
    needs = frozenset({"retrieved_contexts", "response", "reference"})
    asks = Kinds({Statements, Support})

    of: NoiseSource = NoiseSource.RELEVANT
    """The contexts whose noise is counted."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "of", choice(NoiseSource, self.of, metric=self.name, parameter="of"))

    def max_questions(self, sample: Sample) -> int:
        of_response, of_reference = max_statements(sample, "response"), max_statements(sample, "reference")
        if not (of_response and of_reference and max_contexts(sample)):
            return 0
        return 2 + 2 * of_response + of_reference

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        sample.require("retrieved_contexts")
        if states_nothing(sample, "response"):
            return Undefined(BLANK_RESPONSE)
        if states_nothing(sample, "reference"):
            return Undefined(BLANK_REFERENCE)
        if not max_contexts(sample):
            return Undefined(_NOTHING_TO_READ)
        response, reference = yield from both(statements_of(sample, "response"), statements_of(sample, "reference"))
        if not response:
            return Undefined(RESPONSE_STATES_NOTHING)
        if not reference:
            return Undefined(REFERENCE_STATES_NOTHING)
        in_contexts, of_reference, right = yield from together(
            [support_of(sample, response), support_of(sample, reference), support_by(sample, "reference", response)]
        )
        check_evidence(Support("", ()), (*in_contexts, *of_reference))
        relevant = {index for verdict in of_reference if verdict.supported for index in verdict.evidence}
        wrong = [
            verdict.supported and not judged.supported and relevant.isdisjoint(verdict.evidence) == self._irrelevant
            for verdict, judged in zip(in_contexts, right, strict=True)
        ]
        return Score(
            sum(wrong) / len(response),
            evidence=about_statements(response, in_contexts) + about_statements(response, right),
            counts={
                "statements": len(response),
                "supported": sum(verdict.supported for verdict in right),
                "noise": sum(wrong),
                "relevant_contexts": len(relevant),
            },
        )

    @property
    def _irrelevant(self) -> bool:
        return self.of is NoiseSource.IRRELEVANT


METRICS: Final = (NoiseSensitivity,)
