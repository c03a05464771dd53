"""The metrics of axion, of contexts and of statements.

A list of items is judged in one request, or each item separately if that fails; replies are read as JSON.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf, isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final, Generic, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from merilo.errors import UsageError
from merilo.judging.ask import AskFailed, Plan, both, together
from merilo.judging.json_types import as_list, as_mapping, as_object
from merilo.judging.verdicts import Failure, FailureKind
from merilo.metrics.base import Evidence, EvidenceTarget, Metric, Score, Undefined
from merilo.metrics.formulas import average_precision
from merilo_published.asking import (
    Asker,
    ReadReply,
    Reply,
    ReplyFault,
    RequestTemplate,
    json_array,
    object_in,
    on_statements,
)
from merilo_published.definition import Published, clipped_mean, fraction, joined

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from merilo.data.sample import Sample, TextField

R = TypeVar("R", bound=BaseModel)

LOST: Final = "a judge call failed and was scored all the same"
SHORT: Final = "the judge gave fewer verdicts than it was asked for; the rest left the denominator"
LEFT_OUT: Final = "empty texts were not sent, and the verdicts count for the first texts"
NOTHING_RETRIEVED: Final = Score(0.0, counts={"contexts": 0}, flags=("nothing was retrieved and that was scored 0",))
NO_CLAIM: Final = "the response makes no statement and that was scored 1"
FAILURES: Final[Mapping[str, str]] = MappingProxyType({"failures": "a judge call that fails is scored"})
NOTHING_CLAIMED: Final = Score(1.0, counts={"statements": 0}, flags=(NO_CLAIM,))


class Mode(StrEnum):
    """The evaluation mode that axion records."""

    GRANULAR = "granular"
    HOLISTIC = "holistic"


class RelevancyMode(StrEnum):
    """The rule for what is relevant to a question."""

    TASK = "task"
    """A text that answers it, or is closely related and needed for its task."""
    STRICT = "strict"
    """Only what answers it directly."""


@dataclass(slots=True)
class Judging:
    """The requests about one sample and the flags of its score; one for each plan."""

    failure_scored: bool = True
    """False for axion's faithfulness, whose scorer breaks at a missing verdict."""
    asker: Asker = field(default_factory=lambda: Asker("axion"))
    flags: dict[str, None] = field(default_factory=dict[str, None])
    """Problems that were scored anyway, each once, in order of appearance."""

    def read(self, template: RequestTemplate[R], values: Mapping[str, str]) -> Plan[ReadReply[R] | None]:
        """Return a reply, None for a failed call that is scored. Raises AskFailed for one that is not."""
        found = yield from self.asker.try_read(template, values)
        if isinstance(found, ReadReply):
            return found
        if not self.failure_scored:
            raise found
        self.flags[LOST] = None
        return None

    def note_length(self, got: int, wanted: int, texts: int) -> None:
        """Flag a list of verdicts that is too short. `wanted`: one verdict for each of `texts` that was sent."""
        if wanted < texts:
            self.flags[LEFT_OUT] = None
        if got < wanted:
            self.flags[SHORT] = None

    def score(self, value: float, evidence: Iterable[Evidence], counts: Mapping[str, int | None]) -> Score:
        """Return a score with the flags."""
        return Score(value, tuple(evidence), counts, tuple(self.flags))


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedsTexts(Published):
    """A metric of axion, which takes a blank text for a missing one.

    Use: To compare with numbers of axion.
    Source: axion, revision 7ab96dc of 15 August 2026: the metric's module and the analysis engine.
    """

    version: ClassVar[int] = 2
    texts: ClassVar[tuple[TextField, ...]]
    """The texts that must not be blank."""
    scores_nothing: ClassVar[bool] = False
    """True if nothing retrieved scores 0 without a question."""

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        contexts = sample.contexts if "retrieved_contexts" in self.needed else None
        for name, text in [(name, sample.require(name)) for name in self.texts]:
            if not text.strip():
                return Undefined(f"the {name.replace('_', ' ')} is blank")
        if self.scores_nothing and not contexts:
            return NOTHING_RETRIEVED
        return (yield from self.judged(sample, Judging()))

    def judged(self, sample: Sample, judging: Judging) -> Plan[Score | Undefined]:
        """Return the outcome of a sample whose texts are not blank."""
        raise NotImplementedError  # each metric has its own


