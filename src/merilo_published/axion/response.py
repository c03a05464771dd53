"""axion's metrics of statements, and the list of all its metrics."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import inf, isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from pydantic import BaseModel

from merilo.errors import UsageError
from merilo.judging.json_types import as_list, as_mapping, as_object
from merilo.metrics.base import Evidence, EvidenceTarget, Score, Undefined
from merilo_published.asking import json_array, on_statements
from merilo_published.axion.contexts import (
    FAILURES,
    NO_CLAIM,
    NOTHING_CLAIMED,
    AxionMetric,
    ContextualPrecision,
    ContextualRanking,
    ContextualRelevancy,
    ContextualSufficiency,
    ContextualUtilization,
    Judging,
    NeedsTexts,
    RelevancyMode,
    RelevancyReply,
    StatementsReply,
    Verdicts,
    max_statements,
    model_template,
    relevancy_of,
    statements_of,
)
from merilo_published.definition import clipped_mean, fraction, joined

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.data.sample import Sample, TextField
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

    Quirks: "idk" counts as relevant (not with `penalize_ambiguity`); no statements score 1, and so does a failed call.
    `relevancy_mode` says what is relevant.

    `multi_turn_strategy=all_turns` looks at the metadata's `conversation`: a list of objects with `role` (user or
    assistant) and `content`, or an object that holds it as `messages`. The statements of all turns are counted
    together, and there a statement without a verdict stays in the denominator; a turn whose statements cannot be had
    is passed over. Without a conversation it is as `last_turn`.
    """

    name: ClassVar[str] = "axion:answer_relevancy"
    needs = frozenset({"user_input", "response"})
    texts: ClassVar[tuple[TextField, ...]] = ("user_input", "response")
    breaks: ClassVar[Mapping[str, str]] = FAILURES

    relevancy_mode: RelevancyMode = RelevancyMode.TASK
    penalize_ambiguity: bool = False
    multi_turn_strategy: MultiTurn = MultiTurn.LAST_TURN

    def max_questions(self, sample: Sample) -> int:
        if not sample.response:
            return 0
        return 1 + 2 * max(1, len(_turns(sample) or ()))

    def judged(self, sample: Sample, judging: Judging) -> Plan[Score | Undefined]:
        turns = _turns(sample) if self.multi_turn_strategy is MultiTurn.ALL_TURNS else None
        whole = turns is not None
        if turns is None:
            turns = ((sample.require("user_input"), sample.require("response")),)
        elif not turns:
            return Undefined(_NO_TURN)
        statements, verdicts, evidence = 0, list[RelevancyReply](), list[Evidence]()
        for user_input, response in turns:
            extracted = yield from judging.read(statements_of(response), {"text": response})
            texts = extracted.value.statements if extracted is not None else []
            if not texts:
                continue
            found = yield from relevancy_of(judging, user_input, texts, self.relevancy_mode)
            if found is not None:
                verdicts += found.value.verdicts
                evidence += [
                    found.evidence(EvidenceTarget.STATEMENT, statements + at, float(self._counts(reply)), texts[at])
                    for at, reply in enumerate(found.value.verdicts)
                ]
            statements += len(texts)
        if not statements:
            return Score(1.0, flags=tuple(judging.flags)) if judging.flags else NOTHING_CLAIMED
        total = statements if whole else len(verdicts)
        relevant = sum(map(self._counts, verdicts))
        value = fraction(relevant, total, of_nothing=1.0)
        asked = [f"Turn {place}: {user_input}" if whole else user_input for place, (user_input, _) in enumerate(turns)]
        reasons = [f"Relevancy: {reply.reason}" for reply in verdicts if reply.verdict == "no" and reply.reason]
        values = {"user_input": "\n".join(asked), "reasons": json_array(reasons), "score": repr(value)}
        explanation = yield from judging.asker.read(_EXPLANATION, values)
        evidence.append(explanation.evidence(EvidenceTarget.TEXT, 0))
        return judging.score(value, evidence, {"statements": statements, "counted": total, "relevant": relevant})

    def _counts(self, reply: RelevancyReply) -> bool:
        return reply.verdict == "yes" or (reply.verdict == "idk" and not self.penalize_ambiguity)


