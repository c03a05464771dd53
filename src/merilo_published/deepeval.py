"""The RAG metrics of DeepEval as they were published, quirks included: three on contexts, two on the response."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.metrics.base import Evidence, EvidenceTarget, Metric, Score, Undefined
from merilo.metrics.formulas import average_precision
from merilo_published.asking import (
    Asker,
    Fields,
    Listed,
    ReadReply,
    ReplyFault,
    RequestTemplate,
    fields_of,
    given,
    items_of,
    text_in,
    texts_in,
)
from merilo_published.definition import Published, fraction

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import TypeVar

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan
    from merilo_published.asking import Reply

    T = TypeVar("T")


SYSTEM: Final = "deepeval"
"""The folder of the rubrics."""

_WORD: Final = re.compile(r"[a-z]+")
_SPARE_COMMA: Final = re.compile(r",\s*([\]}])")


class ReplyPath(StrEnum):
    """The form in which the judge of DeepEval replies, which decides what is readable."""

    SCHEMA = "schema"
    """As its own clients do (OpenAI, local and other servers): each reply is asked for by a JSON Schema, and one that
    does not fit it fails the metric.
    """
    LOOSE = "loose"
    """As a model class of the user's own without schemas: free text, whose JSON is read leniently."""


@dataclass(frozen=True, slots=True)
class DeepEvalVerdict:
    """One item of a list of verdicts: yes, no or borderline."""

    reply: Reply
    place: int
    """Its index in the reply, those that were dropped counted too."""
    word: str
    reason: str | None
    statement: str


@dataclass(frozen=True, slots=True)
class VerdictForm:
    """The required fields of an item in a list of verdicts."""

    words: tuple[str, ...]
    statement: bool = False
    """It names its statement."""
    reason: bool = False
    """Its reason may not be missing."""

    @property
    def schema(self) -> Mapping[str, object]:
        """The JSON Schema of an item."""
        properties: dict[str, object] = {"statement": _TEXT} if self.statement else {}
        properties["verdict"] = {"type": "string", "enum": list(self.words)}
        properties["reason"] = _TEXT if self.reason else {"anyOf": [_TEXT, {"type": "null"}]}
        return _closed(properties)

    def read(self, fields: Fields, *, strict: bool) -> tuple[str, str | None, str] | None:
        """Return the verdict, reason and statement of an item; None for one to drop. Raises ReplyFault."""
        word = text_in(fields, "verdict") if strict else leading_word(fields.get("verdict"), self.words)
        if word is None:
            return None
        if word not in self.words:
            raise ReplyFault(f"The reply gives the verdict {word!r}; allowed: {', '.join(self.words)}.")
        reason = text_in(fields, "reason") if self.reason or fields.get("reason") is not None else None
        return word, reason, text_in(fields, "statement") if self.statement else ""


YES: Final = "yes"
NO: Final = "no"
BORDERLINE: Final = "borderline"
ON_STATEMENTS: Final = VerdictForm((YES, NO), statement=True)
ON_CONTEXTS: Final = VerdictForm((YES, NO), reason=True)
ON_CLAIMS: Final = VerdictForm((YES, NO, BORDERLINE))


