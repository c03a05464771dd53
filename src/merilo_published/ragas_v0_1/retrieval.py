"""Metrics of contexts in ragas 0.1: relevancy, recall, entity recall, precision, utilization and noise sensitivity."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.errors import UsageError
from merilo.judging.ask import ask_each
from merilo.judging.kinds.completion import Completion
from merilo.judging.kinds.sentences import Sentences
from merilo.metrics.base import Evidence, EvidenceTarget, Kinds, Score, Undefined
from merilo.metrics.formulas import mean
from merilo_published.asking import Asker, UnreadableReply, on_statements
from merilo_published.definition import (
    JudgesBlank,
    Published,
    by_parameters,
    capped_fraction,
    fraction,
    noisy,
    smoothed_average_precision,
    texts_of,
)
from merilo_published.ragas_v0_1.asking import (
    SPLITTER,
    SUPPORT,
    SYSTEM,
    JsonAsker,
    Voting,
    elected,
    json_template,
    read_judged,
    read_texts,
    read_verdict,
    statements_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan
    from merilo_published.asking import Reply
    from merilo_published.ragas_v0_1.asking import MaybeRead


_PHRASE: Final = "insufficient information."
_AROUND: Final = " \t\r\n.\"'“”*`"
_EPSILON: Final = 1e-8
_NO_STATEMENT: Final = "the judge found no statement in the reference"
_BLANK: Final = "what is to be judged is blank (with ask_blank=false)"
_NO_SENTENCE: Final = "the contexts hold no sentence (with ask_blank=false)"

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
    Undefined: the contexts hold no sentence (with ask_blank=false) | what is to be judged is blank (with
        ask_blank=false)
    Use: To understand, or to compare with, numbers of ragas up to 0.1.10.
    Not: To measure something new: a reply that says in other words that nothing helps counts as a sentence.
    See: context_relevance
    Source: ragas/metrics/_context_relevancy.py

    pysbd splits both. 0.1.12 removed this metric. One request, also if there are no contexts.

    - `exact_phrase`: only the reply "insufficient information." (in any case) counts as 0. Without the full stop, in
      quotes or indented, it is one copied sentence. False: all these forms count as 0.
    - `count_absent`: sentences that are not in the contexts count. False: only those that are, each once.
    - `ask_blank`: a blank question or blank contexts are judged like any others. False: Undefined, and so are
      contexts without a sentence.
    """

    needs = frozenset({"user_input", "retrieved_contexts"})
    asks = Kinds({Completion, Sentences})
    most = 3
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({"nothing to judge": "ask_blank"})

    ask_blank: bool = True
    exact_phrase: bool = True
    count_absent: bool = True

    def judged(self, texts: Mapping[str, str]) -> Plan[Score | Undefined]:
        if not self.ask_blank and not all(text.strip() for text in texts.values()):
            return Undefined(_BLANK)
        asker = Asker(SYSTEM, temperature=1e-8)
        reply = yield from asker.ask("context_relevancy", texts, likely="A sentence of the contexts.")
        pieces = yield from ask_each(Sentences(text, SPLITTER) for text in self._texts(texts["contexts"], reply))
        found, *copied = (tuple(piece.texts) for piece in pieces)
        extracted = self._extracted(found, copied[0] if copied else ())
        if not found and not self.ask_blank:
            return Undefined(_NO_SENTENCE)
        return Score(
            capped_fraction(extracted, len(found)),
            evidence=(Evidence(EvidenceTarget.TEXT, 0, reply.verdict, value=float(extracted)),),
            counts={"sentences": len(found), "extracted": extracted},
        )

    def _texts(self, contexts: str, reply: Reply) -> tuple[str, ...]:
        """Return the texts to split: the contexts, and the reply unless it says that nothing helps."""
        plain = reply.text if self.exact_phrase else f"{reply.text.strip(_AROUND)}."
        return (contexts,) if plain.lower() == _PHRASE else (contexts, reply.text.strip())

    def _extracted(self, found: Sequence[str], copied: Sequence[str]) -> int:
        if self.count_absent:
            return len(copied)
        return len({piece.strip() for piece in copied} & {piece.strip() for piece in found})


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

    - `reproducibility`: see `Voting`; the replies that can be read vote on each place of the list. Lists of different
      lengths: the first decides alone.
    """

    needs = frozenset({"user_input", "retrieved_contexts", "reference"})
    most = by_parameters(lambda metric: 2 * metric.replies, 2)

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

    Two requests: the reference's entities, then those of the joined contexts. An entity that the reference's list names
    twice counts twice below the line. A reply that cannot be read counts as an empty list. No entity in the reference
    scores 0.
    """

    needs = frozenset({"retrieved_contexts", "reference"})
    most = 4

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
    most = 0
    each_context = by_parameters(lambda metric: 2 * metric.replies, 2)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPrecision(_UsefulContexts):
    """Average precision of the contexts useful to arrive at the reference (ragas 0.1).

    See: context_precision

    - `response_stands_in`: if there is no reference, the response replaces it (0.1.9). False: the
      reference is needed (0.1.22).
    """

    response_stands_in: bool = False

    @property
    def needs(self) -> frozenset[str]:
        """The user input and the contexts, and the reference unless the response can replace it."""
        common = frozenset({"user_input", "retrieved_contexts"})
        return common if self.response_stands_in else common | {"reference"}

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input = sample.require("user_input")
        sample.require("retrieved_contexts")
        stands_in = self.response_stands_in and sample.reference is None and sample.response is not None
        return (yield from self._score(sample, user_input, sample.require("response" if stands_in else "reference")))


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextUtilization(_UsefulContexts):
    """Average precision of the contexts useful to arrive at the response (ragas 0.1).

    See: context_utilization

    - `reference_first`: where there is a reference, it is shown in place of the response, so that the metric is
      context_precision (0.1.9). False: always the response (0.1.22).
    """

    needs = frozenset({"user_input", "retrieved_contexts", "response"})

    reference_first: bool = False

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        texts = texts_of(sample, self.needs)
        target = sample.reference if self.reference_first and sample.reference is not None else texts["response"]
        return (yield from self._score(sample, texts["user_input"], target))


Flags = tuple[bool, ...]
"""For each statement, True if it is supported."""

_NO_CONTEXT: Final = "nothing was retrieved"
_NOTHING_STATED: Final = "the judge found no statement to judge"


class Focus(StrEnum):
    """The contexts that the wrong statements come from."""

    RELEVANT = "relevant"
    """Contexts that support a statement of the reference."""
    IRRELEVANT = "irrelevant"
    """Contexts that support no statement of the reference."""


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
    - `reproducibility`: as for faithfulness.
    """

    higher_is_better: ClassVar[bool] = False
    needs = frozenset({"user_input", "retrieved_contexts", "response", "reference"})
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({})
    asks = Kinds({Completion, Sentences})
    most = by_parameters(lambda metric: 6 + 2 * metric.replies, 8)
    each_context = by_parameters(lambda metric: 4 * metric.replies, 4)

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
