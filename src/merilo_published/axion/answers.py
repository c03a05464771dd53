"""axion's answer relevancy, for one turn or all, and its factual accuracy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from pydantic import BaseModel

from merilo.judging.ask import AskFailed
from merilo.judging.json_types import as_list, as_object
from merilo.metrics.base import Evidence, EvidenceTarget, Score, Undefined
from merilo_published.asking import Asker, on_statements
from merilo_published.axion.steps import (
    NOTHING_CLAIMED,
    SYSTEM,
    AxionMetric,
    Notes,
    RelevancyMode,
    RelevancyReply,
    StatementsReply,
    Verdicts,
    blank,
    model_template,
    relevancy_of,
    sent_texts,
    statements_in,
)
from merilo_published.definition import Published, fraction
from merilo_published.replies import json_array

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan


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

    def max_questions(self, sample: Sample) -> int:
        return 2 if sample.response and sample.reference else 0

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