@dataclass(frozen=True, slots=True, kw_only=True)
class AxionMetric(NeedsTexts):
    """A metric built on axion's analysis engine.

    axion's serialiser leaves empty texts (not blank ones) out of a list that it sends, so fewer verdicts come than
    there are texts, and they count for the first texts. Items without a verdict leave the denominator.

    `mode` is recorded in the metric's text and moves no number, as in axion's code. `force_granular` and
    `allow_fallback` are options of the engine that every metric takes; they matter to recall, utilization and
    faithfulness, which alone can be judged in a batch or item by item.
    """

    mode: Mode = Mode.GRANULAR
    force_granular: bool = False
    """Ask item by item from the start."""
    allow_fallback: bool = True
    """Ask item by item where the batch fails; False: the outcome is Failed then."""

    def batch(
        self,
        judging: Judging,
        template: RequestTemplate[R],
        whole: type[Verdicts[R]],
        *,
        item: str,
        texts: Sequence[str],
        fixed: Mapping[str, str],
        most: int,
    ) -> Plan[list[ReadReply[R] | None]]:
        """Return the reply on each text, None for a failed call; fewer if the batch reply was short, never more.

        `template`: the request about one text, under the name `item`; `whole`: the reply to the batch, which shows the
        texts that are not empty. `fixed`: the values of every request. `most`: the maximum number of single requests.
        Raises AskFailed when the batch fails and there is no fallback, or when there are too many texts.
        """
        sent = [text for text in texts if text]
        if not self.force_granular:
            likely = {"verdicts": [json.loads(template.likely) for _ in sent]}
            request = model_template(f"{template.rubric}_batch", whole, likely)
            found = yield from judging.asker.try_read(request, {f"{item}s": json_array(sent), **fixed})
            if isinstance(found, ReadReply):
                verdicts = found.value.verdicts[: len(texts)]
                if verdicts:
                    judging.note_length(len(verdicts), len(sent), len(texts))
                return [ReadReply(found.reply, value) for value in verdicts]
            if not self.allow_fallback:
                raise found
        if len(texts) > most:
            question = judging.asker.question(template.rubric, {item: texts[0], **fixed}, likely="{}")
            message = f"{len(texts)} statements were named of a text that can make at most {most}."
            raise AskFailed(question, Failure(FailureKind.UNREADABLE, message))
        read = yield from together([judging.read(template, {item: text, **fixed}) for text in texts])
        if read[0] is not None:
            judging.note_length(len(read), len(sent), len(texts))
        return list(read)


def max_statements(text: str | None) -> int:
    """Return the maximum number of statements of a text to ask about one by one: generous, but bounded."""
    return 0 if text is None else 8 + len(text) // 4


# -- replies ------------------------------------------------------------------------------------------


class StatementsReply(BaseModel):
    """The statements of a text."""

    statements: list[str]


class RelevancyReply(BaseModel):
    """The verdict on the relevance of one text."""

    verdict: Literal["yes", "no", "idk"]
    reason: str = ""


class Verdicts(BaseModel, Generic[R]):
    """A verdict for each item of a list."""

    verdicts: list[R]


def model_template(rubric: str, model: type[R], likely: object) -> RequestTemplate[R]:
    """Return a request for JSON that this model accepts. `likely`: a reply of the likely form, not yet as JSON."""

    def read(reply: Reply) -> R:
        try:
            return model.model_validate(object_in(reply.text))
        except ValidationError as error:
            raise ReplyFault(f"The reply has not the form asked for ({_first_fault(error)}).") from None

    return RequestTemplate(rubric, json.dumps(likely, ensure_ascii=False), read)


