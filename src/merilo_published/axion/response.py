"""axion's metrics of statements, and the list of all its metrics."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from pydantic import BaseModel

from merilo.errors import UsageError
from merilo.judging.ask import AskFailed
from merilo.judging.json_types import as_list, as_mapping, as_object
from merilo.metrics.base import Evidence, EvidenceTarget, Score, Undefined
from merilo_published.asking import Asker, ReadReply, json_array, on_statements
from merilo_published.axion.contexts import (
    ContextualPrecision,
    ContextualRanking,
    ContextualRelevancy,
    ContextualSufficiency,
    ContextualUtilization,
)
from merilo_published.axion.steps import (
    NO_CLAIM,
    NOTHING_CLAIMED,
    SYSTEM,
    AxionMetric,
    Notes,
    RelevancyMode,
    RelevancyReply,
    StatementsReply,
    Strategy,
    Verdicts,
    blank,
    max_statements,
    model_template,
    read_batch,
    relevancy_of,
    sent_texts,
    statements_in,
)
from merilo_published.definition import Published, clipped_mean, fraction, joined

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan
    from merilo.metrics.base import Metric


_NO_TURN: Final = "the conversation has no answer that follows a question"
_ASKED: Final = frozenset({"user", "human"})
_ANSWERED: Final = frozenset({"assistant", "ai"})


class MultiTurn(StrEnum):
    """The turns of a conversation that count."""

    LAST_TURN = "last_turn"
    """The sample's own user input and response."""
    ALL_TURNS = "all_turns"
    """Every answer of the conversation in the sample's metadata that follows a question."""


class ExplanationReply(BaseModel):
    """The reason for a score."""

    explanation: str


_EXPLANATION: Final = model_template("explanation", ExplanationReply, {"explanation": "It answers what was asked."})


@dataclass(frozen=True, slots=True)
class _Turn:
    """A question and its answer."""

    user_input: str
    response: str