def _turns(sample: Sample) -> tuple[tuple[str, str], ...] | None:
    """Return the questions with the answers that follow them, in order; None if the sample has no conversation."""
    given: object = sample.metadata.get("conversation")
    holder = as_object(given)
    messages = as_list(given if holder is None else holder.get("messages"))
    if messages is None:
        return None
    turns: list[tuple[str, str]] = []
    asked: str | None = None
    for message in messages:
        fields = as_object(message) or {}
        role, content = fields.get("role"), fields.get("content")
        if not isinstance(content, str):
            continue
        if role in _ASKED:
            asked = content
        elif role in _ANSWERED and content and asked is not None:
            turns.append((asked, content))
            asked = None
    return tuple(turns)


class FactReply(BaseModel):
    """The agreement of one statement with the reference, as 1 or 0."""

    is_supported: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FactualAccuracy(NeedsTexts):
    """Share of the response's statements that the reference supports.

    Formula: Statements with the verdict 1 / verdicts.
    Questions: One Completion for the statements and one for the verdicts.
    Undefined: the user input is blank | the response is blank | the reference is blank
    Not: To see what the response leaves out: it counts against nothing here.
    See: axion:faithfulness | axion:answer_relevancy

    Failed where either of the two requests fails, and where a verdict is neither 0 nor 1 (the published code adds up
    any whole number).

    Quirks: a response without statements scores 1, statements without any verdict 0; a short list of verdicts shrinks
    the denominator, and a long one swells it; empty statements are not sent. Its threshold is 0.8.
    """

    name: ClassVar[str] = "axion:factual_accuracy"
    needs = frozenset({"user_input", "response", "reference"})
    texts: ClassVar[tuple[TextField, ...]] = ("user_input", "response", "reference")
    most = 2

    def judged(self, sample: Sample, judging: Judging) -> Plan[Score | Undefined]:
        asker, user_input, response = judging.asker, sample.require("user_input"), sample.require("response")
        values = {"user_input": user_input, "response": response}
        extracted = yield from asker.read(model_template("facts", StatementsReply, {"statements": [response]}), values)
        statements = extracted.value.statements
        if not statements:
            return NOTHING_CLAIMED
        sent = [text for text in statements if text]
        values = {"user_input": user_input, "statements": json_array(sent), "reference": sample.require("reference")}
        likely = {"verdicts": [{"statement": text, "is_supported": 1, "reason": ""} for text in sent]}
        found = yield from asker.read(model_template("facts_checked", Verdicts[FactReply], likely), values)
        verdicts = [each.is_supported for each in found.value.verdicts]
        if odd := [number for number in verdicts if number not in {0, 1}]:
            raise found.reply.unreadable(f"The reply gives the verdict {odd[0]}, which is neither 0 nor 1.")
        judging.note_length(len(verdicts), len(sent), len(statements))
        evidence = on_statements(found.reply.verdict, zip(map(float, verdicts), statements, strict=False))
        counts = {"statements": len(statements), "judged": len(verdicts), "supported": sum(verdicts)}
        return judging.score(fraction(sum(verdicts), len(verdicts)), evidence, counts)


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

    Quirks: a statement about which the single call failed is not supported; with nothing retrieved
    it asks too. `force_granular` asks statement by statement from the start.
    """

    name: ClassVar[str] = "axion:contextual_recall"
    needs = frozenset({"reference", "retrieved_contexts"})
    texts: ClassVar[tuple[TextField, ...]] = ("reference",)

    def max_questions(self, sample: Sample) -> int:
        return 2 + max_statements(sample.reference) if sample.reference else 0

    def judged(self, sample: Sample, judging: Judging) -> Plan[Score | Undefined]:
        reference = sample.require("reference")
        extracted = yield from judging.asker.read(statements_of(reference), {"text": reference})
        statements = extracted.value.statements
        if not statements:
            return Undefined(_NO_REQUIRED)
        found = yield from self.batch(
            judging,
            model_template("recall", SupportReply, {"is_supported": True}),
            Verdicts[SupportReply],
            item="statement",
            texts=statements,
            fixed={"context": joined(sample)},
            most=max_statements(reference),
        )
        if not found:
            raise extracted.reply.unreadable(f"None of its {len(statements)} statements got a verdict.")
        evidence = [
            each.evidence(EvidenceTarget.STATEMENT, index, float(each.value.is_supported), statements[index])
            for index, each in enumerate(found)
            if each is not None
        ]
        supported = sum(bool(piece.value) for piece in evidence)
        counts = {"statements": len(statements), "judged": len(found), "supported": supported}
        return judging.score(fraction(supported, len(found)), evidence, counts)


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

    Quirks: no claims score 1, and so do claims that cannot be had. Custom weights (`verdict_scores`)
    go before `strict_mode`, which then does nothing, as published. The published code looks for missing fields after it
    has asked, we before.
    """

    name: ClassVar[str] = "axion:faithfulness"
    needs = frozenset({"user_input", "response", "retrieved_contexts"})
    texts: ClassVar[tuple[TextField, ...]] = ("user_input", "response")
    breaks: ClassVar[Mapping[str, str]] = FAILURES

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

    def judged(self, sample: Sample, judging: Judging) -> Plan[Score | Undefined]:
        response = sample.require("response")
        extracted = yield from judging.read(statements_of(response), {"text": response})
        if extracted is None:
            return Score(1.0, flags=tuple(judging.flags))
        claims = extracted.value.statements
        if not claims:
            return Score(1.0, counts={"claims": 0}, flags=(NO_CLAIM,))
        found = yield from self.batch(
            Judging(failure_scored=False, asker=judging.asker),  # the published scorer breaks at a missing verdict
            model_template("faithfulness", FaithReply, {"verdict": Faith.FULLY_SUPPORTED.value, "reason": ""}),
            Verdicts[FaithReply],
            item="claim",
            texts=claims,
            fixed={"context": joined(sample)},
            most=max_statements(response),
        )
        read = [each for each in found if each is not None]
        if len(read) < len(claims):
            reply = read[0].reply if read else extracted.reply
            raise reply.unreadable(f"Only {len(read)} of {len(claims)} claims got a verdict.")
        own = _own_weights(self.verdict_scores, metric=self.name)
        strict = {Faith.NO_EVIDENCE: -1.0} if self.strict_mode and not own else {}
        weights, verdicts = dict(WEIGHTS) | strict | own, [each.value.verdict for each in read]
        evidence = tuple(
            each.evidence(EvidenceTarget.STATEMENT, index, weights[each.value.verdict], claims[index])
            for index, each in enumerate(read)
        )
        counts = {"claims": len(verdicts)} | {verdict.name.lower(): verdicts.count(verdict) for verdict in Faith}
        return Score(clipped_mean([weights[verdict] for verdict in verdicts]), evidence, counts)


WEIGHTS: Final[Mapping[Faith, float]] = MappingProxyType(
    {Faith.FULLY_SUPPORTED: 1.0, Faith.PARTIALLY_SUPPORTED: 0.5, Faith.NO_EVIDENCE: 0.0, Faith.CONTRADICTORY: -1.0}
)
"""The number that each verdict is worth."""


def _own_weights(given: object, *, metric: str) -> dict[Faith, float]:
    """Read weights by verdict from a mapping, or from a text such as "name=number, name=number". Raises UsageError."""
    pairs = as_mapping(given) or {}
    if isinstance(given, str):
        pairs = {name: number for name, _, number in (part.partition("=") for part in given.split(",") if part)}
    known = {verdict.name.lower(): verdict for verdict in Faith}
    found: dict[Faith, float] = {}
    for name, number in pairs.items():
        verdict = known.get(str(name).strip().lower())
        try:
            weight = float(str(number))
        except ValueError:
            weight = inf
        if verdict is None or not isfinite(weight):
            raise UsageError(
                f"Metric {metric!r} takes verdict_scores as {', '.join(known)} with a number each, "
                f"as in contradictory=-2, got {name}={number}."
            )
        found[verdict] = weight
    return found


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
