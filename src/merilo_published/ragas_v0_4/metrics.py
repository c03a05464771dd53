"""Metrics of the retriever with a judge in ragas 0.2 to 0.4, and the table of all metrics of these releases.

The formulas of the others are in the other modules of this package. In the table each metric gets its other names, and
the collections and 0.3.0 their parameters. The metrics that ragas shares with NVIDIA are in `nvidia`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.metrics.base import Card, Evidence, EvidenceTarget, Metric, Score, Undefined
from merilo.metrics.variants import D, variant
from merilo_published.asking import REASKS, ReadReply, on_statements
from merilo_published.definition import Focus, joined, noisy, smoothed_average_precision
from merilo_published.ragas_v0_4 import response, texts
from merilo_published.ragas_v0_4.response import (
    ATTRIBUTED,
    EARLIER_TEMPERATURE,
    EMPTY,
    ENTITIES,
    VERDICT,
    JudgedMetric,
    Judgements,
    RefusesEmpty,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.data.sample import Sample, TextField
    from merilo.judging.ask import Plan


_EPSILON: Final = 1e-8


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionWithReference(RefusesEmpty):
    """Ranking: contexts that serve the reference should come before the others, as ragas scores it.

    Formula: Sum over ranks k of v_k (v_1 + ... + v_k) / k, divided by (sum of all v + 1e-10).
    Questions: One request for each context, in order.
    Undefined: an input is empty (collections)
    Use: To compare with context precision of ragas 0.2 to 0.4.
    Not: For new work: take context_precision, which is exact and judges numbered sentences.
    See: context_precision | ragas-0.4.3:non_llm_context_precision_with_reference
    Source: ragas 0.4.3, metrics/_context_precision.py

    Each context is judged alone, one after another. 0 when nothing was retrieved; one reply that cannot be read, nor
    be repaired, fails the metric.

    Quirks: v is 1 for any verdict but 0. The collections take the judge's integers as they are, so that a 2 can lead
    beyond 1, and refuse an empty input. See also `JudgedMetric`.
    """

    name: ClassVar[str] = "ragas-0.4.3:llm_context_precision_with_reference"
    ranked: ClassVar[bool] = True
    needs = frozenset({"user_input", "retrieved_contexts", "reference"})
    against: ClassVar[TextField] = "reference"

    def judged(self, sample: Sample, texts: Mapping[str, str]) -> Plan[Score | Undefined]:
        contexts, asker = sample.contexts, self.asker()
        verdicts: list[int] = []
        evidence: list[Evidence] = []
        for index, context in enumerate(contexts):
            values = {"user_input": texts["user_input"], "context": context.text, "answer": texts[self.against]}
            read = yield from self.ask(asker, "context_precision", values, VERDICT)
            verdict = read.value if self.collected else int(read.value != 0)
            verdicts.append(verdict)
            evidence.append(read.evidence(EvidenceTarget.CONTEXT, index, verdict))
        counts = {"contexts": len(contexts), "useful": sum(verdict != 0 for verdict in verdicts)}
        return Score(smoothed_average_precision(verdicts), tuple(evidence), counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionWithoutReference(PrecisionWithReference):
    """Ranking: contexts that serve the response should come before the others, as ragas scores it.

    Use: To compare with context utilization of ragas 0.2 to 0.4.
    Not: To judge a retriever: a wrong response makes the contexts it came from useful.
    See: context_utilization | ragas-0.4.3:llm_context_precision_with_reference
    """

    name: ClassVar[str] = "ragas-0.4.3:llm_context_precision_without_reference"
    needs = frozenset({"user_input", "retrieved_contexts", "response"})
    against: ClassVar[TextField] = "response"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRecall(RefusesEmpty):
    """Which share of the reference the judge finds in the contexts, as ragas scores it.

    Formula: Attributed / classified sentences of the reference, as the judge splits it.
    Questions: One request, which shows the question, the joined contexts and the reference.
    Undefined: the reply classifies nothing | an input is empty (collections)
    Use: To compare with context recall of ragas 0.2 to 0.4.
    Not: For new work: take context_recall, which knows what it asked for.
    See: context_recall | ragas-0.4.3:non_llm_context_recall
    Source: ragas 0.4.3, metrics/_context_recall.py

    Without contexts the judge is asked too.

    Quirks: the collections differ as in `PrecisionWithReference`.
    """

    name: ClassVar[str] = "ragas-0.4.3:context_recall"
    needs = frozenset({"user_input", "retrieved_contexts", "reference"})

    def judged(self, sample: Sample, texts: Mapping[str, str]) -> Plan[Score | Undefined]:
        del sample
        values = {"user_input": texts["user_input"], "contexts": texts["contexts"], "answer": texts["reference"]}
        read = yield from self.ask(self.asker(), "context_recall", values, ATTRIBUTED)
        if not read.value:
            return Undefined("the judge classified no sentence of the reference")
        found = [item.value if self.collected else int(item.value != 0) for item in read.value]
        evidence = on_statements(read.reply.verdict, zip(found, (item.statement for item in read.value), strict=True))
        counts = {"statements": len(found), "attributed": sum(value != 0 for value in found)}
        return Score(sum(found) / len(found), evidence, counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextEntityRecall(JudgedMetric):
    """Which share of the reference's entities the contexts name, as ragas scores it.

    Formula: |entities of both| / (entities of the reference + 1e-8), compared character by character.
    Questions: Two requests: the entities of the reference, then those of the joined contexts.
    Use: To compare with entity recall of ragas 0.2 to 0.4.
    Not: Where entities are written in several ways: each spelling is another entity.
    See: context_recall | ragas-0.4.3:context_recall
    Source: ragas 0.4.3, metrics/_context_entities_recall.py

    0 when the reference names none. Empty inputs are judged too.

    Quirks: an entity that the judge lists twice counts twice in the denominator, except in the collections.
    """

    name: ClassVar[str] = "ragas-0.4.3:context_entity_recall"
    needs = frozenset({"retrieved_contexts", "reference"})
    breaks: ClassVar[Mapping[str, str]] = RefusesEmpty.breaks

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        reference, contexts = sample.require("reference"), joined(sample)
        asker = self.asker()
        wanted = yield from self.ask(asker, "entities", {"text": reference}, ENTITIES)
        there = yield from self.ask(asker, "entities", {"text": contexts}, ENTITIES)
        common = len(set(wanted.value) & set(there.value))
        total = len(set(wanted.value)) if self.collected else len(wanted.value)
        evidence = (
            wanted.evidence(EvidenceTarget.TEXT, 0, total),
            there.evidence(EvidenceTarget.TEXT, 0, len(there.value)),
        )
        return Score(common / (total + _EPSILON), evidence, {"entities": total, "found": common})


Verdicts = ReadReply[Judgements]
"""Verdicts on the statements of one text, and the reply that holds them."""


_NO_STATEMENT: Final = "the response makes no statement"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseSensitivity(JudgedMetric):
    """Which share of the response is wrong because of what was retrieved, as ragas scores it.

    Formula: Mean of (unsupported by the reference and supported by a relevant context), or by irrelevant ones.
    Questions: 3 + 2 N requests for N contexts: statements twice, verdicts twice a context and once more.
    Undefined: an input is empty | the response makes no statement | the reference makes no statement
    Use: To compare with noise sensitivity of ragas 0.2 to 0.4.
    Not: On many contexts: it is the dearest of these metrics.
    See: faithfulness | context_relevance
    Source: ragas 0.4.3, metrics/_noise_sensitivity.py

    A context is relevant if it supports a statement of the reference. `mode=irrelevant`: supported by an irrelevant
    context and by no relevant one. Verdict lists of unequal length fail the metric.
    """

    name: ClassVar[str] = "ragas-0.4.3:noise_sensitivity"
    higher_is_better: ClassVar[bool] = False
    needs = frozenset({"user_input", "response", "reference", "retrieved_contexts"})

    mode: Focus = Focus.RELEVANT

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input, response = sample.require("user_input"), sample.require("response")
        reference, contexts = sample.require("reference"), sample.contexts
        if not (user_input and response and reference and contexts):
            return Undefined(EMPTY)
        asker = self.asker()
        expected = (yield from self.ask_statements(asker, user_input, reference)).value
        statements = (yield from self.ask_statements(asker, user_input, response)).value
        references: list[Verdicts] = []
        responses: list[Verdicts] = []
        for context in contexts:
            references.append((yield from self.ask_verdicts(asker, expected, context.text)))
            responses.append((yield from self.ask_verdicts(asker, statements, context.text)))
        _check_lengths(references)
        _check_lengths(responses)
        right = yield from self.ask_verdicts(asker, statements, reference)
        return self._score(references, responses, right)

    def _score(self, references: list[Verdicts], responses: list[Verdicts], right: Verdicts) -> Score | Undefined:
        if not references[0].value:
            return Undefined("the reference makes no statement")
        relevant = [any(item.value for item in read.value) for read in references]
        try:
            found = noisy(_flags(right), relevant, [*map(_flags, responses)], from_relevant=self.mode is Focus.RELEVANT)
        except ValueError as error:
            raise right.reply.unreadable(str(error)) from None
        if not found:
            return Undefined(_NO_STATEMENT)
        evidence = on_statements(right.reply.verdict, ((int(each.value != 0), each.statement) for each in right.value))
        evidence += tuple(
            read.evidence(EvidenceTarget.CONTEXT, index, int(relevant[index])) for index, read in enumerate(references)
        )
        wrong = _flags(right).count(False) * (len(found) // len(right.value))
        counts = {"statements": len(found), "wrong": wrong, "noisy": sum(found), "relevant": sum(relevant)}
        return Score(sum(found) / len(found), evidence, counts)


def _check_lengths(reads: Sequence[Verdicts]) -> None:
    for read in reads:
        if len(read.value) != len(reads[0].value):
            sizes = f"{len(read.value)} verdicts where another context has {len(reads[0].value)}"
            raise read.reply.unreadable(f"The reply holds {sizes}.")


def _flags(read: Verdicts) -> list[bool]:
    return [item.value != 0 for item in read.value]


_STRUCTURED: Final[Mapping[str, object]] = {"version": 2, "repairs": 0, "reasks": REASKS, "collected": True}
"""Changes of the collections, which ask for structured output: unreadable replies are re-asked, not repaired."""
_REFUSING: Final[Mapping[str, object]] = {**_STRUCTURED, "breaks": MappingProxyType[str, str]({})}
_RAW: Final[Mapping[str, object]] = {**_REFUSING, "range": (float("-inf"), float("inf"))}


def _row(base: D, name: str, **changes: object) -> D:
    """Return a metric of 0.4.3 under another name."""
    return variant(base, f"ragas-0.4.3:{name}", **changes)


_NEWEST: Final[tuple[type[Metric], ...]] = (
    PrecisionWithReference,
    PrecisionWithoutReference,
    _row(PrecisionWithReference, "context_precision"),
    _row(PrecisionWithoutReference, "context_utilization"),
    texts.NonLLMPrecision,
    texts.IDBasedPrecision,
    ContextRecall,
    _row(ContextRecall, "llm_context_recall"),
    texts.NonLLMRecall,
    texts.IDBasedRecall,
    ContextEntityRecall,
    response.Faithfulness,
    response.FaithfulnessWithHHEM,
    response.AnswerRelevancy,
    NoiseSensitivity,
    response.AnswerCorrectness,
    response.FactualCorrectness,
    response.SemanticSimilarity,
    _row(response.SemanticSimilarity, "answer_similarity"),
    texts.StringSimilarity,
    texts.Bleu,
    texts.Chrf,
    texts.Rouge,
    texts.ExactMatch,
    texts.StringPresence,
    _row(texts.StringPresence, "string_present"),
    response.AspectCritic,
)
"""The classes of 0.4.3."""


def _each_asked(card: Card) -> Card:
    """Return the card of a definition that sends a request for each reply."""
    return replace(card, questions="`strictness` requests (3), and one for the embeddings.")


_SEPARATE: Final = {"card": _each_asked(response.AnswerRelevancy.card), "one_request": False}
_COLLECTIONS: Final[tuple[tuple[type[Metric], str, Mapping[str, object]], ...]] = (
    (PrecisionWithReference, "context_precision_with_reference", _RAW),
    (PrecisionWithoutReference, "context_precision_without_reference", _RAW),
    (PrecisionWithReference, "context_precision", _RAW),
    (PrecisionWithoutReference, "context_utilization", _RAW),
    (ContextRecall, "context_recall", _RAW),
    (ContextEntityRecall, "context_entity_recall", _STRUCTURED),
    (response.Faithfulness, "faithfulness", _REFUSING),
    (response.AnswerRelevancy, "answer_relevancy", {**_REFUSING, **_SEPARATE}),
    (NoiseSensitivity, "noise_sensitivity", _STRUCTURED),
    (response.AnswerCorrectness, "answer_correctness", _STRUCTURED),
    (response.FactualCorrectness, "factual_correctness", _REFUSING),
    (response.SemanticSimilarity, "semantic_similarity", {}),
    (texts.StringSimilarity, "non_llm_string_similarity", {}),
    (texts.Bleu, "bleu_score", {}),
    (texts.Chrf, "chrf_score", {}),
    (texts.Rouge, "rouge_score", {}),
    (texts.ExactMatch, "exact_match", {}),
    (texts.StringPresence, "string_presence", {}),
)
"""The metrics of the collections, with what differs from the classes."""
_SINCE_0_4: Final[tuple[type[Metric], ...]] = (texts.IDBasedPrecision, texts.IDBasedRecall, texts.Chrf)


def _earlier(metric: type[Metric]) -> type[Metric]:
    """Return a metric as 0.3.0 has it, where each request of a judge has another temperature."""
    changes: dict[str, object] = {"temperature": EARLIER_TEMPERATURE} if issubclass(metric, JudgedMetric) else {}
    card = replace(metric.card, sources=tuple(each.replace("0.4.3", "0.3.0") for each in metric.card.sources))
    if metric is response.AnswerRelevancy:
        changes |= {"one_request": False, "one_zeroes": True}
        card = _each_asked(card)
    return variant(metric, metric.name.replace("0.4.3", "0.3.0"), card=card, **changes)


METRICS: Final[tuple[type[Metric], ...]] = (
    *_NEWEST,
    *(_row(base, f"collections.{name}", **changes) for base, name, changes in _COLLECTIONS),
    *(_earlier(metric) for metric in _NEWEST if metric not in _SINCE_0_4),
)
