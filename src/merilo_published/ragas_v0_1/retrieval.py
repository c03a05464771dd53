"""The requests of ragas 0.1, and its metrics of contexts.

Requests are for JSON, repaired once if unreadable, and several replies vote. Metrics: relevancy, recall, entity recall,
precision, utilization and noise sensitivity.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final, Self, TypeVar

from merilo.errors import UsageError
from merilo.judging.ask import Plan, ask, ask_each
from merilo.judging.json_types import as_object
from merilo.judging.kinds.measured import Sentences
from merilo.judging.kinds.responses import Completion
from merilo.metrics.base import Evidence, EvidenceTarget, Kinds, Score, Undefined
from merilo.metrics.formulas import mean
from merilo_published.asking import (
    Asker,
    ReadReply,
    Recovery,
    ReplyFault,
    RequestTemplate,
    UnmatchedBrackets,
    UnreadableReply,
    fields_of,
    given,
    items_of,
    on_statements,
    partial_json,
    read_reply,
)
from merilo_published.definition import (
    Focus,
    JudgesBlank,
    Published,
    by_parameters,
    capped_fraction,
    fraction,
    majority,
    noisy,
    smoothed_average_precision,
    texts_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from merilo.data.sample import Sample
    from merilo_published.asking import Fields, Reply

# The readers of ragas 0.1: JSON, in code fences or truncated, into fields that are coerced if possible.
#
# It reads through a lenient JSON parser and checks by pydantic 1, so a verdict may be `1`, `"1"`, `true` or `1.7`.

_FENCE: Final = "```"
_ROOT: Final = "__root__"
_MAX_TRIES: Final = 100
"""Maximum number of characters to remove from the end of a damaged reply; common damage takes fewer than ten."""


@dataclass(frozen=True, slots=True)
class JudgedStatement:
    """A statement as the judge repeats it, with its verdict: 0 is no, any other number yes."""

    text: str
    value: int


def json_value(text: str) -> object:
    """Return the JSON value of a reply; None if its brackets do not match. Raises ReplyFault if there is none.

    A reply is JSON from its first character, or from a code fence on. What was cut off is closed, and text
    behind the value is left out; but brackets in such a text spoil it.
    """
    whole = text.strip()
    fence = whole.find(_FENCE)
    inside = whole[fence + len(_FENCE) :].removeprefix("json") if fence >= 0 else ""
    for part in (whole, inside):
        try:
            return partial_json(part, quote_is_dropped=True, tries=_MAX_TRIES)
        except UnmatchedBrackets:
            return None
        except ReplyFault:
            continue
    raise ReplyFault("The reply holds no JSON where it begins or in a code fence.")


def read_statements(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the statements of each sentence. Raises ReplyFault."""
    found: list[tuple[str, ...]] = []
    for item in _items(text):
        fields = fields_of(item)
        _integer(fields, "sentence_index")
        found.append(_texts(fields, "simpler_statements"))
    return tuple(found)


def read_judged(key: str) -> Callable[[str], tuple[JudgedStatement, ...]]:
    """Return a reader of a list of statements with verdicts under this key; it raises ReplyFault."""

    def read(text: str) -> tuple[JudgedStatement, ...]:
        found: list[JudgedStatement] = []
        for item in _items(text):
            fields = fields_of(item)
            _text(fields, "reason")
            found.append(JudgedStatement(_text(fields, "statement"), _integer(fields, key)))
        return tuple(found)

    return read


def read_verdict(text: str) -> int:
    """Return the one verdict of a reply, a number that a float can hold. Raises ReplyFault."""
    fields = fields_of(json_value(text))
    _text(fields, "reason")
    number = _integer(fields, "verdict")
    try:
        float(number)
    except OverflowError:
        raise ReplyFault("The reply gives a verdict that is too large for a number.") from None
    return number


def read_generated(text: str) -> tuple[str, bool]:
    """Return the generated question, and whether the answer is noncommittal. Raises ReplyFault."""
    fields = fields_of(json_value(text))
    return _text(fields, "question"), _integer(fields, "noncommittal") != 0


def read_sorted_statements(text: str) -> tuple[int, ...]:
    """Return the numbers of statements in both texts, in the response and in the reference alone. Raises ReplyFault."""
    fields = fields_of(json_value(text))
    counts: list[int] = []
    for name in ("TP", "FP", "FN"):
        items = items_of(given(fields, name))
        if any(as_object(item) is None for item in items):
            raise ReplyFault(f'The reply gives something else than objects in "{name}".')
        counts.append(len(items))
    return tuple(counts)


