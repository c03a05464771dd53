"""The requests of ragas 0.2 to 0.4, and its metrics of the response.

Requests are for JSON; an unreadable reply is repaired, or asked for again in the same conversation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final, Generic, TypeVar

from merilo.errors import UsageError
from merilo.judging.kinds.measured import Embeddings, Similarities
from merilo.judging.kinds.responses import Completion
from merilo.metrics.base import Evidence, EvidenceTarget, Kinds, Score, Undefined
from merilo.metrics.formulas import f_measure, mean
from merilo_published.asking import (
    Asker,
    Fields,
    Recovery,
    Reply,
    ReplyFault,
    RequestTemplate,
    UnreadableReply,
    UnrecoverableFault,
    ask_similarities,
    fields_of,
    given,
    integer_in,
    items_of,
    json_array,
    object_of,
    on_statements,
    partial_json,
    read_reply,
    reasks,
    strict_integer_in,
    text_in,
    texts_in,
    without_halves,
)
from merilo_published.definition import FactualMode, Published, by_parameters, cosines, texts_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan
    from merilo_published.asking import ReadReply

T = TypeVar("T")
Whole = Callable[[Fields, str], int]
"""Reads the whole number in a field: as `whole_in`, or as `strict_integer_in` for structured output."""

SYSTEM: Final = "ragas-0.4"
EMPTY: Final = "an input is empty"
SAMPLING_TEMPERATURE: Final = 0.3
"""Of a request for several samples."""
EARLIER_TEMPERATURE: Final = 1e-8
"""Of a request for one reply in 0.3.0; 0.01 in 0.4.3."""
_WHOLE_WITH_POINT: Final = re.compile(r"\s*([+-]?\d+)\.0*\s*")
_FENCE: Final = re.compile(r"```(?:json)?(.*)", re.DOTALL)
_MAX_TAIL: Final = 500
"""Maximum number of characters to remove from the end of a damaged reply; upstream removes any number."""
_CLOSING: Final = {"{": "}", "[": "]"}


@dataclass(frozen=True, slots=True)
class RagasV04ReplySchema(Generic[T]):
    """The fields of a reply: how they are described to a judge that has to repair one, and how they are read."""

    described: str
    read: Callable[[Fields, Whole], T]
    likely: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """A statement with the integer that the judge gave it."""

    statement: str
    value: int


Judgements = tuple[Judgement, ...]


def _repair(asker: Asker, schema: RagasV04ReplySchema[T], times: int) -> Recovery[T]:
    """Return the recovery of ragas 0.2 to 0.4: the judge is shown an unreadable reply and its form, and repairs it.

    A repair is a reply too: `{"text": ...}`, whose text is the repaired reply. One that is not of this form is sent to
    repair in its turn, so that texts may be nested. A text that cannot be read is not repaired again.
    """

    def again(reply: Reply, fault: str, number: int) -> Plan[tuple[Reply, Callable[[Reply], T]]]:
        del fault
        likely = schema.likely
        for _ in range(number + 1):
            likely = json.dumps({"text": likely})
        values = {"form": _REPAIRED if number else schema.described, "reply": reply.text}
        return (yield from asker.ask("repair", values, likely=likely)), lambda reply: _unwrapped(schema, reply, number)

    return Recovery(times, again)


def _unwrapped(schema: RagasV04ReplySchema[T], reply: Reply, depth: int) -> T:
    """Return what a repair says: its text is a reply of the form asked for, or `depth` times the repair of one."""
    text = text_in(fields_of(first_json(reply.text)), "text")
    try:
        for _ in range(depth):
            text = text_in(fields_of(whole_json(without_halves(text))), "text")
        return schema.read(fields_of(whole_json(without_halves(text))), whole_in)
    except ValueError as fault:
        raise UnrecoverableFault(f"The repaired reply cannot be read either. {fault}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedMetric(Published):
    """A metric of ragas 0.2 to 0.4 that asks a judge.

    The judge is asked up to three times to repair a reply that cannot be read. The collections re-ask instead:
    `reasks` is how often a structured reply that cannot be read is asked for again, with what was wrong, in the same
    conversation; `none` reads replies as free text, which is repaired. Several replies are sampled at 0.3.
    """

    collected: ClassVar[bool] = False
    """True for the metrics of the collections, which have other rules."""
    repairs: ClassVar[int] = 3
    temperature: ClassVar[float] = 0.01
    """Of a request for one reply."""

    reasks: int | None = None

    def __post_init__(self) -> None:
        Published.__post_init__(self)
        if not 0 < (beta := getattr(self, "beta", 1.0)) < inf:  # a parameter of two metrics
            raise UsageError(f"Metric {self.name!r} takes a finite beta above 0, got beta={beta}.")

    def asker(self) -> Asker:
        """Return what asks about one sample, each request for one reply at the temperature of this metric."""
        return Asker(SYSTEM, temperature=self.temperature)

    def ask(
        self, asker: Asker, rubric: str, values: Mapping[str, str], schema: RagasV04ReplySchema[T]
    ) -> Plan[ReadReply[T]]:
        """Return what the reply to one request says. Raises AskFailed if there is none, or none that can be read."""
        template = self._template(rubric, schema)
        return (yield from asker.read(template, values, recovery=self._recovery(asker, template, schema)))

    def samples(
        self, asker: Asker, rubric: str, values: Mapping[str, str], schema: RagasV04ReplySchema[T], count: int
    ) -> Plan[tuple[ReadReply[T], ...]]:
        """Return what several replies to one request say; each is repaired separately, in order. Raises AskFailed."""
        template = self._template(rubric, schema)
        several = Asker(SYSTEM, temperature=SAMPLING_TEMPERATURE if count > 1 else self.temperature)
        found: list[ReadReply[T]] = []
        for reply in (yield from several.samples(rubric, values, count, likely=schema.likely)):
            read = yield from read_reply(template, reply, self._recovery(asker, template, schema))
            if isinstance(read, UnreadableReply):
                raise read
            found.append(read)
        return tuple(found)

    def ask_statements(self, asker: Asker, user_input: str, answer: str) -> Plan[ReadReply[tuple[str, ...]]]:
        """Return the statements that an answer to this input makes."""
        return (yield from self.ask(asker, "statements", {"user_input": user_input, "answer": answer}, STATEMENTS))

    def ask_verdicts(self, asker: Asker, statements: Sequence[str], text: str) -> Plan[ReadReply[Judgements]]:
        """Return verdicts on statements, not 0 if the text supports one; as many as the judge returns."""
        return (yield from self.ask(asker, "verdicts", {"text": text, "statements": json_array(statements)}, VERDICTS))

    def _template(self, rubric: str, schema: RagasV04ReplySchema[T]) -> RequestTemplate[T]:
        def read(reply: Reply) -> T:
            if self.reasks is None:
                return schema.read(fields_of(first_json(reply.text)), whole_in)
            return schema.read(object_of(reply.verdict.text), strict_integer_in)

        return RequestTemplate(rubric, schema.likely, read)

    def _recovery(self, asker: Asker, template: RequestTemplate[T], schema: RagasV04ReplySchema[T]) -> Recovery[T]:
        if self.reasks is None:
            return _repair(asker, schema, self.repairs)
        return reasks(asker, template, self.reasks)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusesEmpty(JudgedMetric):
    """A metric for which the collections have no value if an input is empty, while the classes judge it."""

    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({"nothing to judge": "empty inputs are judged"})

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        texts = texts_of(sample, self.needed)
        empty = [name for name, text in texts.items() if not (sample.contexts if name == "contexts" else text)]
        if self.collected and empty:
            return Undefined(EMPTY)
        return (yield from self.judged(sample, texts))

    def judged(self, sample: Sample, texts: Mapping[str, str]) -> Plan[Score | Undefined]:
        """Return the outcome for a sample; `texts`: see `texts_of`."""
        raise NotImplementedError  # each metric has its own


def f_of_counts(true: int, false: int, missing: int, beta: float) -> float:
    """Return the F measure of these counts; a fraction of nothing is 0."""
    precision = true / (true + false) if true + false else 0.0
    recall = true / (true + missing) if true + missing else 0.0
    return f_measure(precision, recall, beta=beta)


def first_json(text: str) -> object:
    """Return the JSON value that ragas takes from a reply. Raises ReplyFault.

    Where the text has a "```json" fence, what is before it is left out. From the first bracket on, brackets of
    this one kind are counted, also those inside texts, until they balance. Where they never do, the whole text is
    taken, and what it leaves open is closed.
    """
    text = text[max(text.find("```json"), 0) :]
    start = min((at for at in (text.find("["), text.find("{")) if at >= 0), default=-1)
    return whole_json(text if start < 0 else _balanced(text, start))


def whole_json(text: str) -> object:
    """Return the JSON value that a text is, in a fence or not; closes what it leaves open. Raises ReplyFault."""
    try:
        return partial_json(text, quote_is_dropped=False, tail=_MAX_TAIL)
    except ReplyFault:
        fence = _FENCE.search(text)
        if fence is None:
            raise
        return partial_json(fence[1], quote_is_dropped=False, tail=_MAX_TAIL)


def _balanced(text: str, start: int) -> str:
    opening, closing, depth = text[start], _CLOSING[text[start]], 0
    for at in range(start, len(text)):
        depth += (text[at] == opening) - (text[at] == closing)
        if not depth:
            return text[start : at + 1]
    return text


def whole_in(fields: Fields, name: str) -> int:
    """Return the whole number in this field, as pydantic reads one: "1.0" is 1 too. Raises ReplyFault."""
    value = given(fields, name)
    if isinstance(value, str) and (found := _WHOLE_WITH_POINT.fullmatch(value)):
        fields = {name: found[1]}
    return integer_in(fields, name)


# -- the forms of reply -------------------------------------------------------------------------------


def _verdict(fields: Fields, whole: Whole) -> int:
    text_in(fields, "reason")
    return whole(fields, "verdict")


def _judgements(label: str, *, under: str) -> Callable[[Fields, Whole], Judgements]:
    def read(fields: Fields, whole: Whole) -> tuple[Judgement, ...]:
        found: list[Judgement] = []
        for item in items_of(given(fields, under)):
            entry = fields_of(item)
            text_in(entry, "reason")
            found.append(Judgement(text_in(entry, "statement"), whole(entry, label)))
        return tuple(found)

    return read


def _texts(name: str) -> Callable[[Fields, Whole], tuple[str, ...]]:
    def read(fields: Fields, whole: Whole) -> tuple[str, ...]:
        del whole
        return texts_in(fields, name)

    return read


VERDICT: Final = RagasV04ReplySchema(
    '{"reason": text, "verdict": integer}', _verdict, '{"reason": "It does.", "verdict": 1}'
)
VERDICTS: Final = RagasV04ReplySchema(
    '{"statements": [{"statement": text, "reason": text, "verdict": integer}, ...]}',
    _judgements("verdict", under="statements"),
    '{"statements": [{"statement": "A statement.", "reason": "It follows.", "verdict": 1}]}',
)
ATTRIBUTED: Final = RagasV04ReplySchema(
    '{"classifications": [{"statement": text, "reason": text, "attributed": integer}, ...]}',
    _judgements("attributed", under="classifications"),
    '{"classifications": [{"statement": "A sentence.", "reason": "It stands there.", "attributed": 1}]}',
)
STATEMENTS: Final = RagasV04ReplySchema(
    '{"statements": [texts]}', _texts("statements"), '{"statements": ["A statement."]}'
)
CLAIMS: Final = RagasV04ReplySchema('{"claims": [texts]}', _texts("claims"), '{"claims": ["A claim."]}')
ENTITIES: Final = RagasV04ReplySchema('{"entities": [texts]}', _texts("entities"), '{"entities": ["Paris"]}')
_REPAIRED: Final = '{"text": text}'


_NO_STATEMENT: Final = "the response makes no statement"
_ASPECT_FIELDS: Final = ("user_input", "response", "retrieved_contexts", "reference", "reference_contexts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Faithfulness(RefusesEmpty):
    """Which share of the response's statements the contexts support, as ragas scores it.

    Formula: Supported / verdicts returned.
    Questions: Two requests: the statements of the response, then a verdict on each in one reply.
    Undefined: the response makes no statement | the judge returned no verdict | an input is empty (collections)
    Use: To compare with faithfulness of ragas 0.2 to 0.4.
    Not: For new work: take faithfulness, which notices when a verdict is missing.
    See: faithfulness | ragas-0.4.3:faithfulness_with_hhem | nvidia:response_groundedness
    Source: ragas 0.4.3, metrics/_faithfulness.py

    Quirks: fewer or more verdicts than statements are scored as they are, with a flag. The collections refuse an empty
    input.
    """

    name: ClassVar[str] = "ragas-0.4.3:faithfulness"
    needs = frozenset({"user_input", "response", "retrieved_contexts"})

    def judged(self, sample: Sample, texts: Mapping[str, str]) -> Plan[Score | Undefined]:
        del sample
        asker = self.asker()
        found = yield from self.ask_statements(asker, texts["user_input"], texts["response"])
        if not found.value:
            return Undefined(_NO_STATEMENT)
        return (yield from self._scored(asker, found.value, texts["contexts"]))

    def _scored(self, asker: Asker, statements: tuple[str, ...], contexts: str) -> Plan[Score | Undefined]:
        read = yield from self.ask_verdicts(asker, statements, contexts)
        returned, asked = len(read.value), len(statements)
        if not returned:
            return Undefined("the judge returned no verdict")
        flagged = [(int(item.value != 0), item.statement) for item in read.value]
        supported = sum(flag for flag, _ in flagged)
        flags = () if returned == asked else (f"{returned} verdicts came for {asked} statements",)
        counts = {"statements": asked, "verdicts": returned, "supported": supported}
        return Score(supported / returned, on_statements(read.reply.verdict, flagged), counts, flags)


@dataclass(frozen=True, slots=True, kw_only=True)
class FaithfulnessWithHHEM(Faithfulness):
    """Which share of the response's statements a classifier finds consistent with the contexts.

    Formula: Mean over statements of the classifier's number, rounded to 0 or 1.
    Questions: One request for the statements of the response, and one for similarities.
    Undefined: the response makes no statement
    Use: To compare with faithfulness with HHEM of ragas 0.2 to 0.4.
    Not: With a model for similarities that was not made to check facts.
    See: faithfulness | ragas-0.4.3:faithfulness

    ragas uses Vectara's HHEM as the classifier; here it is the model that answers similarities, from the joined
    contexts to each statement.
    """

    name: ClassVar[str] = "ragas-0.4.3:faithfulness_with_hhem"
    asks = Kinds({Completion, Similarities})
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType(
        {**RefusesEmpty.breaks, "order": "the contexts are compared as one text"}
    )

    def _scored(self, asker: Asker, statements: tuple[str, ...], contexts: str) -> Plan[Score | Undefined]:
        del asker
        (([likeness], verdict),) = yield from ask_similarities((Similarities((contexts,), statements),))
        rounded = [round(number) for number in likeness]
        evidence = on_statements(verdict, zip(rounded, statements, strict=True))
        counts = {"statements": len(statements), "supported": sum(rounded)}
        return Score(mean(rounded), evidence, counts)


@dataclass(frozen=True, slots=True)
class _Guessed:
    """A question that the judge made up for the response."""

    question: str
    noncommittal: bool


def _guessed(fields: Fields, whole: Whole) -> _Guessed:
    return _Guessed(text_in(fields, "question"), whole(fields, "noncommittal") != 0)


_GUESSED: Final = RagasV04ReplySchema(
    '{"question": text, "noncommittal": integer}', _guessed, '{"question": "What is it?", "noncommittal": 0}'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRelevancy(RefusesEmpty):
    """How near the user input is to the questions that the response would answer, as ragas scores it.

    Formula: Mean cosine of the user input with the generated questions; 0 when they are noncommittal.
    Questions: One request for `strictness` replies (3), and one for the embeddings.
    Undefined: every generated question is empty | an embedding has no length | an input is empty (collections)
    Use: To compare with answer relevancy of ragas 0.2 to 0.4.
    Not: Across embedding models: the value moves with the model.
    See: answer_relevancy
    Source: ragas 0.4.3, metrics/_answer_relevance.py

    Quirks: `strictness`: how many questions. All are samples of one request at temperature 0.3, and all replies must
    be noncommittal to make the score 0. Up to 0.3.5 one request follows another, and one such reply is enough. The
    collections send one request after another, leave empty questions out with their flags, of which none left scores
    0, and refuse an empty input. Differs: a noncommittal response is not embedded, since its score is known.
    """

    name: ClassVar[str] = "ragas-0.4.3:answer_relevancy"
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    needs = frozenset({"user_input", "response"})
    asks = Kinds({Completion, Embeddings})

    one_request: ClassVar[bool] = True
    one_zeroes: ClassVar[bool] = False
    """True if one noncommittal reply makes the score 0."""

    strictness: int = 3

    def judged(self, sample: Sample, texts: Mapping[str, str]) -> Plan[Score | Undefined]:
        del sample
        replies = yield from self._made_up(texts["response"])
        kept = [read for read in replies if read.value.question or not self.collected]
        declined = [read.value.noncommittal for read in kept]
        evidence = tuple(read.evidence(EvidenceTarget.TEXT, 0, int(not read.value.noncommittal)) for read in replies)
        counts = {"questions": len(kept), "noncommittal": sum(declined)}
        if not any(read.value.question for read in kept):
            if not self.collected:
                return Undefined("every generated question is empty")
            return Score(0.0, evidence, counts, ("every generated question was empty and scored 0",))
        if any(declined) if self.one_zeroes else all(declined):
            return Score(0.0, evidence, counts)
        found, vectors = yield from cosines(texts["user_input"], (read.value.question for read in kept))
        if found is None:
            return Undefined(_NO_LENGTH)
        return Score(mean(found), (*evidence, Evidence(EvidenceTarget.TEXT, 0, vectors)), counts)

    def _made_up(self, response: str) -> Plan[tuple[ReadReply[_Guessed], ...]]:
        asker, values = self.asker(), {"response": response}
        if self.one_request:
            return (yield from self.samples(asker, "answer_relevancy", values, _GUESSED, self.strictness))
        found: list[ReadReply[_Guessed]] = []
        for _ in range(self.strictness):
            found.append((yield from self.ask(asker, "answer_relevancy", values, _GUESSED)))  # noqa: PERF401 - it yields
        return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class AspectCritic(JudgedMetric):
    """Whether a custom criterion holds, as one reply of the judge says.

    Formula: The integer verdict of the reply.
    Questions: One request, which shows every field that the sample has.
    Use: To compare with an aspect critic of ragas 0.2 to 0.4.
    Not: To vote: strictness has no effect.
    Source: ragas 0.4.3, metrics/_aspect_critic.py

    `definition`: the criterion, which upstream has no default for. Quirk: `strictness` changes nothing: one reply
    is asked for whatever it is.
    """

    name: ClassVar[str] = "ragas-0.4.3:aspect_critic"
    range: ClassVar[tuple[float, float]] = (float("-inf"), float("inf"))
    needs = frozenset[str]()
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({"nothing to judge": "whatever is there is judged"})

    definition: str = "Does the response answer what the user asked, and is it right?"
    strictness: int = 1

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        submission: dict[str, object] = {}
        for field in _ASPECT_FIELDS:
            if field in sample.present:
                value = sample.require(field)
                submission[field] = value if isinstance(value, str) else [getattr(item, "text", item) for item in value]
        values = {"definition": self.definition, "submission": json.dumps(submission, ensure_ascii=False)}
        read = yield from self.ask(self.asker(), "aspect", values, VERDICT)
        return Score(float(read.value), (read.evidence(EvidenceTarget.TEXT, 0, read.value),))


_KINDS: Final = Kinds({Completion, Embeddings})
_NO_LENGTH: Final = "an embedding has no length"


def _likeness(reference: str, response: str, *, space_for_empty: bool = True) -> Plan[tuple[float | None, Evidence]]:
    """Return the cosine of two texts, None if an embedding has no length; and the embeddings."""
    first, second = (text or " " * space_for_empty for text in (reference, response))
    found, matrix = yield from cosines(first, [second])
    return found[0] if found else None, Evidence(EvidenceTarget.TEXT, 0, matrix)


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticSimilarity(Published):
    """How near the embeddings of response and reference are.

    Formula: Cosine; with a threshold 1 where it is reached, else 0.
    Questions: No request to the judge; one for the embeddings.
    Undefined: an embedding has no length
    Use: To compare with semantic similarity of ragas 0.2 to 0.4.
    Not: Across embedding models: the value moves with the model.
    See: ragas-0.4.3:answer_correctness
    Source: ragas 0.4.3, metrics/_answer_similarity.py

    Undefined when an embedding has no length; with a threshold that gives 0 and a flag, as upstream.

    Quirks: a `threshold` of 0 means none. An empty text is embedded as one space.
    """

    name: ClassVar[str] = "ragas-0.4.3:semantic_similarity"
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    needs = frozenset({"response", "reference"})
    asks = Kinds({Embeddings})
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({"nothing to judge": "an empty text is a space"})

    threshold: float | None = None

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        likeness, evidence = yield from _likeness(sample.require("reference"), sample.require("response"))
        if likeness is None:
            return Score(0.0, (evidence,), flags=(_NO_LENGTH,)) if self.threshold else Undefined(_NO_LENGTH)
        return Score(float(likeness >= self.threshold) if self.threshold else likeness, (evidence,))


@dataclass(frozen=True, slots=True)
class _Sorted:
    """The statements of response and reference by class."""

    true: tuple[str, ...]
    false: tuple[str, ...]
    missing: tuple[str, ...]


def _sorted(fields: Fields, whole: Whole) -> _Sorted:
    del whole
    found: list[tuple[str, ...]] = []
    for name in ("TP", "FP", "FN"):
        entries = [fields_of(item) for item in items_of(given(fields, name))]
        for entry in entries:
            text_in(entry, "reason")
        found.append(tuple(text_in(entry, "statement") for entry in entries))
    return _Sorted(*found)


_SORTED: Final = RagasV04ReplySchema(
    '{"TP": [{"statement": text, "reason": text}, ...], "FP": [the same], "FN": [the same]}',
    _sorted,
    '{"TP": [{"statement": "A statement.", "reason": "Both say it."}], "FP": [], "FN": []}',
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCorrectness(JudgedMetric):
    """Agreement of the response with the reference, by statements and by embeddings, as ragas scores it.

    Formula: (0.75 F(TP, FP, FN) + 0.25 cosine), the weights being parameters.
    Questions: Three requests (statements of the response, of the reference, their classes) and the embeddings.
    Undefined: an embedding has no length
    Use: To compare with answer correctness of ragas 0.2 to 0.4.
    Not: To find out what is wrong: take its parts.
    See: ragas-0.4.3:factual_correctness | nvidia:answer_accuracy
    Source: ragas 0.4.3, metrics/_answer_correctness.py

    Quirks: F is 1 without a classification when neither text makes a statement. An empty text is embedded as one
    space. In the collections F is 1 also when only one text makes no statement, and when the judge classifies nothing;
    an empty text is embedded as it is, and an embedding without length has the cosine 0.
    """

    name: ClassVar[str] = "ragas-0.4.3:answer_correctness"
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    needs = frozenset({"user_input", "response", "reference"})
    asks = by_parameters(lambda metric: _KINDS if metric.similarity_weight else _KINDS - {Embeddings}, _KINDS)
    breaks: ClassVar[Mapping[str, str]] = RefusesEmpty.breaks

    factual_weight: float = 0.75
    similarity_weight: float = 0.25
    beta: float = 1.0

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input = sample.require("user_input")
        response, reference = sample.require("response"), sample.require("reference")
        asker = self.asker()
        of_response = yield from self.ask_statements(asker, user_input, response)
        of_reference = yield from self.ask_statements(asker, user_input, reference)
        f, counts = 1.0, {"TP": 0, "FP": 0, "FN": 0}
        evidence: tuple[Evidence, ...] = (
            of_response.evidence(EvidenceTarget.TEXT, 0),
            of_reference.evidence(EvidenceTarget.TEXT, 0),
        )
        needed = all if self.collected else any
        if needed((of_response.value, of_reference.value)):
            stated = {"answer": json_array(of_response.value), "reference": json_array(of_reference.value)}
            read = yield from self.ask(asker, "correctness", {"user_input": user_input, **stated}, _SORTED)
            counts = {"TP": len(read.value.true), "FP": len(read.value.false), "FN": len(read.value.missing)}
            f = 1.0
            if any(counts.values()) or not self.collected:
                f = f_of_counts(counts["TP"], counts["FP"], counts["FN"], self.beta)
            classes = ((read.value.true, 1), (read.value.false, 0), (read.value.missing, 0))
            evidence = on_statements(read.reply.verdict, ((value, text) for texts, value in classes for text in texts))
        if not self.similarity_weight:
            return Score(f, evidence, counts)
        likeness, vectors = yield from _likeness(reference, response, space_for_empty=not self.collected)
        if likeness is None and not self.collected:
            return Undefined(_NO_LENGTH)
        total = self.factual_weight + self.similarity_weight
        value = (self.factual_weight * f + self.similarity_weight * (likeness or 0.0)) / total
        flags = (f"{_NO_LENGTH} and was scored 0",) if likeness is None else ()
        return Score(value, (*evidence, vectors), counts, flags)


_EPSILON: Final = 1e-8


class Detail(StrEnum):
    """The size of the claims into which a text is split."""

    LOW = "low"
    HIGH = "high"


@dataclass(frozen=True, slots=True, kw_only=True)
class FactualCorrectness(RefusesEmpty):
    """How many of the claims of response and reference the other text supports, as ragas scores it.

    Formula: F measure of TP, FP (claims of the response) and FN (claims of the reference), to 2 decimals.
    Questions: Two requests for each text (one text for mode=precision): its claims, then verdicts on them.
    Undefined: an input is empty (collections)
    Use: To compare with factual correctness of ragas 0.2 to 0.4.
    Not: To compare close systems: the value is rounded.
    See: ragas-0.4.3:answer_correctness
    Source: ragas 0.4.3, metrics/_factual_correctness.py

    TP and FP are the response's claims that the reference supports or not, FN the reference's claims that the response
    does not support. By `mode`: the F measure with `beta`, precision TP / (TP + FP + 1e-8), or recall TP / (TP + FN +
    1e-8). 0 when there are no claims.

    `atomicity`, `coverage`: how small the claims are, and how much of a text they cover. Quirks: recall counts
    claims of the response above and claims of the reference below. Verdicts are asked for although there are no
    claims, except in the collections, which also refuse an empty input.
    """

    name: ClassVar[str] = "ragas-0.4.3:factual_correctness"
    needs = frozenset({"response", "reference"})

    mode: FactualMode = FactualMode.F1
    beta: float = 1.0
    atomicity: Detail = Detail.LOW
    coverage: Detail = Detail.LOW

    def judged(self, sample: Sample, texts: Mapping[str, str]) -> Plan[Score | Undefined]:
        del sample
        asker, response, reference = self.asker(), texts["response"], texts["reference"]
        evidence, flags = list[Evidence](), list[str]()
        supported = yield from self._checked(asker, response, reference, evidence, flags)
        covered: list[bool] = []
        if self.mode is not FactualMode.PRECISION:
            covered = yield from self._checked(asker, reference, response, evidence, flags)
        true, missing = sum(supported), len(covered) - sum(covered)
        counts = {"TP": true, "FP": len(supported) - true, "FN": missing}
        value = self._value(true, len(supported) - true, missing)
        return Score(round(value * 100) / 100, tuple(evidence), counts, tuple(flags))

    def _value(self, true: int, false: int, missing: int) -> float:
        match self.mode:
            case FactualMode.PRECISION:
                return true / (true + false + _EPSILON)
            case FactualMode.RECALL:
                return true / (true + missing + _EPSILON)
            case FactualMode.F1:
                return f_of_counts(true, false, missing, self.beta)

    def _checked(
        self, asker: Asker, text: str, against: str, evidence: list[Evidence], flags: list[str]
    ) -> Plan[list[bool]]:
        """Return for each claim of a text whether the other one supports it; adds to `evidence` and `flags`."""
        values = {"text": text, "atomicity": str(self.atomicity), "coverage": str(self.coverage)}
        claims = (yield from self.ask(asker, "claims", values, CLAIMS)).value
        if not claims and self.collected:
            return []
        read = yield from self.ask_verdicts(asker, claims, against)
        if len(read.value) != len(claims):
            flags.append(f"{len(read.value)} verdicts came for {len(claims)} claims")
        found = [item.value != 0 for item in read.value]
        for item, value in zip(read.value, found, strict=True):
            evidence.append(read.evidence(EvidenceTarget.STATEMENT, len(evidence), int(value), item.statement))
        return found