@dataclass(frozen=True, slots=True)
class _Claim:
    """A statement of a response, and the verdict on it, or None."""

    text: str
    reply: RelevancyReply | None
    evidence: Evidence | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRelevancy(AxionMetric):
    """Share of the response's statements that are relevant to the user input.

    Formula: Statements with the verdict "yes" or "idk" / statements with a verdict.
    Questions: Three Completions: the statements, the verdicts, the score in words.
    Undefined: the user input is blank | the response is blank | the conversation has no answer that follows a question
    Not: For new work: a failed call scores 1 here. Take answer_relevancy.
    See: answer_relevancy | axion:faithfulness

    One request takes the statements from the response, a second one judges them all, a third one puts the score into
    words. Failed where the third request fails: its text is evidence only, but the published code breaks there.

    Quirks: "idk" counts as relevant (not with `penalize_ambiguity`); no statements score 1, and so does a failed call
    (`failure_scored`). `relevancy_mode` says what is relevant.

    `multi_turn_strategy=all_turns` looks at the metadata's `conversation`: a list of objects with `role` (user or
    assistant) and `content`, or an object that holds it as `messages`. The statements of all turns are counted
    together, and there a statement without a verdict stays in the denominator; a turn whose statements cannot be had
    is passed over. Without a conversation it is as `last_turn`.
    """

    name: ClassVar[str] = "axion:answer_relevancy"
    needs = frozenset({"user_input", "response"})
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({"failures": "failure_scored"})

    relevancy_mode: RelevancyMode = RelevancyMode.TASK
    penalize_ambiguity: bool = False
    multi_turn_strategy: MultiTurn = MultiTurn.LAST_TURN

    def max_questions(self, sample: Sample) -> int:
        if not sample.response:
            return 0
        return 1 + 2 * max(1, len(_turns(sample) or ()))

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        if reason := blank(sample, "user_input", "response"):
            return Undefined(reason)
        turns = _turns(sample) if self.multi_turn_strategy is MultiTurn.ALL_TURNS else None
        whole = turns is not None
        if turns is None:
            turns = (_Turn(sample.require("user_input"), sample.require("response")),)
        elif not turns:
            return Undefined(_NO_TURN)
        asker, notes = Asker(SYSTEM), Notes(self.failure_scored)
        claims: list[_Claim] = []
        for turn in turns:
            claims += yield from self._claims(asker, turn, len(claims), notes)
        if not claims:
            return Score(1.0, flags=notes.flags) if notes.flags else NOTHING_CLAIMED
        asked = _asked(turns) if whole else turns[0].user_input
        return (yield from self._scored(asker, asked, claims, notes, whole=whole))

    def _claims(self, asker: Asker, turn: _Turn, first: int, notes: Notes) -> Plan[list[_Claim]]:
        extracted = yield from statements_in(asker, turn.response)
        if isinstance(extracted, AskFailed):
            notes.lost(extracted)
            return []
        texts = extracted.value.statements
        if not texts:
            return []
        sent = sent_texts(texts)
        found = yield from relevancy_of(asker, turn.user_input, sent, self.relevancy_mode)
        if isinstance(found, AskFailed):
            notes.lost(found)
            return [_Claim(text, None, None) for text in texts]
        replies = found.value.verdicts[: len(texts)]
        notes.length(len(replies), len(sent), len(texts))
        claims: list[_Claim] = []
        for place, text in enumerate(texts):
            reply = replies[place] if place < len(replies) else None
            piece = (
                None
                if reply is None
                else found.evidence(EvidenceTarget.STATEMENT, first + place, float(self._counts(reply)), text)
            )
            claims.append(_Claim(text, reply, piece))
        return claims

    def _counts(self, reply: RelevancyReply) -> bool:
        return reply.verdict == "yes" or (reply.verdict == "idk" and not self.penalize_ambiguity)

    def _scored(
        self, asker: Asker, asked: str, claims: Sequence[_Claim], notes: Notes, *, whole: bool
    ) -> Plan[Score | Undefined]:
        replies = [claim.reply for claim in claims if claim.reply is not None]
        total = len(claims) if whole else len(replies)
        relevant = sum(self._counts(reply) for reply in replies)
        value = fraction(relevant, total, of_nothing=1.0)
        evidence = tuple(claim.evidence for claim in claims if claim.evidence is not None)
        counts = {"statements": len(claims), "counted": total, "relevant": relevant}
        reasons = [f"Relevancy: {reply.reason}" for reply in replies if reply.verdict == "no" and reply.reason]
        values = {"user_input": asked, "reasons": json_array(reasons), "score": repr(value)}
        explanation = yield from asker.read(_EXPLANATION, values)
        return Score(value, (*evidence, explanation.evidence(EvidenceTarget.TEXT, 0)), counts, notes.flags)


def _turns(sample: Sample) -> tuple[_Turn, ...] | None:
    """Return the answers that follow a question, in order; None if the sample has no conversation."""
    given: object = sample.metadata.get("conversation")
    holder = as_object(given)
    messages = as_list(given if holder is None else holder.get("messages"))
    if messages is None:
        return None
    turns: list[_Turn] = []
    asked: str | None = None
    for message in messages:
        fields = as_object(message) or {}
        role, content = fields.get("role"), fields.get("content")
        if not isinstance(content, str):
            continue
        if role in _ASKED:
            asked = content
        elif role in _ANSWERED and content and asked is not None:
            turns.append(_Turn(asked, content))
            asked = None
    return tuple(turns)


def _asked(turns: Sequence[_Turn]) -> str:
    return "\n".join(f"Turn {place}: {turn.user_input}" for place, turn in enumerate(turns))