def _first_fault(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def statements_of(text: str) -> RequestTemplate[StatementsReply]:
    """Return the request for the statements that a text makes."""
    return model_template("statements", StatementsReply, {"statements": [text]})


def relevancy_of(
    judging: Judging, user_input: str, texts: Sequence[str], mode: RelevancyMode
) -> Plan[ReadReply[Verdicts[RelevancyReply]] | None]:
    """Return verdicts on texts from one request, which is the same for contexts and statements and all metrics.

    axion sends the texts that are not empty, and the verdicts count for the first texts. None for a failed call.
    """
    sent = [text for text in texts if text]
    likely = {"verdicts": [{"verdict": "yes", "reason": ""} for _ in sent]}
    template = model_template(f"relevancy_{mode}", Verdicts[RelevancyReply], likely)
    found = yield from judging.read(template, {"user_input": user_input, "texts": json_array(sent)})
    if found is None:
        return None
    verdicts = found.value.verdicts[: len(texts)]
    judging.note_length(len(verdicts), len(sent), len(texts))
    return ReadReply(found.reply, Verdicts(verdicts=verdicts))


class UtilizationReply(BaseModel):
    """The verdict on the use of one chunk."""

    is_utilized: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfContexts(AxionMetric):
    """A metric of contexts, of which a failed call is scored."""

    needs = frozenset({"user_input", "retrieved_contexts"})
    breaks: ClassVar[Mapping[str, str]] = FAILURES

    texts: ClassVar[tuple[TextField, ...]] = ("user_input",)
    scores_nothing: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class _ChunkMetric(_OfContexts):
    """A metric that judges whether chunks are relevant to the question."""

    relevancy_mode: RelevancyMode = RelevancyMode.TASK

    def _relevant(self, judging: Judging, sample: Sample) -> Plan[tuple[tuple[bool, ...], tuple[Evidence, ...]]]:
        """Return for each judged context whether it is relevant; no context is if the call failed."""
        texts = [context.text for context in sample.contexts]
        found = yield from relevancy_of(judging, sample.require("user_input"), texts, self.relevancy_mode)
        if found is None:
            return (False,) * len(texts), ()
        flags = tuple(verdict.verdict == "yes" for verdict in found.value.verdicts)
        return flags, tuple(found.evidence(EvidenceTarget.CONTEXT, at, float(flag)) for at, flag in enumerate(flags))


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextualRelevancy(_ChunkMetric):
    """Share of the retrieved contexts that are relevant to the user input.

    Formula: Contexts with the verdict "yes" / contexts with a verdict.
    Questions: One Completion about all contexts, the same as for axion:contextual_ranking.
    Undefined: the user input is blank
    Not: For new work: a failed call scores 0 here. Take context_relevance(unit=context).
    See: context_relevance | axion:contextual_ranking | axion:contextual_precision
    Source: ... | The project's documentation page of the metric differs from the code; the numbers are the code's.

    Quirks: a failed call scores 0, nothing retrieved scores 0 without a call, "idk" is not relevant although it is for
    statements, and `mode` does nothing. `relevancy_mode` says what is relevant.
    """

    name: ClassVar[str] = "axion:contextual_relevancy"

    def judged(self, sample: Sample, judging: Judging) -> Plan[Score | Undefined]:
        flags, evidence = yield from self._relevant(judging, sample)
        return judging.score(fraction(sum(flags), len(flags)), evidence, _relevant_counts(sample, flags))


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextualRanking(_ChunkMetric):
    """Ranking: contexts relevant to the user input should come before the others (average precision).

    Formula: Mean, over the ranks r of relevant contexts, of (relevant among the first r) / r; 0 when none is.
    Questions: One Completion about all contexts, the same as for axion:contextual_relevancy.
    Undefined: the user input is blank
    Not: For new work: take context_precision.
    See: context_precision | axion:contextual_relevancy | axion:contextual_precision

    It asks the very question of `axion:contextual_relevancy`, so that both together cost one. Quirks: as there.
    """

    name: ClassVar[str] = "axion:contextual_ranking"
    ranked: ClassVar[bool] = True

    def judged(self, sample: Sample, judging: Judging) -> Plan[Score | Undefined]:
        flags, evidence = yield from self._relevant(judging, sample)
        return judging.score(average_precision(flags), evidence, _relevant_counts(sample, flags))


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextualUtilization(_ChunkMetric):
    """Share of the relevant contexts that the response uses.

    Formula: Contexts that are relevant and used / relevant contexts; 0 when none is relevant.
    Questions: One Completion on relevance, one on use; one more for each context where that one fails.
    Undefined: the user input is blank | the response is blank
    Not: For new work: take context_utilization.
    See: context_utilization | axion:contextual_relevancy | axion:faithfulness

    Failed where the one request about use fails and `allow_fallback` is off. Evidence on use is given for relevant
    contexts only, after that on relevance.

    Quirks: as `axion:contextual_relevancy`; also, no relevant context scores 0, a context about which the call failed
    is not used, and the shorter of the two lists of verdicts is the denominator's. `force_granular` asks about use
    context by context from the start.
    """

    name: ClassVar[str] = "axion:contextual_utilization"
    needs = frozenset({"user_input", "response", "retrieved_contexts"})
    texts: ClassVar[tuple[TextField, ...]] = ("user_input", "response")

    def judged(self, sample: Sample, judging: Judging) -> Plan[Score | Undefined]:
        (relevant, evidence), used = yield from both(
            self._relevant(judging, sample),
            self.batch(
                judging,
                model_template("utilization", UtilizationReply, {"is_utilized": True, "reasoning": ""}),
                Verdicts[UtilizationReply],
                item="context",
                texts=[context.text for context in sample.contexts],
                fixed={"response": sample.require("response")},
                most=len(sample.contexts),
            ),
        )
        pairs = enumerate(zip(relevant, used, strict=False))  # the shorter list decides
        judged = [(index, reply) for index, (flag, reply) in pairs if flag]
        of_use = [
            each.evidence(EvidenceTarget.CONTEXT, index, float(each.value.is_utilized))
            for index, each in judged
            if each is not None
        ]
        utilized = sum(bool(piece.value) for piece in of_use)
        counts = {"contexts": len(sample.contexts), "relevant": len(judged), "utilized": utilized}
        if not judged:
            judging.flags["no context is relevant and that was scored 0"] = None
        return judging.score(fraction(utilized, len(judged)), (*evidence, *of_use), counts)


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

    Quirks: a context about which the call failed is not useful, nothing retrieved scores 0. The user input is required
    and not used.
    """

    name: ClassVar[str] = "axion:contextual_precision"
    ranked: ClassVar[bool] = True
    needs = frozenset({"user_input", "reference", "retrieved_contexts"})
    texts: ClassVar[tuple[TextField, ...]] = ("user_input", "reference")

    def judged(self, sample: Sample, judging: Judging) -> Plan[Score | Undefined]:
        template = model_template("usefulness", UsefulnessReply, {"is_useful": True})
        asked = [{"context": context.text, "reference": sample.require("reference")} for context in sample.contexts]
        found = yield from together([judging.read(template, values) for values in asked])
        flags = [each is not None and each.value.is_useful for each in found]
        evidence = [
            each.evidence(EvidenceTarget.CONTEXT, index, float(each.value.is_useful))
            for index, each in enumerate(found)
            if each is not None
        ]
        return judging.score(average_precision(flags), evidence, {"contexts": len(flags), "useful": sum(flags)})


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextualSufficiency(_OfContexts):
    """Tests that the retrieved contexts together are enough to answer the user input.

    Formula: 1 for yes, 0 for no.
    Questions: One Completion about all contexts joined.
    Undefined: the user input is blank
    Not: For new work: context_sufficiency tells partly enough from nothing, and failed from not enough.
    See: context_sufficiency | axion:contextual_recall

    Quirks: a failed call scores 0, as does nothing retrieved.
    """

    name: ClassVar[str] = "axion:contextual_sufficiency"
    needs = frozenset({"user_input", "retrieved_contexts"})

    def judged(self, sample: Sample, judging: Judging) -> Plan[Score | Undefined]:
        template = model_template("sufficiency", SufficiencyReply, {"is_sufficient": True, "reasoning": ""})
        values = {"user_input": sample.require("user_input"), "context": joined(sample)}
        found = yield from judging.read(template, values)
        value = float(found is not None and found.value.is_sufficient)
        evidence = [] if found is None else [found.evidence(EvidenceTarget.TEXT, 0, value)]
        return judging.score(value, evidence, {"contexts": len(sample.contexts)})


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

    Failed where the third request fails: its text is evidence only, but the published code breaks there.

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

    Failed where the statements of the reference cannot be had (the published code has NaN), where no verdict came at
    all, and where the batch fails and `allow_fallback` is off.

    Quirks: a statement about which the single call failed is not supported; with nothing retrieved
    it asks too. `force_granular` asks statement by statement from the start.
    """

    name: ClassVar[str] = "axion:contextual_recall"
    needs = frozenset({"reference", "retrieved_contexts"})
    texts: ClassVar[tuple[TextField, ...]] = ("reference",)

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
