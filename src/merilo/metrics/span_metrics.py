"""Metrics of the retrieved text as spans of source documents: overlap with gold evidence, in characters.

They ask nothing. The same text gives the same value however it is split into contexts, so retrievers with different
chunkers can be compared (design/adapters-and-data.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import fsum, log2
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from merilo.data.span_view import SpanView, Stretch, view_of
from merilo.errors import UsageError
from merilo.metrics.base import Kinds, Score, Undefined, choice
from merilo.metrics.steps import NOTHING_RETRIEVED
from merilo.metrics.variants import RetrievalMetric, described, variant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan

    Formula = Callable[["_Counts", int | None], float | str]

NO_EVIDENCE: Final = "no text is labelled as relevant"
NOT_JUDGED: Final = "some of the retrieved text is not judged"
NOT_LOCATED: Final = "a retrieved context is in no document"
NO_SPANS: Final = "the metadata's spans are not lists of a document, a start and an end"
_STEP: Final = 100
"""Characters of the retrieved text that have the same discount."""
_RANK: Final = 1_000
"""Characters that count as one rank."""


class Unjudged(StrEnum):
    """The value of a sample whose retrieved text has no label in places."""

    UNDEFINED = "undefined"
    """None."""
    IRRELEVANT = "irrelevant"
    """The value with this text as not relevant, as trec_eval treats documents that are not judged."""
    LOW = "low"
    """The lowest value that labels of this text could give."""
    HIGH = "high"
    """The highest value that labels of this text could give."""


class _Counts(NamedTuple):
    """What is read: distinct characters, and what is labelled."""

    view: SpanView
    stretches: tuple[Stretch, ...]
    unjudged_as: Unjudged
    read: int
    found: int
    unjudged: int
    relevant: int
    hoped: int
    """The unjudged characters that count as relevant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _SpanMetric(RetrievalMetric):
    """A metric of the characters of the retrieved contexts.

    Questions: None: positions are compared.
    Undefined: some of the retrieved text is not judged, or a retrieved context is in no document (only with
        unjudged=undefined, the default) | the metadata's spans are not lists of a document, a start and an end
    """

    needs = frozenset({"retrieved_contexts", "reference_contexts"})
    asks = Kinds()
    formula: ClassVar[Formula]
    """The value, or the reason why there is none."""

    characters: int | None = None
    """The number of characters, white space excluded, of the retrieved text that count; None for all."""
    unjudged: Unjudged = Unjudged.UNDEFINED
    """The value if some of the retrieved text has no label."""

    def __post_init__(self) -> None:
        if self.characters is not None and self.characters < 1:
            raise UsageError(f"Metric {self.name!r} needs characters of at least 1, got {self.characters}.")
        member = choice(Unjudged, self.unjudged, metric=self.name, parameter="unjudged")
        object.__setattr__(self, "unjudged", member)

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        yield from ()
        view = view_of(sample)
        if view is None:
            return Undefined(NO_SPANS)
        stretches = tuple(view.stretches(self.characters))
        new = [each for each in stretches if not each.repeated]
        read = sum(each.characters for each in new)
        found = sum(each.characters for each in new if each.grade)
        unjudged = sum(each.characters for each in new if each.grade is None)
        relevant = sum(each.span.end - each.span.start for each in view.relevant)
        hoped = unjudged if self.unjudged is Unjudged.HIGH else 0
        counts = _Counts(view, stretches, self.unjudged, read, found, unjudged, relevant, hoped)
        value = type(self).formula(counts, self.characters)
        if isinstance(value, str):
            return Undefined(value)
        if self.unjudged is Unjudged.UNDEFINED and counts.unjudged:
            return Undefined(NOT_LOCATED if view.lost else NOT_JUDGED)
        shown = {"retrieved": counts.read, "unjudged": counts.unjudged, "found": counts.found}
        return Score(value, counts={**shown, "relevant": counts.relevant}, flags=(NOT_LOCATED,) if view.lost else ())


def _precision(counts: _Counts, _: int | None) -> float | str:
    return (counts.found + counts.hoped) / counts.read if counts.read else NOTHING_RETRIEVED


def _recall(counts: _Counts, _: int | None) -> float | str:
    if not counts.relevant:
        return NO_EVIDENCE
    return (counts.found + counts.hoped) / (counts.relevant + counts.hoped)