def read_texts(key: str) -> Callable[[str], tuple[str, ...]]:
    """Return a reader of the list of texts under this key; it raises ReplyFault."""
    return lambda text: _texts(fields_of(json_value(text)), key)


def _items(text: str) -> list[object]:
    value = json_value(text)
    fields = as_object(value)
    return items_of(fields[_ROOT] if fields is not None and fields.keys() == {_ROOT} else value)


def _texts(fields: Fields, name: str) -> tuple[str, ...]:
    return tuple(_as_text(item, name) for item in items_of(given(fields, name)))


def _text(fields: Fields, name: str) -> str:
    return _as_text(given(fields, name), name)


def _as_text(value: object, name: str) -> str:
    """Return a text, or a number as Python writes it. Raises ReplyFault."""
    if isinstance(value, str | int | float):
        return str(value)
    raise ReplyFault(f'The reply gives no text in "{name}".')


def _integer(fields: Fields, name: str) -> int:
    """Return the field as Python's int reads it, without a fraction. Raises ReplyFault."""
    value = given(fields, name)
    if isinstance(value, str | int | float):
        try:
            return int(value)
        except (ValueError, OverflowError):
            pass
    raise ReplyFault(f'The reply gives no whole number in "{name}".')


T = TypeVar("T")

SYSTEM: Final = "ragas-0.1"
"""The folder of the rubrics; the versions ask alike."""
SPLITTER: Final = "pysbd"

_STEADY: Final = 1e-8
_SEVERAL: Final = 0.3
_REPAIR: Final = "repair"


MaybeRead = ReadReply[T] | UnreadableReply
"""A reply or its repair, or the repair that cannot be read either."""


def json_template(rubric: str, shape: str, likely: str, read: Callable[[str], T]) -> RequestTemplate[T]:
    """Return a request for JSON. `shape`: the JSON in words, for the request that repairs a reply."""
    return RequestTemplate(rubric, likely, lambda reply: read(reply.text), shape)


@dataclass(frozen=True, slots=True)
class Ballot:
    """The verdicts on a list of statements, by the vote of all replies that could be read."""

    items: tuple[JudgedStatement, ...]
    reply: Reply
    """The first reply that could be read; the texts are its."""
    flags: tuple[str, ...] = ()

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The verdict on each statement, 1 for any number but 0."""
        return on_statements(self.reply.verdict, ((float(item.value != 0), item.text) for item in self.items))

    def or_raise(self) -> Self:
        """Return the ballot; an `UnreadableReply` in its place raises itself."""
        return self


@dataclass(slots=True)
class JsonAsker:
    """Asks for JSON about one sample; one for each plan.

    A reply that cannot be read is sent back once with what was asked. One reply is asked for at the
    temperature 1e-8, several at 0.3.
    """

    _one: Asker = field(default_factory=lambda: Asker(SYSTEM, temperature=_STEADY))
    _several: Asker = field(default_factory=lambda: Asker(SYSTEM, temperature=_SEVERAL))

    def ask(self, template: RequestTemplate[T], values: Mapping[str, str]) -> Plan[MaybeRead[T]]:
        """Return one reply. Raises AskFailed if there is none."""
        (read,) = yield from self.samples(template, values, 1)
        return read

    def samples(
        self, template: RequestTemplate[T], values: Mapping[str, str], count: int
    ) -> Plan[tuple[MaybeRead[T], ...]]:
        """Return several replies to one request, in sampling order, repaired one after another. Raises AskFailed."""
        asker = self._one if count == 1 else self._several
        replies = yield from asker.samples(template.rubric, values, count, likely=template.likely)
        read: tuple[MaybeRead[T], ...] = ()
        for reply in replies:
            read = (*read, (yield from read_reply(template, reply, _repair(self._one, template))))
        return read


def _repair(asker: Asker, template: RequestTemplate[T]) -> Recovery[T]:
    """Return the recovery of ragas 0.1: an unreadable reply is sent back once, with what was asked."""

    def again(reply: Reply, fault: str, number: int) -> Plan[tuple[Reply, Callable[[Reply], T]]]:
        del fault, number
        asked = zip(reply.question.names, reply.question.values, strict=True)
        request = "\n\n".join(f"{name}:\n{text}" for name, text in asked)
        values = {"form": template.shape, "request": request, "completion": reply.text}
        return (yield from asker.ask(_REPAIR, values, likely=template.likely)), template.read

    return Recovery(1, again)


@dataclass(frozen=True, slots=True, kw_only=True)
class RagasV01(JudgesBlank):
    """A metric of ragas 0.1, whose unreadable replies are repaired once.

    Undefined: a reply cannot be read, nor can its repair (Failed, where ragas 0.1.9 stops the run and 0.1.22 has
        NaN)
    Use: To understand, or to compare with, numbers of ragas 0.1.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Voting(RagasV01):
    """A metric of ragas 0.1 that can ask for several replies to one request.

    - `reproducibility`: for how many replies; they vote. As ragas' setter does, below 1 is taken as 1 and an even
      number as the next odd one, so that no vote ties.
    """

    reproducibility: int = 1

    @property
    def replies(self) -> int:
        """The number of replies to ask for."""
        return max(1, self.reproducibility | 1)