@dataclass(slots=True)
class Judging:
    """The questions about one sample and what is noted on the way; one for each plan."""

    path: ReplyPath
    asker: Asker = field(default_factory=lambda: Asker(SYSTEM))
    evidence: list[Evidence] = field(default_factory=list[Evidence])
    flags: list[str] = field(default_factory=list[str])

    def texts(self, rubric: str, values: Mapping[str, str], name: str, likely: str) -> Plan[Sequence[str]]:
        """Return the list of texts in this field of a reply. Raises AskFailed."""
        read = texts_in if self.path is ReplyPath.SCHEMA else each_text
        schema = {name: {"type": "array", "items": _TEXT}}
        found = yield from self.ask(rubric, values, lambda fields: read(fields, name), {name: [likely]}, schema)
        return found.value

    def ask(
        self,
        rubric: str,
        values: Mapping[str, str],
        read: Callable[[Fields], T],
        likely: object,
        schema: Mapping[str, object],
    ) -> Plan[ReadReply[T]]:
        """Return a reply and what was read of its JSON object, whose fields `schema` describes. Raises AskFailed.

        A reply that cannot be read fails at once: no path of DeepEval asks again.
        """
        enforced = json.dumps(_closed(schema), sort_keys=True) if self.path is ReplyPath.SCHEMA else ""
        template = RequestTemplate(
            rubric, json.dumps(likely), lambda reply: read(object_of(reply.text)), schema=enforced
        )
        return (yield from self.asker.read(template, values))

    def verdicts(
        self, rubric: str, values: Mapping[str, str], form: VerdictForm, expected: int | None = None
    ) -> Plan[list[DeepEvalVerdict]]:
        """Return the verdicts of one reply. `expected`: their number; None if the judge decides it."""
        strict = self.path is ReplyPath.SCHEMA

        def read(fields: Fields) -> list[tuple[str, str | None, str] | None]:
            value = given(fields, "verdicts") if strict else fields.get("verdicts")
            return [form.read(fields_of(item), strict=strict) for item in (items_of(value) if value or strict else ())]

        likely = {"verdicts": [{"statement": "s", "verdict": YES, "reason": "A reason."}] * (expected or 1)}
        schema = {"verdicts": {"type": "array", "items": form.schema}}
        found = yield from self.ask(rubric, values, read, likely, schema)
        if expected is not None and len(found.value) != expected:
            self.flags.append("a reply gave another number of verdicts than there was to judge")
        if None in found.value:
            self.flags.append("a verdict outside the vocabulary was left out")
        return [DeepEvalVerdict(found.reply, at, *each) for at, each in enumerate(found.value) if each is not None]

    def statements(
        self, verdicts: Sequence[DeepEvalVerdict], passing: Collection[str], texts: Sequence[str] = ()
    ) -> None:
        """Note each verdict as evidence on a statement: the one it names, else that of its place in `texts`."""
        for item in verdicts:
            at = item.place if texts else len(self.evidence)
            text = texts[at] if at < len(texts) else item.statement
            value = float(item.word in passing)
            self.evidence.append(item.reply.evidence(EvidenceTarget.STATEMENT, at, value, text))


@dataclass(frozen=True, slots=True, kw_only=True)
class WithThreshold(Published):
    """A RAG metric of DeepEval; `success` in the counts is 1 from the threshold on.

    Use: To compare with scores of DeepEval.

    - `threshold`: from which score on a sample is a success.
    - `strict_mode`: the threshold is 1, and a lower score becomes 0.
    - `include_reason`: one more request, for the score in words; a reply without a reason fails the metric.
    - `reply`: whether replies have to fit a JSON Schema or are read leniently, see `ReplyPath`.

    Read leniently, a verdict is its first word in lower case, `idk` as borderline; any other word drops it, flagged.
    Nothing to judge has a score, flagged: 0 for contexts, 1 for responses. Another number of verdicts than of things to
    judge is flagged only.
    """

    version: ClassVar[int] = 2

    threshold: float = 0.5
    strict_mode: bool = False
    include_reason: bool = True
    reply: ReplyPath = ReplyPath.SCHEMA

    def scored(
        self, judging: Judging, score: float, counts: Mapping[str, int | None], reason: tuple[str, Mapping[str, str]]
    ) -> Plan[Score]:
        """Return the score after the strict mode, with its reason if `include_reason`. `reason`: rubric and values."""
        threshold = 1.0 if self.strict_mode else self.threshold
        if self.strict_mode and score < threshold:
            score = 0.0
        evidence = judging.evidence
        if self.include_reason:
            rubric, values = reason
            read = text_in if self.reply is ReplyPath.SCHEMA else _text_or_json
            reply = yield from judging.ask(
                rubric,
                {"score": f"{score:.2f}", **values},
                lambda fields: read(fields, "reason"),
                {"reason": "A reason."},
                {"reason": _TEXT},
            )
            evidence = [*evidence, reply.evidence(EvidenceTarget.TEXT, 0, text=reply.value)]
        return Score(
            score, tuple(evidence), {**counts, "success": int(score >= threshold)}, tuple(dict.fromkeys(judging.flags))
        )


_TEXT: Final[dict[str, object]] = {"type": "string"}


def leading_word(raw: object, words: Collection[str]) -> str | None:
    """Return the verdict that a text begins with, whatever follows; None if it is none of `words`."""
    found = _WORD.match("" if raw is None else str(raw).strip().lower())
    word = found[0] if found else ""
    word = BORDERLINE if word == "idk" else word
    return word if word in words else None


