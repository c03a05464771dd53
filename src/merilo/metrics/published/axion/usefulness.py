"""axion's metrics of chunks as help towards an answer: precision against the reference, and sufficiency."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from pydantic import BaseModel

from merilo.judging.ask import AskFailed, together
from merilo.metrics.base import Evidence, EvidenceTarget, Score, Undefined
from merilo.metrics.formulas import average_precision
from merilo.metrics.published.asking import Asker, ReadReply
from merilo.metrics.published.axion.steps import (
    SYSTEM,
    AxionMetric,
    Mode,
    Notes,
    blank,
    model_template,
    no_context,
)
from merilo.metrics.published.definition import joined

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan

__all__ = ["ContextualPrecision", "ContextualSufficiency", "Mode"]

_FAILURES: Final = MappingProxyType({"failures": "failure_scored"})


class UsefulnessReply(BaseModel):
    """The verdict on the use of one chunk."""

    is_useful: bool


class SufficiencyReply(BaseModel):
    """The verdict on all contexts."""

    is_sufficient: bool
    reasoning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextualPrecision(AxionMetric):
    """Ranking: contexts useful for the reference should come before the others (average precision).

    Formula: Mean, over the ranks r of useful contexts, of (useful among the first r) / r; 0 when none is.
    Questions: One Completion for each context.
    Undefined: the user input is blank | the reference is blank | nothing was retrieved (empty_scored=false)
    Not: For new work: take context_precision(against=reference).
    See: context_precision | axion:contextual_ranking | axion:contextual_recall
    Source: axion, revision 7ab96dc of 15 August 2026: the metric's module and the analysis engine.

    In full: as `axion:contextual_ranking`, over "useful for the expected output", asked context by context. Quirks: a
    context about which the call failed is not useful (`failure_scored`), nothing retrieved scores 0 (`empty_scored`).
    The user input is required and not used.
    """

    name: ClassVar[str] = "axion:contextual_precision"
    ranked: ClassVar[bool] = True
    needs = frozenset({"user_input", "reference", "retrieved_contexts"})
    breaks: ClassVar[Mapping[str, str]] = _FAILURES

    empty_scored: bool = True
    """Nothing retrieved is scored 0, with a flag, as published; False: Undefined."""

    def max_questions(self, sample: Sample) -> int:
        return len(sample.retrieved_contexts or ())

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        contexts, reason = sample.contexts, blank(sample, "user_input", "reference")
        if reason is not None:
            return Undefined(reason)
        if not contexts:
            return no_context(empty_scored=self.empty_scored)
        notes, asker, reference = Notes(failure_scored=self.failure_scored), Asker(SYSTEM), sample.require("reference")
        template = model_template("usefulness", UsefulnessReply, {"is_useful": True})
        asked = [{"context": context.text, "reference": reference} for context in contexts]
        found = yield from together([asker.try_read(template, values) for values in asked])
        flags: list[bool] = []
        evidence: list[Evidence] = []
        for index, each in enumerate(found):
            if isinstance(each, AskFailed):
                notes.lost(each)
            else:
                evidence.append(each.evidence(EvidenceTarget.CONTEXT, index, float(each.value.is_useful)))
            flags.append(isinstance(each, ReadReply) and each.value.is_useful)
        counts = {"contexts": len(flags), "useful": sum(flags)}
        return Score(average_precision(flags), tuple(evidence), counts, notes.flags)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextualSufficiency(AxionMetric):
    """Tests that the retrieved contexts together are enough to answer the user input.

    Formula: 1 for yes, 0 for no.
    Questions: One Completion about all contexts joined.
    Undefined: the user input is blank | nothing was retrieved (empty_scored=false)
    Not: For new work: context_sufficiency tells partly enough from nothing, and failed from not enough.
    See: context_sufficiency | axion:contextual_recall
    Source: axion, revision 7ab96dc of 15 August 2026: the metric's module and the analysis engine.

    In full: 1 for yes, 0 for no, from one request about all contexts joined. Quirks: a failed call scores 0
    (`failure_scored`), as does nothing retrieved (`empty_scored`).
    """

    name: ClassVar[str] = "axion:contextual_sufficiency"
    needs = frozenset({"user_input", "retrieved_contexts"})
    breaks: ClassVar[Mapping[str, str]] = _FAILURES

    empty_scored: bool = True
    """Nothing retrieved is scored 0, with a flag, as published; False: Undefined."""

    def max_questions(self, sample: Sample) -> int:
        return 1 if sample.user_input and sample.retrieved_contexts else 0

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        contexts, reason = sample.contexts, blank(sample, "user_input")
        if reason is not None:
            return Undefined(reason)
        if not contexts:
            return no_context(empty_scored=self.empty_scored)
        values = {"user_input": sample.require("user_input"), "context": joined(sample)}
        likely = {"is_sufficient": True, "reasoning": ""}
        found = yield from Asker(SYSTEM).try_read(model_template("sufficiency", SufficiencyReply, likely), values)
        notes, counts = Notes(failure_scored=self.failure_scored), {"contexts": len(contexts)}
        if isinstance(found, AskFailed):
            notes.lost(found)
            return Score(0.0, (), counts, notes.flags)
        value = float(found.value.is_sufficient)
        return Score(value, (found.evidence(EvidenceTarget.TEXT, 0, value),), counts, notes.flags)