STATEMENTS: Final = json_template(
    "statements",
    'A list with one object for each sentence: {"sentence_index": its number, "simpler_statements": [texts]}.',
    '[{"sentence_index": 0, "simpler_statements": ["A statement."]}]',
    read_statements,
)
SUPPORT: Final = json_template(
    "support",
    'A list with one object for each statement: {"statement": text, "reason": text, "verdict": 0 or 1}.',
    '[{"statement": "A statement.", "reason": "It is said there.", "verdict": 1}]',
    read_judged("verdict"),
)


def statements_of(asker: JsonAsker, question: str, text: str) -> Plan[MaybeRead[tuple[tuple[str, ...], ...]]]:
    """Return the statements of a text; asks Sentences, then one request that numbers the sentences.

    Only sentences that end with "." are shown, so none of a language that has other full stops. Raises AskFailed.
    """
    pieces = (yield from ask(Sentences(text, SPLITTER))).texts
    kept = [piece for piece in pieces if piece.strip().endswith(".")]
    numbered = "\n".join(f"{number}:{piece}" for number, piece in enumerate(kept))
    return (yield from asker.ask(STATEMENTS, {"user_input": question, "text": text, "sentences": numbered}))


def elected(read: Sequence[MaybeRead[tuple[JudgedStatement, ...]]]) -> Ballot | UnreadableReply:
    """Return the vote of the readable replies, place by place; the first reply if none is readable.

    Ties go to the verdict seen first; where the replies differ in length the first one decides alone.
    """
    votes = [(one.reply, one.value) for one in read if isinstance(one, ReadReply)]
    if not votes and isinstance(read[0], UnreadableReply):
        return read[0]
    lost = len(read) - len(votes)
    flags = (f"{lost} of {len(read)} replies could not be read and were left out of the vote",) if lost else ()
    reply, first = votes[0]
    if len({len(items) for _, items in votes}) > 1:
        return Ballot(first, reply, (*flags, "the replies differ in length, so the first one decided alone"))
    places = zip(*(items for _, items in votes), strict=True)
    agreed = tuple(replace(place[0], value=majority([item.value for item in place])) for place in places)
    return Ballot(agreed, reply, flags)


# -- metrics of contexts ------------------------------------------------------------------------------

_PHRASE: Final = "insufficient information."
_EPSILON: Final = 1e-8
_NO_STATEMENT: Final = "the judge found no statement in the reference"