def object_of(text: str) -> Fields:
    """Return the JSON object from the first `{` to the last `}`; repairs a missing end and spare commas.

    Raises ReplyFault.
    """
    start, end = text.find("{"), text.rfind("}") + 1
    if start >= 0 and not end:
        text += "}"
        end = len(text)
    part = text[start:end] if start >= 0 else ""
    for attempt in (part, _SPARE_COMMA.sub(r"\1", part)):
        try:
            found: object = json.loads(attempt)
        except (ValueError, RecursionError):
            continue
        return fields_of(found)
    raise ReplyFault("The reply holds no valid JSON object.")


def listed(texts: Sequence[str | None], label: str = "", items: Sequence[object] | None = None) -> str:
    """Return the texts one per line, numbered from 1: `Node 1: ...` with the label `Node`; (none) if there are none.

    `items`: the elements that DeepEval lists in its own prompt, if not these texts.
    """
    head = f"{label} " if label else ""
    shown = "\n".join(f"{head}{place}: {text or ''}" for place, text in enumerate(texts, start=1)) or "(none)"
    return Listed.of(shown, texts if items is None else items)


def each_text(fields: Fields, name: str) -> list[str]:
    """Return the items of the list in a field; an item that is not text as its JSON. Raises ReplyFault."""
    return [_text_or_json({name: item}, name) for item in items_of(given(fields, name))]


def _closed(properties: Mapping[str, object]) -> Mapping[str, object]:
    """Return the schema of an object with exactly these fields."""
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def _text_or_json(fields: Fields, name: str) -> str:
    value = given(fields, name)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_EMPTY: Final[Mapping[str, str]] = MappingProxyType({"nothing to judge": "it scores 0"})
