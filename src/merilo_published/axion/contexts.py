"""axion's metrics of contexts: relevancy, ranking, utilization, precision and sufficiency."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from pydantic import BaseModel

from merilo.judging.ask import AskFailed, both, together
from merilo.metrics.base import Evidence, EvidenceTarget, Score, Undefined
from merilo.metrics.formulas import average_precision
from merilo_published.asking import Asker, ReadReply
from merilo_published.axion.steps import (
    SYSTEM,
    AxionMetric,
    Mode,
    Notes,
    RelevancyMode,
    RelevancyReply,
    Strategy,
    Verdicts,
    blank,
    model_template,
    no_context,
    read_batch,
    relevancy_of,
    sent_texts,
)
from merilo_published.definition import fraction, joined

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.data.sample import Sample, TextField
    from merilo.judging.ask import Plan


_NONE_RELEVANT: Final = "no context is relevant and that was scored 0"


class ModeEffect(StrEnum):
    """The effect of `mode`."""

    RECORDED = "recorded"
    """Nothing: it is written down, as in axion's code."""
    DOCUMENTED = "documented"
    """As its name states: `holistic` judges all contexts together, in one question."""


class UtilizationReply(BaseModel):
    """The verdict on the use of one chunk."""

    is_utilized: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfContexts(AxionMetric):
    """A metric of contexts, of which a failed call is scored."""

    needs = frozenset({"user_input", "retrieved_contexts"})
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({"failures": "failure_scored"})

    def _nothing(self, sample: Sample, *names: TextField) -> Score | Undefined | None:
        """Return the outcome if one of these texts is blank or nothing was retrieved; otherwise None."""
        contexts, reason = sample.contexts, blank(sample, *names)
        if reason is not None:
            return Undefined(reason)
        return None if contexts else no_context()