_RECALL: Final = json_template(
    "context_recall",
    'A list with one object for each statement: {"statement": text, "reason": text, "attributed": 0 or 1}.',
    '[{"statement": "A statement.", "reason": "It is said there.", "attributed": 1}]',
    read_judged("attributed"),
)
_ENTITIES: Final = json_template(
    "entities", 'An object {"entities": [texts]}.', '{"entities": ["Marie Curie"]}', read_texts("entities")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRelevancy(JudgesBlank):
    """Share of the contexts' sentences that a judge copies as needed for the answer (ragas 0.1).

    Formula: min(sentences of the reply / sentences of the joined contexts, 1); 0 where the contexts hold none.
    Questions: One request; sentences are cut by pysbd.
    Use: To understand, or to compare with, numbers of ragas up to 0.1.10.
    Not: To measure something new: a reply that says in other words that nothing helps counts as a sentence.
    See: context_relevance
    Source: ragas/metrics/_context_relevancy.py

    pysbd splits both. 0.1.12 removed this metric. One request, also if there are no contexts. Only the reply
    "insufficient information." (in any case) counts as 0: without the full stop, in quotes or indented, it is one
    copied sentence. Sentences that are not in the contexts count.
    """

    needs = frozenset({"user_input", "retrieved_contexts"})
    asks = Kinds({Completion, Sentences})

    def judged(self, texts: Mapping[str, str]) -> Plan[Score | Undefined]:
        reply = yield from Asker(SYSTEM, temperature=_STEADY).ask(
            "context_relevancy", texts, likely="A sentence of the contexts."
        )
        copied = () if reply.text.lower() == _PHRASE else (reply.text.strip(),)
        pieces = yield from ask_each(Sentences(text, SPLITTER) for text in (texts["contexts"], *copied))
        found, *extracted = (len(piece.texts) for piece in pieces)
        return Score(
            capped_fraction(sum(extracted), found),
            evidence=(Evidence(EvidenceTarget.TEXT, 0, reply.verdict, value=float(sum(extracted))),),
            counts={"sentences": found, "extracted": sum(extracted)},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRecall(Voting):
    """Share of the reference's statements that a judge attributes to the contexts (ragas 0.1).

    Formula: Statements attributed / statements, as one reply lists them.
    Questions: One request for `reproducibility` replies; one more for each that cannot be read.
    Undefined: the judge found no statement in the reference | ...
    Not: To compare judges: each splits the reference in its own way while it judges.
    See: context_recall
    Source: ragas/metrics/_context_recall.py

    Failed where no reply can be read.
    """

    needs = frozenset({"user_input", "retrieved_contexts", "reference"})

    def judged(self, texts: Mapping[str, str]) -> Plan[Score | Undefined]:
        ballot = elected((yield from JsonAsker().samples(_RECALL, texts, self.replies))).or_raise()
        if not ballot.items:
            return Undefined(_NO_STATEMENT)
        attributed = sum(item.value != 0 for item in ballot.items)
        return Score(
            fraction(attributed, len(ballot.items)),
            evidence=ballot.evidence,
            counts={"statements": len(ballot.items), "attributed": attributed},
            flags=ballot.flags,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextEntityRecall(JudgesBlank):
    """Share of the reference's entities that the contexts name too (ragas 0.1).

    Formula: Different entities named in both / (entities listed for the reference + 1e-8).
    Questions: Two requests; one more for each reply that cannot be read.
    Use: To understand, or to compare with, numbers of ragas 0.1.
    Not: Where entities are written in more than one way: only equal letters count.
    See: context_recall
    Source: ragas/metrics/_context_entities_recall.py

    An entity that the reference's list names
    twice counts twice below the line. A reply that cannot be read counts as an empty list. No entity in the reference
    scores 0.
    """

    needs = frozenset({"retrieved_contexts", "reference"})

    def judged(self, texts: Mapping[str, str]) -> Plan[Score | Undefined]:
        asker = JsonAsker()
        wanted = yield from asker.ask(_ENTITIES, {"text": texts["reference"]})
        named = yield from asker.ask(_ENTITIES, {"text": texts["contexts"]})
        listed, present = wanted.value or (), set(named.value or ())
        total, common = len(listed), len(present & set(listed))
        return Score(
            common / (total + _EPSILON),
            evidence=(
                Evidence(EvidenceTarget.TEXT, 0, wanted.reply.verdict, value=float(total)),
                Evidence(EvidenceTarget.TEXT, 0, named.reply.verdict, value=float(len(present))),
            ),
            counts={"entities": total, "named": common},
            flags=tuple(
                f"a reply could not be read, and {what} count as naming no entity"
                for what, read in (("the reference", wanted), ("the contexts", named))
                if read.value is None
            ),
        )


_USEFUL: Final = json_template(
    "context_precision",
    'An object {"reason": text, "verdict": 0 or 1}.',
    '{"reason": "It says so.", "verdict": 1}',
    read_verdict,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _UsefulContexts(Voting):
    """Average precision of the contexts that are useful to arrive at a text.

    Formula: Sum over ranks k of v_k (useful among the first k) / k, divided by (useful + 1e-10).
    Questions: One request for each context; one more for each reply that cannot be read.
    Not: To measure something new: nothing retrieved scores 0, as does nothing useful.
    Source: ragas/metrics/_context_precision.py

    Without contexts 0, and nothing is asked. One request for each context, in order; all are made, and it is Failed
    where the verdict on one cannot be read. The 1e-10 makes a perfect ranking a hair less than 1.

    - `reproducibility`: see `Voting`; of these replies the first that can be read decides, whatever the others say.
    """

    ranked: ClassVar[bool] = True

    def _score(self, sample: Sample, user_input: str, target: str) -> Plan[Score | Undefined]:
        asker = JsonAsker()
        asked: list[tuple[MaybeRead[int], ...]] = []
        for context in sample.contexts:
            values = {"user_input": user_input, "context": context.text, "answer": target}
            asked.append((yield from asker.samples(_USEFUL, values, self.replies)))
        # the replies are read after the last request, as all requests are made
        read = [next((one for one in each if not isinstance(one, UnreadableReply)), each[0]) for each in asked]
        verdicts = [float(one.or_raise() != 0) for one in read]
        evidence = tuple(
            one.reply.evidence(EvidenceTarget.CONTEXT, at, verdict)
            for at, (one, verdict) in enumerate(zip(read, verdicts, strict=True))
        )
        counts = {"contexts": len(verdicts), "useful": int(sum(verdicts))}
        return Score(smoothed_average_precision(verdicts), evidence, counts)


_RANKED: Final = frozenset({"user_input", "retrieved_contexts", "reference"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPrecision(_UsefulContexts):
    """Average precision of the contexts useful to arrive at the reference (ragas 0.1).

    See: context_precision
    """

    needs = by_parameters(lambda metric: _RANKED - {"reference"} if metric.response_stands_in else _RANKED, _RANKED)

    response_stands_in: ClassVar[bool] = False
    """True if the response replaces a missing reference (0.1.9)."""

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input = sample.require("user_input")
        sample.require("retrieved_contexts")
        stands_in = self.response_stands_in and sample.reference is None and sample.response is not None
        return (yield from self._score(sample, user_input, sample.require("response" if stands_in else "reference")))


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextUtilization(_UsefulContexts):
    """Average precision of the contexts useful to arrive at the response (ragas 0.1).

    See: context_utilization
    """

    needs = frozenset({"user_input", "retrieved_contexts", "response"})

    reference_first: ClassVar[bool] = False
    """True if a reference is shown in place of the response, so that the metric is context_precision (0.1.9)."""

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        texts = texts_of(sample, self.needs)
        target = sample.reference if self.reference_first and sample.reference is not None else texts["response"]
        return (yield from self._score(sample, texts["user_input"], target))


Flags = tuple[bool, ...]
"""For each statement, True if it is supported."""

_NO_CONTEXT: Final = "nothing was retrieved"
_NOTHING_STATED: Final = "the judge found no statement to judge"


@dataclass(frozen=True, slots=True)
class _List:
    """The verdicts on one list of statements; None if no reply could be read."""

    reply: Reply
    verdicts: Flags | None
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseSensitivity(Voting):
    """Share of the response's statements that are wrong and that a context supports (ragas 0.1).

    Formula: Mean over statements of (not supported by the reference and supported by a context of the focus).
    Questions: Three requests and two for each context, one more for each reply that cannot be read; sentences are cut
        by pysbd.
    Undefined: nothing was retrieved | the judge found no statement to judge | ...
    Not: Where references are not complete: what they leave out counts as wrong.
    See: faithfulness | context_relevance
    Source: ragas/metrics/_noise_sensitivity.py

    A context is relevant if it supports a statement of the reference. With the irrelevant focus: supported by an
    irrelevant context and by no relevant one. The lower the better. Requests, in this order: statements of the
    reference and of the response; for each context its verdicts on both; the reference's verdicts on the response.
    Failed where lists of verdicts on the same statements differ in length.

    Statements that cannot be read are shown as NaN; lists of verdicts that cannot be read, all of them for the same
    statements, are taken as one yes. Where one verdict on the response's statements meets several, it counts for each.

    - `focus`: as the name of the metric says.
    """

    higher_is_better: ClassVar[bool] = False
    needs = frozenset({"user_input", "retrieved_contexts", "response", "reference"})
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({})
    asks = Kinds({Completion, Sentences})

    focus: Focus = Focus.RELEVANT

    def __post_init__(self) -> None:
        Published.__post_init__(self)
        base, _, own = self.name.rpartition("_")
        if own != self.focus:
            raise UsageError(
                f"Metric {self.name!r} takes focus={own}, got {self.focus!s}; take '{base}_{self.focus}' for that."
            )

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input, response = sample.require("user_input"), sample.require("response")
        reference = sample.require("reference")
        if not sample.contexts:
            return Undefined(_NO_CONTEXT)
        asker = JsonAsker()
        of_reference = yield from statements_of(asker, user_input, reference)
        of_response = yield from statements_of(asker, user_input, response)
        lists: list[_List] = []
        for context in sample.contexts:
            lists.append((yield from self._judged(asker, context.text, of_reference)))
            lists.append((yield from self._judged(asker, context.text, of_response)))
        lists.append((yield from self._judged(asker, reference, of_response)))
        return self._scored((of_reference, of_response), lists)

    def _judged(self, asker: JsonAsker, text: str, stated: MaybeRead[tuple[tuple[str, ...], ...]]) -> Plan[_List]:
        """Return the verdicts of a text on statements; unreadable statements are shown as NaN, as JSON writes it."""
        shown = "NaN"
        if stated.value is not None:
            shown = json.dumps([each for group in stated.value for each in group], ensure_ascii=False)
        read = yield from asker.samples(SUPPORT, {"contexts": text, "statements": shown}, self.replies)
        ballot = elected(read)
        if isinstance(ballot, UnreadableReply):
            return _List(read[0].reply, None, ("verdicts that could not be read were taken as yes",))
        return _List(ballot.reply, tuple(item.value != 0 for item in ballot.items), ballot.flags)

    def _scored(
        self, stated: Sequence[MaybeRead[tuple[tuple[str, ...], ...]]], lists: Sequence[_List]
    ) -> Score | Undefined:
        """Return the outcome; `lists`: for each context the verdicts on both texts, then those of the reference."""
        *of_contexts, last = lists
        on_reference, on_response, (right,) = _even(of_contexts[::2]), _even(of_contexts[1::2]), _even([last])
        if all(each.verdicts is None for each in of_contexts):
            raise of_contexts[1].reply.unreadable("No list of the contexts' verdicts can be read.")
        if not on_reference[0]:
            return Undefined(_NOTHING_STATED)
        relevant = [any(verdicts) for verdicts in on_reference]
        try:
            found = noisy(right, relevant, on_response, from_relevant=self.focus is Focus.RELEVANT)
        except ValueError as error:
            raise last.reply.unreadable(str(error)) from None
        if not found:
            return Undefined(_NOTHING_STATED)
        counts = {"statements": len(found), "noisy": sum(found), "relevant": sum(relevant), "contexts": len(relevant)}
        flags = [] if len(right) == len(on_response[0]) else ["one verdict was used for several statements"]
        flags += ["statements that could not be read were shown as NaN"] * any(read.value is None for read in stated)
        for each in (*of_contexts[::2], *of_contexts[1::2], last):
            flags += each.flags
        texts = [text for group in stated[1].value or () for text in group]
        texts += [""] * (len(found) - len(texts))
        return Score(
            mean(map(float, found)),
            evidence=(
                *(Evidence(EvidenceTarget.TEXT, 0, each.reply.verdict) for each in stated),
                *(Evidence(EvidenceTarget.CONTEXT, at // 2, each.reply.verdict) for at, each in enumerate(of_contexts)),
                *on_statements(last.reply.verdict, zip(map(float, found), texts, strict=False)),
            ),
            counts=counts,
            flags=tuple(dict.fromkeys(flags)),
        )


def _even(lists: Sequence[_List]) -> tuple[Flags, ...]:
    """Return lists of one length, one for each context; a single yes each if no list could be read.

    Raises AskFailed.
    """
    known = [each.verdicts for each in lists if each.verdicts is not None]
    if not known:
        return ((True,),) * len(lists)
    for each in lists:
        if each.verdicts is None or len(each.verdicts) != len(known[0]):
            raise each.reply.unreadable("The contexts have verdicts on different numbers of statements.")
    return tuple(known)
