"""The RAG metrics of DeepEval as they were published, quirks included: three on contexts, two on the response."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.metrics.base import EvidenceTarget, Score, Undefined
from merilo.metrics.formulas import average_precision
from merilo_published.deepeval.steps import (
    BORDERLINE,
    NO,
    ON_CLAIMS,
    ON_CONTEXTS,
    YES,
    DeepEvalReplySchema,
    DeepEvalVerdict,
    Verdicts,
    WithThreshold,
    listed,
)
from merilo_published.definition import bound, fraction

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan
    from merilo.metrics.base import Metric
    from merilo_published.deepeval.steps import Judging


_EMPTY: Final[Mapping[str, str]] = MappingProxyType({"nothing to judge": "it scores 0"})
_EMPTY_RESPONSE: Final = "the response is empty"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextualRelevancy(WithThreshold):
    """Share of the statements in the contexts that are relevant to the user input.

    Formula: Relevant statements / statements, pooled over the contexts.
    Questions: One request for each context, and one for the reason.
    Not: To compare retrievers whose contexts differ in length: long contexts count more.
    See: context_relevance | axion:contextual_relevancy | deepeval-4.3.1:contextual_precision
    Source: DeepEval 4.3.1, ContextualRelevancyMetric

    In full: yes / all statements, pooled over the contexts, so that a context with many statements counts more. The
    judge splits each context and judges in one reply; contexts are asked one after another, and the first unreadable
    reply ends it: Failed. No contexts, or no statements, score 0.
    """

    name: ClassVar[str] = "deepeval-4.3.1:contextual_relevancy"
    needs = frozenset({"user_input", "retrieved_contexts"})
    breaks: ClassVar[Mapping[str, str]] = _EMPTY

    def max_questions(self, sample: Sample) -> int:
        return bound(sample, self.needs, len(sample.retrieved_contexts or ()) + self.include_reason)

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input, contexts = sample.require("user_input"), sample.contexts
        judging, found = self.judging(), list[Verdicts]()
        layout = DeepEvalReplySchema(ON_CONTEXTS, statement=True)
        for context in contexts:
            values = {"user_input": user_input, "context": context.text}
            found.append((yield from self.verdicts(judging, "contextual_relevancy.verdicts", values, layout=layout)))
        judging.note_dropped(found)
        judging.statements(found, {YES})
        items = [item for group in found for item in group.items]
        relevant = [item.statement for item in items if item.word == YES]
        score = fraction(len(relevant), len(items))
        if not items:
            judging.note_empty("there was no verdict" if contexts else "no context was retrieved", 0)
        reason = {
            "user_input": user_input,
            "irrelevant": listed([item.reason for item in items if item.word == NO]),
            "relevant": listed(relevant),
        }
        counts = {"contexts": len(contexts), "statements": len(items), "relevant": len(relevant)}
        return (yield from self.scored(judging, score, counts, ("contextual_relevancy.reason", reason)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextualPrecision(WithThreshold):
    """Ranking: contexts that helped to arrive at the reference should come before the others.

    Formula: Mean, over the ranks of useful contexts, of precision at that rank.
    Questions: One request, and one for the reason.
    Not: With many contexts: verdicts that the judge leaves out shift the ranks of those that follow.
    See: context_precision | deepeval-4.3.1:contextual_relevancy
    Source: DeepEval 4.3.1, ContextualPrecisionMetric

    One reply judges all contexts, and its verdicts are not held to their number. No verdicts score 0.
    """

    name: ClassVar[str] = "deepeval-4.3.1:contextual_precision"
    ranked: ClassVar[bool] = True
    needs = frozenset({"user_input", "retrieved_contexts", "reference"})
    breaks: ClassVar[Mapping[str, str]] = _EMPTY

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input, reference = sample.require("user_input"), sample.require("reference")
        contexts = [context.text for context in sample.contexts]
        judging, layout = self.judging(), DeepEvalReplySchema(ON_CONTEXTS, reason=True)
        values = {"user_input": user_input, "expected_output": reference, "nodes": listed(contexts, "Node")}
        rubric = "contextual_precision.verdicts"
        found = yield from self.verdicts(judging, rubric, values, layout=layout, expected=len(contexts))
        judging.note_dropped([found])
        flags = [word == YES for word in found.words()]
        if not flags:
            judging.note_empty("there was no verdict", 0)
        judging.evidence += [
            found.reply.evidence(EvidenceTarget.CONTEXT, item.place, float(item.word == YES))
            for item in found.items
            if item.place < len(contexts)
        ]
        judged = [{"verdict": item.word, "reason": item.reason} for item in found.items]
        shown = listed([f"{item.word}: {item.reason}" for item in found.items], "Node", judged)
        reason = {"user_input": user_input, "verdicts": shown}
        counts = {"contexts": len(contexts), "verdicts": len(flags), "useful": sum(flags)}
        score = average_precision(flags)
        return (yield from self.scored(judging, score, counts, ("contextual_precision.reason", reason)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextualRecall(WithThreshold):
    """Share of the reference's sentences that can be attributed to the contexts.

    Formula: Sentences attributed / sentences.
    Questions: One request, and one for the reason.
    Not: To see which sentence is missing: the judge splits, and names none. Take context_recall.
    See: context_recall | deepeval-4.3.1:contextual_precision
    Source: DeepEval 4.3.1, ContextualRecallMetric

    In full: yes / all verdicts. One reply splits the reference into sentences and judges them. The user input is
    required and not shown. No verdicts score 0.
    """

    name: ClassVar[str] = "deepeval-4.3.1:contextual_recall"
    needs = frozenset({"user_input", "retrieved_contexts", "reference"})
    breaks: ClassVar[Mapping[str, str]] = _EMPTY

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        sample.require("user_input")
        reference, contexts = sample.require("reference"), [context.text for context in sample.contexts]
        judging, layout = self.judging(), DeepEvalReplySchema(ON_CONTEXTS, reason=True)
        values = {"expected_output": reference, "nodes": listed(contexts, "Node")}
        found = yield from self.verdicts(judging, "contextual_recall.verdicts", values, layout=layout)
        judging.note_dropped([found])
        judging.statements([found], {YES})
        size, attributed = len(found.items), found.words().count(YES)
        if not size:
            judging.note_empty("there was no verdict", 0)
        reason = {
            "expected_output": reference,
            "supportive": _reasons(found.items, {YES}),
            "unsupportive": _reasons(found.items, {NO}),
        }
        counts = {"sentences": size, "attributed": attributed}
        score = fraction(attributed, size)
        return (yield from self.scored(judging, score, counts, ("contextual_recall.reason", reason)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Faithfulness(WithThreshold):
    """Share of the response's claims that do not contradict the contexts.

    Formula: (yes + borderline) / verdicts on the response's claims.
    Questions: Three requests, and one for the reason.
    Undefined: the response is empty
    Not: To find claims that nothing supports: they pass here. Take faithfulness.
    See: faithfulness | deepeval-4.3.1:answer_relevancy
    Source: DeepEval 4.3.1, FaithfulnessMetric

    Three requests: truths of the contexts joined by blank lines, claims of the response, and verdicts on the claims
    against the *truths*; a claim that they do not mention is borderline and passes. No claims score 1 without the
    third request.

    - `penalize_ambiguous_claims`: borderline does not pass.
    - `truths_extraction_limit`: how many truths are asked for; none asks for all of them, below 0 is 0.
    """

    name: ClassVar[str] = "deepeval-4.3.1:faithfulness"
    most: ClassVar[int] = 3
    needs = frozenset({"user_input", "response", "retrieved_contexts"})

    penalize_ambiguous_claims: bool = False
    truths_extraction_limit: int | None = None

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        sample.require("user_input")
        response, contexts = sample.require("response"), sample.contexts
        if not response:
            return Undefined(_EMPTY_RESPONSE)
        judging = self.judging()
        truths, claims = yield from self._extracted(judging, response, "\n\n".join(each.text for each in contexts))
        found: list[Verdicts] = []
        if claims:
            values = {"facts": "\n\n".join(truths), "claims": listed(claims), "unsure": BORDERLINE}
            layout, rubric = DeepEvalReplySchema(ON_CLAIMS), "faithfulness.verdicts"
            found.append((yield from self.verdicts(judging, rubric, values, layout=layout, expected=len(claims))))
        passing = {YES} if self.penalize_ambiguous_claims else {YES, BORDERLINE}
        items = [item for group in found for item in group.items]
        judging.note_dropped(found)
        judging.statements(found, passing, claims)
        if not items:
            judging.note_empty("there was no claim with a verdict", 1)
        counts = {"truths": len(truths), "claims": len(claims)} | _tallied(items)
        ambiguous = self.penalize_ambiguous_claims
        against = [item for item in items if item.word == NO or (ambiguous and item.word == BORDERLINE)]
        reason = {"contradictions": listed(_against(items, ambiguous=ambiguous), items=[*map(_contradiction, against)])}
        score = fraction(sum(item.word in passing for item in items), len(items), of_nothing=1.0)
        return (yield from self.scored(judging, score, counts, ("faithfulness.reason", reason)))

    def _extracted(self, judging: Judging, response: str, context: str) -> Plan[tuple[Sequence[str], Sequence[str]]]:
        limit = self.truths_extraction_limit
        wanted = "all of them" if limit is None else f"the {max(limit, 0)} most important of each document"
        values = {"limit": wanted, "retrieval_context": context}
        truths = yield from judging.texts("faithfulness.truths", values, "truths", "A fact.")
        claims = yield from judging.texts("faithfulness.claims", {"actual_output": response}, "claims", "A claim.")
        return truths, claims


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRelevancy(WithThreshold):
    """Share of the response's statements that are not irrelevant to the user input.

    Formula: (verdicts - no) / verdicts on the response's statements.
    Questions: Two requests, and one for the reason.
    Undefined: the response is empty
    Not: To tell a refusal from an answer: one without statements scores 1. Take answer_relevancy.
    See: answer_relevancy | deepeval-4.3.1:faithfulness
    Source: DeepEval 4.3.1, AnswerRelevancyMetric

    In full: (all - no) / all verdicts; borderline passes. Two requests: statements of the response, verdicts on them.
    No statements score 1 without the second request.
    """

    name: ClassVar[str] = "deepeval-4.3.1:answer_relevancy"
    most: ClassVar[int] = 2
    needs = frozenset({"user_input", "response"})

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input, response = sample.require("user_input"), sample.require("response")
        if not response:
            return Undefined(_EMPTY_RESPONSE)
        judging, found = self.judging(), list[Verdicts]()
        values = {"actual_output": response}
        statements = yield from judging.texts("answer_relevancy.statements", values, "statements", "A statement.")
        if statements:
            values = {"user_input": user_input, "statements": listed(statements), "unsure": BORDERLINE}
            layout, rubric = DeepEvalReplySchema(ON_CLAIMS), "answer_relevancy.verdicts"
            found.append((yield from self.verdicts(judging, rubric, values, layout=layout, expected=len(statements))))
        items = [item for group in found for item in group.items]
        judging.note_dropped(found)
        judging.statements(found, {YES, BORDERLINE}, statements)
        if not items:
            judging.note_empty("there was no statement with a verdict", 1)
        counts = {"statements": len(statements)} | _tallied(items)
        reason = {"user_input": user_input, "irrelevant": _reasons(items, {NO})}
        score = fraction(sum(item.word != NO for item in items), len(items), of_nothing=1.0)
        return (yield from self.scored(judging, score, counts, ("answer_relevancy.reason", reason)))


def _reasons(items: Sequence[DeepEvalVerdict], words: set[str]) -> str:
    return listed([item.reason for item in items if item.word in words])


def _against(items: Sequence[DeepEvalVerdict], *, ambiguous: bool) -> list[str]:
    """Return the reasons why claims do not pass; with `ambiguous`, also for claims that the facts do not settle."""
    found = [item.reason or "" for item in items if item.word == NO]
    return found + [f"(ambiguous) {item.reason or ''}" for item in items if ambiguous and item.word == BORDERLINE]


def _contradiction(item: DeepEvalVerdict) -> str | None:
    """Return why a claim does not pass, as DeepEval's own prompt lists it."""
    return item.reason if item.word == NO else f"(Ambiguous) {item.reason}"


def _tallied(items: Sequence[DeepEvalVerdict]) -> dict[str, int]:
    words = [item.word for item in items]
    return {"verdicts": len(words), "borderline": words.count(BORDERLINE), "no": words.count(NO)}


METRICS: Final[tuple[type[Metric], ...]] = (
    ContextualRelevancy,
    ContextualPrecision,
    ContextualRecall,
    Faithfulness,
    AnswerRelevancy,
)