def _ndcg(counts: _Counts, characters: int | None) -> float | str:
    evidence = [(each.grade, each.span.end - each.span.start) for each in counts.view.relevant]
    if not evidence:
        return NO_EVIDENCE
    top = max(grade for grade, _ in evidence)
    high = counts.unjudged_as is Unjudged.HIGH
    gains: list[tuple[float, int]] = []
    for grade, length, repeated in ((each.grade, each.characters, each.repeated) for each in counts.stretches):
        known = (top if high else 0.0) if grade is None else grade
        gains.append((0.0 if repeated else known, length))
    if counts.unjudged_as is Unjudged.LOW:
        evidence.append((top, counts.unjudged))  # the best ranking could have begun with this text
    ideal = _discounted(sorted(evidence, reverse=True), characters)
    return min(1.0, _discounted(gains, characters) / ideal)


def _discounted(gains: Iterable[tuple[float, int]], characters: int | None) -> float:
    """Return the sum of gain * discount over all characters, given as (gain of one, number) in reading order."""
    parts: list[float] = []
    at = 0
    for gain, length in gains:
        end = at + length if characters is None else min(at + length, characters)
        while at < end:
            start = at - at % _STEP
            stop = min(end, start + _STEP)
            parts.append(gain * (stop - at) / log2(2 + start / _RANK))
            at = stop
    return fsum(parts)


def _row(name: str, doc: str, formula: Formula, *, ranked: bool = False) -> type[_SpanMetric]:
    """Return a metric whose docstring is its card."""
    card = described(doc, _SpanMetric.card)
    return variant(_SpanMetric, name, doc, formula=staticmethod(formula), ranked=ranked, card=card)


_EVIDENCE: Final = """\
Evidence are the labels of `--qrels` (spans) and `--documents`, otherwise `reference_contexts`, which are then all
    that is relevant. Text without a label gives no value. With `unjudged=irrelevant` it counts as not relevant, and
    `unjudged=low` and `unjudged=high` give the lowest and the highest value that labels of this text could give.
    `characters=N` reads the first N characters only."""
_COUNTED: Final = "White space does not count, and repeated text counts once."

SpanPrecision: Final = _row(
    "span_precision",
    f"""Share of the retrieved characters that are relevant.

    Meaning: retrieved text that is labelled relevant
    Formula: Distinct retrieved characters labelled as relevant / distinct retrieved characters. {_COUNTED}
    Undefined: {NOTHING_RETRIEVED} | ...
    Use: To compare retrievers that split the documents differently, at no cost.
    Not: Without gold evidence: context_relevance asks a judge.
    See: span_recall | id_precision | context_relevance
    Source: Precision in characters of INEX (Kamps et al. 2008).

    {_EVIDENCE}
    """,
    _precision,
)
SpanRecall: Final = _row(
    "span_recall",
    f"""Share of the relevant characters that were retrieved.

    Meaning: relevant text that is retrieved
    Formula: Distinct retrieved characters labelled as relevant / all characters labelled as relevant. {_COUNTED}
    Undefined: {NO_EVIDENCE} | ...
    Use: To compare retrievers that split the documents differently, at no cost. Set `characters` to the amount of text
        that the generator reads, equal for all.
    Not: If other text than the labelled one can contain the answer: context_recall asks a judge.
    See: span_precision | id_recall | context_recall
    Source: Recall in characters of INEX (Kamps et al. 2008).

    Text that was neither judged nor retrieved counts as not relevant.

    {_EVIDENCE}
    """,
    _recall,
)
SpanNDCG: Final = _row(
    "span_nDCG",
    f"""nDCG of the retrieved characters: 1 if all evidence is retrieved, before other text.

    Meaning: relevant text comes first
    Formula: Sum of grade / log2(rank + 1) over the retrieved characters / the same sum over all evidence, highest grade
        first. The rank is 1 + the characters before / {_RANK:,}, in steps of {_STEP}. {_COUNTED}
    Undefined: {NO_EVIDENCE} | ...
    Use: To compare retrievers that split the documents differently, at no cost. One number for finding the evidence and
        ranking it first.
    Not: If the generator reads all retrieved text in one piece: use span_recall.
    See: span_recall | nDCG | context_ranking
    Source: Järvelin & Kekäläinen 2002 (ACM TOIS 20); position in the text as rank: Sakai & Dou (SIGIR 2013).

    Ranks are in steps of characters, so they do not depend on the chunks. A repeated character takes a place and gains
    nothing. The bounds hold if no text without a label has a grade above the highest label of the sample; they may be
    wider than necessary. Ranks by position in the text are as in U-measure.

    {_EVIDENCE}
    """,
    _ndcg,
    ranked=True,
)


METRICS: Final = (SpanPrecision, SpanRecall, SpanNDCG)
