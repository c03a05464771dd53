"""axion's metrics that compare statements with the contexts: recall and faithfulness."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from pydantic import BaseModel

from merilo.errors import UsageError
from merilo.judging.ask import AskFailed
from merilo.judging.json_types import as_mapping
from merilo.metrics.base import Evidence, EvidenceTarget, Score, Undefined
from merilo_published.asking import Asker, ReadReply
from merilo_published.axion.steps import (
    NO_CLAIM,
    SYSTEM,
    AxionMetric,
    Notes,
    StatementsReply,
    Strategy,
    Verdicts,
    blank,
    max_statements,
    model_template,
    read_batch,
    sent_texts,
    statements_in,
)
from merilo_published.definition import clipped_mean, fraction, joined

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan


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
        return dict(_WEIGHTS) | strict | own


_WEIGHTS: Final[Mapping[Faith, float]] = MappingProxyType(
    {Faith.FULLY_SUPPORTED: 1.0, Faith.PARTIALLY_SUPPORTED: 0.5, Faith.NO_EVIDENCE: 0.0, Faith.CONTRADICTORY: -1.0}
)


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