_EMPTY_RESPONSE: Final = "the response is empty"
_NO_VERDICT: Final = "there was no verdict and that was scored 0"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextualRelevancy(WithThreshold):
    """Share of the statements in the contexts that are relevant to the user input.

    Formula: Relevant statements / statements, pooled over the contexts.
    Questions: One request for each context, and one for the reason.
    Not: To compare retrievers whose contexts differ in length: long contexts count more.
    See: context_relevance | axion:contextual_relevancy | deepeval-4.3.1:contextual_precision
    Source: DeepEval 4.3.1, ContextualRelevancyMetric

    The judge splits each context and judges in one reply; contexts are asked one after another, and the first
    unreadable reply ends it: Failed. No contexts, or no statements, score 0.
    """

    name: ClassVar[str] = "deepeval-4.3.1:contextual_relevancy"
    needs = frozenset({"user_input", "retrieved_contexts"})
    breaks: ClassVar[Mapping[str, str]] = _EMPTY

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input, contexts = sample.require("user_input"), sample.contexts
        judging, items = Judging(self.reply), list[DeepEvalVerdict]()
        for context in contexts:
            values = {"user_input": user_input, "context": context.text}
            items += yield from judging.verdicts("contextual_relevancy.verdicts", values, ON_STATEMENTS)
        judging.statements(items, {YES})
        relevant = [item.statement for item in items if item.word == YES]
        score = fraction(len(relevant), len(items))
        if not items:
            what = "there was no verdict" if contexts else "no context was retrieved"
            judging.flags.append(f"{what} and that was scored 0")
        reason = {
            "user_input": user_input,
            "irrelevant": _reasons(items, NO),
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
        judging = Judging(self.reply)
        values = {"user_input": user_input, "expected_output": reference, "nodes": listed(contexts, "Node")}
        items = yield from judging.verdicts("contextual_precision.verdicts", values, ON_CONTEXTS, len(contexts))
        flags = [item.word == YES for item in items]
        if not flags:
            judging.flags.append(_NO_VERDICT)
        judging.evidence += [
            item.reply.evidence(EvidenceTarget.CONTEXT, item.place, float(item.word == YES))
            for item in items
            if item.place < len(contexts)
        ]
        judged = [{"verdict": item.word, "reason": item.reason} for item in items]
        shown = listed([f"{item.word}: {item.reason}" for item in items], "Node", judged)
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

    One reply splits and judges. The user input is required and not shown. No verdicts score 0.
    """

    name: ClassVar[str] = "deepeval-4.3.1:contextual_recall"
    needs = frozenset({"user_input", "retrieved_contexts", "reference"})
    breaks: ClassVar[Mapping[str, str]] = _EMPTY

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        sample.require("user_input")
        reference, contexts = sample.require("reference"), [context.text for context in sample.contexts]
        judging = Judging(self.reply)
        values = {"expected_output": reference, "nodes": listed(contexts, "Node")}
        items = yield from judging.verdicts("contextual_recall.verdicts", values, ON_CONTEXTS)
        judging.statements(items, {YES})
        size, attributed = len(items), sum(item.word == YES for item in items)
        if not size:
            judging.flags.append(_NO_VERDICT)
        reason = {
            "expected_output": reference,
            "supportive": _reasons(items, YES),
            "unsupportive": _reasons(items, NO),
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
    needs = frozenset({"user_input", "response", "retrieved_contexts"})

    penalize_ambiguous_claims: bool = False
    truths_extraction_limit: int | None = None

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        sample.require("user_input")
        response, contexts = sample.require("response"), sample.contexts
        if not response:
            return Undefined(_EMPTY_RESPONSE)
        judging, limit = Judging(self.reply), self.truths_extraction_limit
        wanted = "all of them" if limit is None else f"the {max(limit, 0)} most important of each document"
        values = {"limit": wanted, "retrieval_context": "\n\n".join(each.text for each in contexts)}
        truths = yield from judging.texts("faithfulness.truths", values, "truths", "A fact.")
        claims = yield from judging.texts("faithfulness.claims", {"actual_output": response}, "claims", "A claim.")
        items: list[DeepEvalVerdict] = []
        if claims:
            values = {"facts": "\n\n".join(truths), "claims": listed(claims), "unsure": BORDERLINE}
            items = yield from judging.verdicts("faithfulness.verdicts", values, ON_CLAIMS, len(claims))
        passing = {YES} if self.penalize_ambiguous_claims else {YES, BORDERLINE}
        judging.statements(items, passing, claims)
        if not items:
            judging.flags.append("there was no claim with a verdict and that was scored 1")
        counts = {"truths": len(truths), "claims": len(claims)} | _tallied(items)
        unsure = [item for item in items if item.word == BORDERLINE and self.penalize_ambiguous_claims]
        shown = [item.reason or "" for item in items if item.word == NO]
        shown += [f"(ambiguous) {item.reason or ''}" for item in unsure]
        # DeepEval's own prompt lists the reasons in the order of the claims
        own = [
            f"(Ambiguous) {item.reason}" if item in unsure else item.reason
            for item in items
            if item.word == NO or item in unsure
        ]
        reason = {"contradictions": listed(shown, items=own)}
        score = fraction(sum(item.word in passing for item in items), len(items), of_nothing=1.0)
        return (yield from self.scored(judging, score, counts, ("faithfulness.reason", reason)))


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRelevancy(WithThreshold):
    """Share of the response's statements that are not irrelevant to the user input.

    Formula: (verdicts - no) / verdicts on the response's statements.
    Questions: Two requests, and one for the reason.
    Undefined: the response is empty
    Not: To tell a refusal from an answer: one without statements scores 1. Take answer_relevancy.
    See: answer_relevancy | deepeval-4.3.1:faithfulness
    Source: DeepEval 4.3.1, AnswerRelevancyMetric

    Borderline passes. No statements score 1 without the second request.
    """

    name: ClassVar[str] = "deepeval-4.3.1:answer_relevancy"
    needs = frozenset({"user_input", "response"})

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input, response = sample.require("user_input"), sample.require("response")
        if not response:
            return Undefined(_EMPTY_RESPONSE)
        judging, items = Judging(self.reply), list[DeepEvalVerdict]()
        values = {"actual_output": response}
        statements = yield from judging.texts("answer_relevancy.statements", values, "statements", "A statement.")
        if statements:
            values = {"user_input": user_input, "statements": listed(statements), "unsure": BORDERLINE}
            items = yield from judging.verdicts("answer_relevancy.verdicts", values, ON_CLAIMS, len(statements))
        judging.statements(items, {YES, BORDERLINE}, statements)
        if not items:
            judging.flags.append("there was no statement with a verdict and that was scored 1")
        counts = {"statements": len(statements)} | _tallied(items)
        reason = {"user_input": user_input, "irrelevant": _reasons(items, NO)}
        score = fraction(sum(item.word != NO for item in items), len(items), of_nothing=1.0)
        return (yield from self.scored(judging, score, counts, ("answer_relevancy.reason", reason)))


def _reasons(items: Sequence[DeepEvalVerdict], word: str) -> str:
    return listed([item.reason for item in items if item.word == word])


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
