"""Metrics of contexts in ragas 0.0.12 to 0.0.15: relevancy by copied sentences, recall by marked lines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.judging.ask import ask_each
from merilo.judging.kinds.completion import Completion
from merilo.judging.kinds.sentences import Sentences
from merilo.judging.kinds.similarities import Similarities
from merilo.metrics.base import EvidenceTarget, Kinds, Score, Undefined
from merilo.metrics.formulas import mean
from merilo_published.asking import Asker, RequestTemplate, ask_similarities, evidence_of, on_statements
from merilo_published.definition import bound, by_parameters, capped_fraction, fraction
from merilo_published.ragas_v0_0.answers import SAMPLING_TEMPERATURE, STEADY_TEMPERATURE, SYSTEM, RagasV00
from merilo_published.replies import ReplyFault

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan
    from merilo_published.asking import Reply

Pieces = tuple[str, ...]
"""The sentences of one text."""

_PHRASE: Final = "insufficient information."
_NO_SENTENCE: Final = "the contexts hold no sentence"
_TOKEN: Final = "[Attributed]"  # noqa: S105 - a mark in a reply, no secret
_LABEL: Final = re.compile(r"\[(not\s+)?attributed\]", re.IGNORECASE)


class Agreement(StrEnum):
    """The way to compare two replies."""

    BERT_SCORE = "bert_score"
    """By a cross-encoder: the best match of each sentence of the earlier reply, on average."""
    JACCARD = "jaccard"
    """Equal sentences / different sentences of both."""


class Segmentation(StrEnum):
    """The way to split a text into sentences."""

    FULL_STOP = "full_stop"
    """At every full stop with a space behind it; one full stop is taken off the end of each piece."""
    PYSBD = "pysbd"
    """By pysbd for English; a sentence keeps the spaces behind it."""


class ReplyUnit(StrEnum):
    """The unit that is counted in a reply."""

    LINES = "lines"
    """Lines, blank ones too; an empty reply is one line."""
    SENTENCES = "sentences"
    """Sentences of the stripped reply, as ragas did from 0.0.18 on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRelevancy(RagasV00):
    """Share of the contexts' sentences that a judge copies as helpful (ragas 0.0).

    Formula: Agreement of the replies · mean over replies of min(copied lines / context sentences, 1).
    Questions: One request for `strictness` replies; from two on, similarities of each pair of replies; sentences are
        cut by pysbd from 0.0.13 on.
    Undefined: the contexts hold no sentence (0.0.13; 0.0.15 gives 0)
    Not: To measure something new: a header line, a missing full stop or long contexts move the number.
    See: context_relevance
    Source: ragas/metrics/context_relevance.py

    The agreement is 1 for one reply, else the mean over all pairs of replies in sampling order. One request for
    `strictness` replies; nothing checks that a copied line occurs in the contexts. A similarity is taken to lie in [0,
    1], as the published cross-encoder (stsb-TinyBERT-L-4) gives it; another may leave the range. Undefined in 0.0.13
    when the contexts hold no sentence. Failed where replies without any sentence are to be compared. In 0.0.12 the
    metric called itself `context_ relevancy`, with a space; here it has its usual name. jaccard tells "A. " from "A.";
    bert_score looks from the earlier reply at the later only.

    - `agreement_metric`: ragas' own documentation calls the second option jaccard_score, which it refuses.
    - `segmentation`: full_stop in 0.0.12, so that a line break between contexts ends no sentence; then pysbd.
    - `reply_units`: two sentences on one line count once, and blank lines count.
    - `exact_phrase`: only "Insufficient Information." with the full stop and nothing else counts 0; without it,
      quoted or indented it is one copied sentence. False: any such form counts 0.
    - `no_sentence_is_zero`: contexts without a sentence score 0 (0.0.15). False: Undefined.
    """

    needs = frozenset({"user_input", "retrieved_contexts"})
    asks = by_parameters(lambda metric: metric.kinds, Kinds({Completion, Sentences}))
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({})

    strictness: int = 1
    agreement_metric: Agreement = Agreement.BERT_SCORE
    segmentation: Segmentation = Segmentation.PYSBD
    reply_units: ReplyUnit = ReplyUnit.LINES
    exact_phrase: bool = True
    no_sentence_is_zero: bool = False

    @property
    def kinds(self) -> Kinds:
        """Completion; Sentences where pysbd cuts; Similarities where several replies are compared by them."""
        kinds = Kinds({Completion})
        if self.segmentation is Segmentation.PYSBD:
            kinds |= {Sentences}
        return kinds | {Similarities} if self._compares else kinds

    @property
    def _compares(self) -> bool:
        return self.strictness > 1 and self.agreement_metric is Agreement.BERT_SCORE

    def max_questions(self, sample: Sample) -> int:
        cut = 1 + 2 * self.strictness if self.segmentation is Segmentation.PYSBD else 0
        pairs = self.strictness * (self.strictness - 1) // 2 if self._compares else 0
        return bound(sample, self.needs, self.strictness + cut + pairs)

    def judged(self, texts: Mapping[str, str]) -> Plan[Score | Undefined]:
        replies = yield from Asker(SYSTEM, temperature=SAMPLING_TEMPERATURE).samples(
            "context_relevancy", texts, self.strictness, likely="One sentence of the contexts."
        )
        replied = [reply.text for reply in replies]
        (of_contexts,), compared, counted = yield from self._pieces(texts["contexts"], replied)
        if not of_contexts and not self.no_sentence_is_zero:
            return Undefined(_NO_SENTENCE)
        copied = [
            0 if self._finds_nothing(one.text) else len(units) for one, units in zip(replies, counted, strict=True)
        ]
        overlaps = [capped_fraction(count, len(of_contexts)) for count in copied]
        agreement = yield from self._agreement(replies, compared)
        return Score(
            agreement * mean(overlaps),
            evidence=evidence_of(EvidenceTarget.TEXT, replies, overlaps),
            counts={"context_sentences": len(of_contexts), "copied": sum(copied), "replies": len(replies)},
            flags=tuple(self._oddities(of_contexts, replies)),
        )

    def _pieces(self, contexts: str, replies: Sequence[str]) -> Plan[tuple[list[Pieces], list[Pieces], list[Pieces]]]:
        compared = list(replies) if self.strictness > 1 else []
        counted = [reply.strip() for reply in replies] if self.reply_units is ReplyUnit.SENTENCES else []
        found = yield from self._cut([contexts, *compared, *counted])
        middle = 1 + len(compared)
        units = found[middle:] if counted else [tuple(reply.split("\n")) for reply in replies]
        return found[:1], found[1:middle], units

    def _cut(self, texts: Sequence[str]) -> Plan[list[Pieces]]:
        if self.segmentation is Segmentation.FULL_STOP:
            return [_at_full_stops(text) for text in texts]
        verdicts = yield from ask_each(Sentences(text, splitter="pysbd") for text in texts)
        return [verdict.texts for verdict in verdicts]

    def _finds_nothing(self, reply: str) -> bool:
        return reply.lower() == _PHRASE if self.exact_phrase else _says_nothing_found(reply)

    def _agreement(self, replies: Sequence[Reply], sentences: Sequence[Pieces]) -> Plan[float]:
        """Return the agreement of all pairs, on average; 1 for a single reply."""
        pairs = tuple(combinations(sentences, 2))
        if not pairs:
            return 1.0
        empty = [one for one, pieces in zip(replies, sentences, strict=True) if not pieces]
        if len(empty) > (0 if self._compares else 1):
            raise empty[0].unreadable("The reply holds no sentence to compare with those of the other replies.")
        if not self._compares:
            return mean(len({*left} & {*right}) / len({*left} | {*right}) for left, right in pairs)
        verdicts = yield from ask_similarities(Similarities(left, right) for left, right in pairs)
        return mean(mean(max(row) for row in verdict.rows) for verdict in verdicts)

    def _oddities(self, of_contexts: Pieces, replies: Sequence[Reply]) -> list[str]:
        found: list[str] = []
        if not of_contexts:
            found.append("the contexts hold no sentence and were scored 0")
        if any(_says_nothing_found(one.text) and not self._finds_nothing(one.text) for one in replies):
            found.append("a reply that found nothing was counted as a sentence for want of the exact phrase")
        if any(not one.text.strip() for one in replies) and self.reply_units is ReplyUnit.LINES:
            found.append("an empty reply was counted as a sentence")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRecall(RagasV00):
    """Share of the judge's lines that attribute a sentence of the reference to the contexts (ragas 0.0).

    Formula: Reply lines with "[Attributed]" / reply lines.
    Questions: One request.
    Not: To measure something new: a blank line or a heading in the reply lowers the number.
    See: context_recall
    Source: ragas/metrics/context_recall.py

    One request.

    - `every_line`: blank lines, headings and lines without any label count as not attributed, an empty reply
      gives 0, and letters must be as written. False: only lines with a label count, in upper or lower case,
      and a reply without a label is unreadable.
    """

    needs = frozenset({"reference", "retrieved_contexts"})

    every_line: bool = True

    def judged(self, texts: Mapping[str, str]) -> Plan[Score | Undefined]:
        template = RequestTemplate(
            "context_recall", "1. A sentence of the answer. The contexts say so. So [Attributed]", self._marks
        )
        asker = Asker(SYSTEM, temperature=STEADY_TEMPERATURE)
        read = yield from asker.read(template, texts)
        marks = read.value
        attributed = sum(marked for _, marked in marks)
        unlabelled = self.every_line and any(_LABEL.search(line) is None for line, _ in marks)
        return Score(
            fraction(attributed, len(marks)),
            evidence=on_statements(read.reply.verdict, ((float(marked), line) for line, marked in marks)),
            counts={"lines": len(marks), "attributed": attributed},
            flags=("lines without a label were counted as not attributed",) if unlabelled else (),
        )

    def _marks(self, reply: Reply) -> list[tuple[str, bool]]:
        """Return the lines that count, each with True if it says attributed. Raises ReplyFault if none counts."""
        lines = reply.text.split("\n")
        if self.every_line:
            return [(line, _TOKEN in line) for line in lines]
        labels = [(line, _LABEL.findall(line)) for line in lines]
        marks = [(line, not found[-1]) for line, found in labels if found]
        if not marks:
            raise ReplyFault("The reply holds neither [Attributed] nor [Not Attributed].")
        return marks


def _at_full_stops(text: str) -> Pieces:
    return tuple(piece.removesuffix(".") for piece in text.strip().split(". "))


def _says_nothing_found(reply: str) -> bool:
    return reply.lower().strip(" \t\n\"'`.") == _PHRASE.removesuffix(".")