class FactReply(BaseModel):
    """The agreement of one statement with the reference, as 1 or 0."""

    is_supported: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FactualAccuracy(Published):
    """Share of the response's statements that the reference supports.

    Formula: Statements with the verdict 1 / verdicts.
    Questions: One Completion for the statements and one for the verdicts.
    Undefined: the user input is blank | the response is blank | the reference is blank
    Use: To compare with numbers of axion.
    Not: To see what the response leaves out: it counts against nothing here.
    See: axion:faithfulness | axion:answer_relevancy
    Source: axion, revision 7ab96dc of 15 August 2026: the metric's module and the analysis engine.

    Failed where either of the two requests fails, and where a verdict is neither 0 nor 1 (the published code adds up
    any whole number).

    Quirks: a response without statements scores 1, statements without any verdict 0; a short list of verdicts shrinks
    the denominator, and a long one swells it; empty statements are not sent. Its threshold is 0.8.
    """

    name: ClassVar[str] = "axion:factual_accuracy"
    version: ClassVar[int] = 2
    needs = frozenset({"user_input", "response", "reference"})
    most = 2

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        if reason := blank(sample, "user_input", "response", "reference"):
            return Undefined(reason)
        asker, user_input, response = Asker(SYSTEM), sample.require("user_input"), sample.require("response")
        values = {"user_input": user_input, "response": response}
        extracted = yield from asker.read(model_template("facts", StatementsReply, {"statements": [response]}), values)
        statements = extracted.value.statements
        if not statements:
            return NOTHING_CLAIMED
        sent = sent_texts(statements)
        values = {"user_input": user_input, "statements": json_array(sent), "reference": sample.require("reference")}
        likely = {"verdicts": [{"statement": text, "is_supported": 1, "reason": ""} for text in sent]}
        found = yield from asker.read(model_template("facts_checked", Verdicts[FactReply], likely), values)
        verdicts = [each.is_supported for each in found.value.verdicts]
        if odd := [number for number in verdicts if number not in {0, 1}]:
            raise found.reply.unreadable(f"The reply gives the verdict {odd[0]}, which is neither 0 nor 1.")
        notes = Notes()
        notes.length(len(verdicts), len(sent), len(statements))
        evidence = on_statements(found.reply.verdict, zip(map(float, verdicts), statements, strict=False))
        counts = {"statements": len(statements), "judged": len(verdicts), "supported": sum(verdicts)}
        return Score(fraction(sum(verdicts), len(verdicts)), evidence, counts, notes.flags)


_NO_REQUIRED: Final = "the reference makes no statement"


class SupportReply(BaseModel):
    """The verdict on one statement."""

    is_supported: bool


class Faith(StrEnum):
    """The degree to which the contexts support a claim."""

    FULLY_SUPPORTED = "Fully Supported"
    PARTIALLY_SUPPORTED = "Partially Supported"
    NO_EVIDENCE = "No Evidence"
    CONTRADICTORY = "Contradictory"