@dataclass(frozen=True, slots=True, kw_only=True)
class _ChunkMetric(_OfContexts):
    """A metric that judges whether chunks are relevant to the question."""

    relevancy_mode: RelevancyMode = RelevancyMode.TASK

    def _relevant(
        self, asker: Asker, sample: Sample, notes: Notes
    ) -> Plan[tuple[tuple[bool, ...], tuple[Evidence, ...]]]:
        """Return for each judged context whether it is relevant; no context is if the call failed."""
        texts = [context.text for context in sample.contexts]
        sent = sent_texts(texts)
        found = yield from relevancy_of(asker, sample.require("user_input"), sent, self.relevancy_mode)
        if isinstance(found, AskFailed):
            notes.lost(found)
            return (False,) * len(texts), ()
        verdicts = found.value.verdicts[: len(texts)]
        notes.length(len(verdicts), len(sent), len(texts))
        flags = tuple(verdict.verdict == "yes" for verdict in verdicts)
        return flags, tuple(
            found.evidence(EvidenceTarget.CONTEXT, index, float(flag)) for index, flag in enumerate(flags)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextualRelevancy(_ChunkMetric):
    """Share of the retrieved contexts that are relevant to the user input.

    Formula: Contexts with the verdict "yes" / contexts with a verdict.
    Questions: One Completion about all contexts, the same as for axion:contextual_ranking.
    Undefined: the user input is blank
    Not: For new work: a failed call scores 0 here. Take context_relevance(unit=context).
    See: context_relevance | axion:contextual_ranking | axion:contextual_precision
    Source: ... | The project's documentation page of the metric differs from the code; the numbers are the code's.

    Quirks: a failed call scores 0 (`failure_scored`), nothing retrieved scores 0 without a call, "idk" is not relevant
    although it is for statements, and `mode` does nothing (`mode_effect`): with `mode_effect=documented`,
    `mode=holistic` asks one question about all contexts joined, and the score is 1 or 0. `relevancy_mode` says what is
    relevant.
    """

    name: ClassVar[str] = "axion:contextual_relevancy"

    mode_effect: ModeEffect = ModeEffect.RECORDED

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        if (nothing := self._nothing(sample, "user_input")) is not None:
            return nothing
        notes, asker = Notes(self.failure_scored), Asker(SYSTEM)
        if self.mode is Mode.HOLISTIC and self.mode_effect is ModeEffect.DOCUMENTED:
            return (yield from self._together(asker, sample, notes))
        flags, evidence = yield from self._relevant(asker, sample, notes)
        value = fraction(sum(flags), len(flags))
        return Score(value, evidence, _relevant_counts(sample, flags), notes.flags)

    def _together(self, asker: Asker, sample: Sample, notes: Notes) -> Plan[Score | Undefined]:
        values = {"user_input": sample.require("user_input"), "context": joined(sample)}
        likely = {"verdict": "yes", "reason": ""}
        found = yield from asker.try_read(
            model_template(f"relevancy_joined_{self.relevancy_mode}", RelevancyReply, likely), values
        )
        counts = {"contexts": len(sample.contexts), "judged": None, "relevant": None}
        if isinstance(found, AskFailed):
            notes.lost(found)
            return Score(0.0, (), counts, notes.flags)
        value = float(found.value.verdict == "yes")
        return Score(value, (found.evidence(EvidenceTarget.TEXT, 0, value),), counts, notes.flags)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextualRanking(_ChunkMetric):
    """Ranking: contexts relevant to the user input should come before the others (average precision).

    Formula: Mean, over the ranks r of relevant contexts, of (relevant among the first r) / r; 0 when none is.
    Questions: One Completion about all contexts, the same as for axion:contextual_relevancy.
    Undefined: the user input is blank
    Not: For new work: take context_precision.
    See: context_precision | axion:contextual_relevancy | axion:contextual_precision

    It asks the very question of `axion:contextual_relevancy`, so that both together cost one. Quirks: as there,
    without `mode_effect`.
    """

    name: ClassVar[str] = "axion:contextual_ranking"
    ranked: ClassVar[bool] = True

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        if (nothing := self._nothing(sample, "user_input")) is not None:
            return nothing
        notes = Notes(self.failure_scored)
        flags, evidence = yield from self._relevant(Asker(SYSTEM), sample, notes)
        return Score(average_precision(flags), evidence, _relevant_counts(sample, flags), notes.flags)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextualUtilization(_ChunkMetric):
    """Share of the relevant contexts that the response uses.

    Formula: Contexts that are relevant and used / relevant contexts; 0 when none is relevant.
    Questions: One Completion on relevance, one on use; one more for each context where that one fails.
    Undefined: the user input is blank | the response is blank
    Not: For new work: take context_utilization.
    See: context_utilization | axion:contextual_relevancy | axion:faithfulness

    Relevance is the question of `axion:contextual_relevancy`; use is asked in one request, at the same time, and
    context by context where that fails. Undefined where user input or response is blank; Failed where the one request
    about use fails and `allow_fallback` is off. Evidence on use is given for relevant contexts only, after that on
    relevance.

    Quirks: as `axion:contextual_relevancy`; also, no relevant context scores 0, a context about which the call failed
    is not used, and the shorter of the two lists of verdicts is the denominator's. `force_granular` asks about use
    context by context from the start.
    """

    name: ClassVar[str] = "axion:contextual_utilization"
    needs = frozenset({"user_input", "response", "retrieved_contexts"})
    most = 2
    each_context = 1

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        if (nothing := self._nothing(sample, "user_input", "response")) is not None:
            return nothing
        notes, asker = Notes(self.failure_scored), Asker(SYSTEM)
        (relevant, evidence), used = yield from both(
            self._relevant(asker, sample, notes), self._used(asker, sample, notes)
        )
        judged = [
            (index, each) for index, (flag, each) in enumerate(zip(relevant, used, strict=False)) if flag
        ]  # the shorter list decides
        of_use = tuple(
            each.evidence(EvidenceTarget.CONTEXT, index, float(each.value.is_utilized))
            for index, each in judged
            if isinstance(each, ReadReply)
        )
        utilized = sum(bool(piece.value) for piece in of_use)
        counts = {"contexts": len(sample.contexts), "relevant": len(judged), "utilized": utilized}
        if judged:
            return Score(utilized / len(judged), (*evidence, *of_use), counts, notes.flags)
        notes.add(_NONE_RELEVANT)
        return Score(0.0, evidence, counts, notes.flags)

    def _used(
        self, asker: Asker, sample: Sample, notes: Notes
    ) -> Plan[tuple[ReadReply[UtilizationReply] | AskFailed, ...]]:
        texts, response = [context.text for context in sample.contexts], sample.require("response")
        sent = sent_texts(texts)
        found = yield from read_batch(
            asker,
            "utilization_batch",
            model_template("utilization", UtilizationReply, {"is_utilized": True, "reasoning": ""}),
            Verdicts[UtilizationReply],
            item="context",
            texts=texts,
            sent=sent,
            fixed={"response": response},
            strategy=Strategy(self.force_granular, self.allow_fallback, len(texts)),
        )
        for each in found:
            if isinstance(each, AskFailed):
                notes.lost(each)
        if found and isinstance(found[0], ReadReply):
            notes.length(len(found), len(sent), len(texts))
        return found


def _relevant_counts(sample: Sample, flags: tuple[bool, ...]) -> dict[str, int | None]:
    return {"contexts": len(sample.contexts), "judged": len(flags), "relevant": sum(flags)}


class UsefulnessReply(BaseModel):
    """The verdict on the use of one chunk."""

    is_useful: bool


class SufficiencyReply(BaseModel):
    """The verdict on all contexts."""

    is_sufficient: bool
    reasoning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextualPrecision(_OfContexts):
    """Ranking: contexts useful for the reference should come before the others (average precision).

    Formula: Mean, over the ranks r of useful contexts, of (useful among the first r) / r; 0 when none is.
    Questions: One Completion for each context.
    Undefined: the user input is blank | the reference is blank
    Not: For new work: take context_precision(against=reference).
    See: context_precision | axion:contextual_ranking | axion:contextual_recall

    In full: as `axion:contextual_ranking`, over "useful for the expected output", asked context by context. Quirks: a
    context about which the call failed is not useful (`failure_scored`), nothing retrieved scores 0.
    The user input is required and not used.
    """

    name: ClassVar[str] = "axion:contextual_precision"
    ranked: ClassVar[bool] = True
    needs = frozenset({"user_input", "reference", "retrieved_contexts"})
    most = 0
    each_context = 1

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        if (nothing := self._nothing(sample, "user_input", "reference")) is not None:
            return nothing
        contexts, notes, asker = sample.contexts, Notes(self.failure_scored), Asker(SYSTEM)
        reference = sample.require("reference")
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
class ContextualSufficiency(_OfContexts):
    """Tests that the retrieved contexts together are enough to answer the user input.

    Formula: 1 for yes, 0 for no.
    Questions: One Completion about all contexts joined.
    Undefined: the user input is blank
    Not: For new work: context_sufficiency tells partly enough from nothing, and failed from not enough.
    See: context_sufficiency | axion:contextual_recall

    In full: 1 for yes, 0 for no, from one request about all contexts joined. Quirks: a failed call scores 0
    (`failure_scored`), as does nothing retrieved.
    """

    name: ClassVar[str] = "axion:contextual_sufficiency"
    needs = frozenset({"user_input", "retrieved_contexts"})

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        if (nothing := self._nothing(sample, "user_input")) is not None:
            return nothing
        values = {"user_input": sample.require("user_input"), "context": joined(sample)}
        likely = {"is_sufficient": True, "reasoning": ""}
        found = yield from Asker(SYSTEM).try_read(model_template("sufficiency", SufficiencyReply, likely), values)
        notes, counts = Notes(self.failure_scored), {"contexts": len(sample.contexts)}
        if isinstance(found, AskFailed):
            notes.lost(found)
            return Score(0.0, (), counts, notes.flags)
        value = float(found.value.is_sufficient)
        return Score(value, (found.evidence(EvidenceTarget.TEXT, 0, value),), counts, notes.flags)
