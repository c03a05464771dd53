"""Answer correctness: agreement of the statements of the response and the reference."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.errors import UsageError
from merilo.judging.ask import ask, both
from merilo.judging.kinds.embeddings import Embeddings
from merilo.judging.kinds.statements import Statements
from merilo.judging.kinds.support import Support
from merilo.metrics.base import Evidence, Kinds, Score, Undefined
from merilo.metrics.formulas import cosine, f_measure
from merilo.metrics.steps import (
    BLANK_REFERENCE,
    REFERENCE_STATES_NOTHING,
    about_statements,
    any_averaged,
    max_statements,
    mean_credit,
    statements_of,
    states_nothing,
    support_by,
)
from merilo.metrics.variants import ResponseMetric

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan
    from merilo.metrics.steps import DistinctStatement

_NO_DIRECTION = "the embedder gives the reference or the response no direction"
_NO_TEXT: tuple[DistinctStatement, ...] = ()


@dataclass(frozen=True, slots=True)
class _Agreement:
    """Agreement of the statements of both texts, with the verdicts."""

    value: float
    evidence: tuple[Evidence, ...] = ()
    counts: Mapping[str, int | None] | None = None
    averaged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCorrectness(ResponseMetric):
    """Agreement of the response's statements with those of the reference (F measure).

    Meaning: agreement with the reference
    Formula: F measure of precision (statements of the response that the reference supports) and recall (statements of
        the reference that the response supports); with a similarity_weight w, (1 - w) F + w times the cosine of both
        texts' embeddings, 0 if it is negative. Each verdict counts as its probability if the judge's probabilities are
        averaged.
    Questions: Two Statements questions, and one Support question for each distinct statement of both texts; one
        Embeddings question with a similarity_weight.
    Undefined: the reference is blank | the reference makes no statement | the embedder gives the reference or the
        response no direction (similarity_weight above 0)
    Use: To see whether answers are right, if there are references.
    Not: With references that are only one of many right answers, or without references: faithfulness judges whether the
        contexts support the answer.
    See: faithfulness | noise_sensitivity | answer_completeness
    Source: Answer correctness of the ragas library; statements are judged against the whole text here. | Ru et al.
        2024, RAGChecker (arXiv 2408.08067): claim precision, recall and F1.

    F = (1 + beta²) P R / (beta² P + R), 0 when P or R is. 0 when the response is blank, declines, or states nothing.

    Differences from the ragas library: each statement of one text is judged against the whole other text, not matched
    with its statements; precision and recall count the statements of their own text; and similarity has no weight by
    default.
    """

    name: ClassVar[str] = "answer_correctness"
    needs = frozenset({"response", "reference"})

    beta: float = 1.0
    """The weight of recall relative to precision, above 0."""
    similarity_weight: float = 0.0
    """The weight of the embeddings' similarity in the value, in [0, 1]."""

    def __post_init__(self) -> None:
        if not 0 < self.beta < inf:
            raise UsageError(f"Metric {self.name!r} takes beta=a number above 0, got {self.beta}.")
        if not 0 <= self.similarity_weight <= 1:
            raise UsageError(f"Metric {self.name!r} takes similarity_weight=0 to 1, got {self.similarity_weight}.")

    @property
    def asks(self) -> Kinds:
        """Statements and Support unless the similarity weight is 1; Embeddings if it is above 0."""
        kinds: Kinds = frozenset({Statements, Support}) if self.similarity_weight < 1 else frozenset()
        return kinds | {Embeddings} if self.similarity_weight > 0 else kinds

    def max_questions(self, sample: Sample) -> int:
        of_response, of_reference = max_statements(sample, "response"), max_statements(sample, "reference")
        if not of_reference:
            return 0
        statements = 1 + of_reference + (1 + of_response if of_response else 0)
        return (statements if self.similarity_weight < 1 else 0) + (1 if self.similarity_weight > 0 else 0)

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        sample.require("response")
        if states_nothing(sample, "reference"):
            return Undefined(BLANK_REFERENCE)
        agreement, likeness = yield from both(self._agreement(sample), self._likeness(sample))
        if isinstance(agreement, Undefined):
            return agreement
        if likeness is None:
            return Undefined(_NO_DIRECTION)
        weight = self.similarity_weight
        value = (1 - weight) * agreement.value + weight * likeness
        return Score(value, evidence=agreement.evidence, counts=agreement.counts or {}, averaged=agreement.averaged)

    def _agreement(self, sample: Sample) -> Plan[_Agreement | Undefined]:
        if self.similarity_weight == 1:
            return _Agreement(0.0)
        response, reference = yield from both(_statements_if_any(sample), statements_of(sample, "reference"))
        if not reference:
            return Undefined(REFERENCE_STATES_NOTHING)
        right, covered = yield from both(
            support_by(sample, "reference", response), support_by(sample, "response", reference)
        )
        precision = mean_credit(right) if response else 0.0
        return _Agreement(
            f_measure(precision, mean_credit(covered), beta=self.beta),
            about_statements(response, right) + about_statements(reference, covered),
            {
                "statements": len(response),
                "supported": sum(verdict.supported for verdict in right),
                "reference_statements": len(reference),
                "covered": sum(verdict.supported for verdict in covered),
            },
            any_averaged((*right, *covered)),
        )

    def _likeness(self, sample: Sample) -> Plan[float | None]:
        """Return the cosine of both texts, at least 0; None if it is undefined."""
        if not self.similarity_weight or states_nothing(sample, "response"):
            return 0.0
        texts = (sample.require("reference"), sample.require("response"))
        matrix = yield from ask(Embeddings(texts, language=sample.resolved_language))
        found = cosine(matrix.row(0), matrix.row(1))
        return None if found is None else max(0.0, found)


def _statements_if_any(sample: Sample) -> Plan[tuple[DistinctStatement, ...]]:
    if states_nothing(sample, "response"):
        return _NO_TEXT
    return (yield from statements_of(sample, "response"))


METRICS: Final = (AnswerCorrectness,)