class FaithReply(BaseModel):
    """The support for one claim."""

    verdict: Faith
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextualRecall(AxionMetric):
    """Share of the reference's statements that the retrieved contexts support.

    Formula: Supported statements / statements with a verdict.
    Questions: One Completion for the statements, one for the verdicts; one for each statement where that fails.
    Undefined: the reference is blank | the reference makes no statement
    Not: For new work: take context_recall.
    See: context_recall | axion:contextual_sufficiency | axion:contextual_precision

    Statements are taken from the reference by one request and judged in a second one, against all contexts joined; one
    by one where that fails. Undefined where the reference is blank or makes no statement; Failed where its statements
    cannot be had (the published code has NaN for both), where no verdict came at all, and where the batch fails and
    `allow_fallback` is off.

    Quirks: a statement about which the single call failed is not supported (`failure_scored`); with nothing retrieved
    it asks too. `force_granular` asks statement by statement from the start.
    """

    name: ClassVar[str] = "axion:contextual_recall"
    needs = frozenset({"reference", "retrieved_contexts"})

    def max_questions(self, sample: Sample) -> int:
        return 2 + max_statements(sample.reference) if sample.reference else 0

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        sample.require("retrieved_contexts")
        if reason := blank(sample, "reference"):
            return Undefined(reason)
        asker, reference = Asker(SYSTEM), sample.require("reference")
        extracted = yield from statements_in(asker, reference)
        if isinstance(extracted, AskFailed):
            raise extracted
        statements = extracted.value.statements
        if not statements:
            return Undefined(_NO_REQUIRED)
        strategy = Strategy(self.force_granular, self.allow_fallback, max_statements(reference))
        sent = sent_texts(statements)
        found = yield from read_batch(
            asker,
            "recall_batch",
            model_template("recall", SupportReply, {"is_supported": True}),
            Verdicts[SupportReply],
            item="statement",
            texts=statements,
            sent=sent,
            fixed={"context": joined(sample)},
            strategy=strategy,
        )
        return self._score(statements, extracted, found)

    def _score(
        self,
        statements: Sequence[str],
        extracted: ReadReply[StatementsReply],
        found: Sequence[ReadReply[SupportReply] | AskFailed],
    ) -> Score:
        if not found:
            raise extracted.reply.unreadable(f"None of its {len(statements)} statements got a verdict.")
        notes = Notes(self.failure_scored)
        if isinstance(found[0], ReadReply):
            notes.length(len(found), len(sent_texts(statements)), len(statements))
        evidence: list[Evidence] = []
        for index, each in enumerate(found):
            if isinstance(each, AskFailed):
                notes.lost(each)
            else:
                value = float(each.value.is_supported)
                evidence.append(each.evidence(EvidenceTarget.STATEMENT, index, value, statements[index]))
        supported = sum(bool(piece.value) for piece in evidence)
        counts = {"statements": len(statements), "judged": len(found), "supported": supported}
        return Score(fraction(supported, len(found)), tuple(evidence), counts, notes.flags)


@dataclass(frozen=True, slots=True, kw_only=True)
class Faithfulness(AxionMetric):
    """How far the retrieved contexts carry the response's claims; contradictions count against it.

    Formula: Mean of 1 (fully), 0.5 (partially supported), 0 (no evidence) and -1 (contradictory), cut to [0, 1].
    Questions: One Completion for the claims, one for the verdicts; one for each claim where that fails.
    Undefined: the user input is blank | the response is blank
    Not: For new work: a failed extraction scores 1 here. Take faithfulness.
    See: faithfulness | axion:answer_relevancy | axion:factual_accuracy
    Source: ... | The project's documentation page of the metric differs from the code; the numbers are the code's.

    Weights: Fully Supported 1, Partially Supported 0.5, No Evidence 0 (−1 with `strict_mode`), Contradictory −1.
    Claims are taken from the response by one request and judged in a second one, against all contexts joined; one by
    one where that fails.

    Failed where a claim has no verdict, since the reply was short or its single call failed (the published code breaks
    there), and where the batch fails and `allow_fallback` is off.

    Quirks: no claims score 1, and so do claims that cannot be had (`failure_scored`). Custom weights (`verdict_scores`)
    go before `strict_mode`, which then does nothing, as published. The published code looks for missing fields after it
    has asked, we before.
    """

    name: ClassVar[str] = "axion:faithfulness"
    needs = frozenset({"user_input", "response", "retrieved_contexts"})
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({"failures": "failure_scored"})

    strict_mode: bool = False
    """No Evidence counts as much against the response as Contradictory."""
    verdict_scores: str = ""
    """Custom weights, such as "contradictory=-2, partially_supported=0.75"; a mapping is taken too."""

    def __post_init__(self) -> None:
        AxionMetric.__post_init__(self)
        own = _own_weights(self.verdict_scores, metric=self.name)
        text = ", ".join(f"{verdict.name.lower()}={own[verdict]!r}" for verdict in Faith if verdict in own)
        object.__setattr__(self, "verdict_scores", text)

    def max_questions(self, sample: Sample) -> int:
        return 2 + max_statements(sample.response) if sample.response else 0

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        sample.require("retrieved_contexts")
        if reason := blank(sample, "user_input", "response"):
            return Undefined(reason)
        asker, response = Asker(SYSTEM), sample.require("response")
        notes = Notes(self.failure_scored)
        extracted = yield from statements_in(asker, response)
        if isinstance(extracted, AskFailed):
            notes.lost(extracted)
            return Score(1.0, flags=notes.flags)
        claims = extracted.value.statements
        if not claims:
            return Score(1.0, counts={"claims": 0}, flags=(NO_CLAIM,))
        strategy = Strategy(self.force_granular, self.allow_fallback, max_statements(response))
        sent = sent_texts(claims)
        found = yield from read_batch(
            asker,
            "faithfulness_batch",
            model_template("faithfulness", FaithReply, {"verdict": Faith.FULLY_SUPPORTED.value, "reason": ""}),
            Verdicts[FaithReply],
            item="claim",
            texts=claims,
            sent=sent,
            fixed={"context": joined(sample)},
            strategy=strategy,
        )
        return self._score(claims, _all_judged(claims, extracted, found))

    def _score(self, claims: Sequence[str], read: Sequence[ReadReply[FaithReply]]) -> Score:
        weights = self._weights()
        evidence = tuple(
            each.evidence(EvidenceTarget.STATEMENT, index, weights[each.value.verdict], claims[index])
            for index, each in enumerate(read)
        )
        verdicts = [each.value.verdict for each in read]
        value = clipped_mean([weights[verdict] for verdict in verdicts])
        counts = {"claims": len(verdicts)} | {verdict.name.lower(): verdicts.count(verdict) for verdict in Faith}
        return Score(value, evidence, counts)

    def _weights(self) -> dict[Faith, float]:
        own = _own_weights(self.verdict_scores, metric=self.name)
        strict = {Faith.NO_EVIDENCE: -1.0} if self.strict_mode and not own else {}
        return dict(WEIGHTS) | strict | own


WEIGHTS: Final[Mapping[Faith, float]] = MappingProxyType(
    {Faith.FULLY_SUPPORTED: 1.0, Faith.PARTIALLY_SUPPORTED: 0.5, Faith.NO_EVIDENCE: 0.0, Faith.CONTRADICTORY: -1.0}
)
"""The number that each verdict is worth."""


def _own_weights(given: object, *, metric: str) -> dict[Faith, float]:
    """Read weights by verdict from a mapping, or from a text such as "name=number, name=number". Raises UsageError."""
    pairs: list[tuple[object, object]]
    if isinstance(given, str):
        pairs = [(name, number) for name, _, number in (part.partition("=") for part in given.split(",") if part)]
    else:
        pairs = list((as_mapping(given) or {}).items())
    known = {verdict.name.lower(): verdict for verdict in Faith}
    found: dict[Faith, float] = {}
    for name, number in pairs:
        verdict = known.get(str(name).strip().lower())
        weight = _number(number)
        if verdict is None or weight is None:
            raise UsageError(
                f"Metric {metric!r} takes verdict_scores as {', '.join(known)} with a number each, "
                f"as in contradictory=-2, got {name}={number}."
            )
        found[verdict] = weight
    return found


def _number(given: object) -> float | None:
    try:
        number = float(str(given))
    except ValueError:
        return None
    return number if isfinite(number) else None


def _all_judged(
    claims: Sequence[str], extracted: ReadReply[StatementsReply], found: Sequence[ReadReply[FaithReply] | AskFailed]
) -> list[ReadReply[FaithReply]]:
    """Return the verdicts on all claims. Raises AskFailed if one is missing, which breaks the published scorer."""
    read: list[ReadReply[FaithReply]] = []
    for each in found:
        if isinstance(each, AskFailed):
            raise each
        read.append(each)
    if len(read) < len(claims):
        reply = read[0].reply if read else extracted.reply
        raise reply.unreadable(f"Only {len(read)} of {len(claims)} claims got a verdict.")
    return read


METRICS: Final[tuple[type[Metric], ...]] = (
    ContextualRelevancy,
    ContextualRanking,
    ContextualPrecision,
    ContextualRecall,
    ContextualSufficiency,
    ContextualUtilization,
    Faithfulness,
    AnswerRelevancy,
    FactualAccuracy,
)
