"""The retrieved text of a sample, compared with its gold evidence character by character.

A sample alone holds everything that a metric reads (`data/span_labels.py` writes it):

- `retrieved_contexts[i].metadata["located"]`: [document, start, end], absent if the text is in no document;
- `reference_contexts`: the relevant text, each with `located`;
- `metadata["span_labels"]`: [document, start, end, grade] of all labels, absent if only reference contexts are known.

Positions do not count white space (`data/spans.py`). Without documents, the reference contexts themselves take their
place: chunks of the same text contain one another or overlap at their ends.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from merilo.data.sentences import MAX_GRADE, DenseSpan, dense

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from merilo.data.context import Context
    from merilo.data.sample import Sample

LOCATED: Final = "located"
SPAN_LABELS: Final = "span_labels"
_MIN_OVERLAP: Final = 20
"""Characters that two texts must share at their ends to be chunks of one text."""
_MAX_POSITION: Final = 10**8
"""The largest dense position in metadata; a longer document would not fit into memory several times."""


class Graded(NamedTuple):
    """A stretch of a document with its grade."""

    span: DenseSpan
    grade: float


class Stretch(NamedTuple):
    """Consecutive characters of the retrieved text, in reading order, that have the same judgement."""

    characters: int
    grade: float | None
    """None if the text is not judged."""
    repeated: bool
    """True if an earlier context had the same characters of the document."""


@dataclass(frozen=True, slots=True)
class SpanView:
    """The retrieved text and the labels of one sample."""

    retrieved: tuple[DenseSpan, ...]
    """In reading order. Text that is in no document has a name that no document can have."""
    labels: tuple[Graded, ...]
    closed: bool
    """True if text without a label is known not to be relevant."""
    lost: int
    """Number of retrieved contexts that are in no document."""

    @property
    def relevant(self) -> tuple[Graded, ...]:
        """The labels with a grade above 0."""
        return tuple(each for each in self.labels if each.grade > 0)

    def stretches(self, characters: int | None = None) -> Iterator[Stretch]:
        """Yield the retrieved text in reading order, at most its first `characters`."""
        by_document: defaultdict[str, list[Graded]] = defaultdict(list)
        for each in self.labels:
            by_document[each.span.document].append(each)
        seen: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        left = characters
        for span in self.retrieved:
            end = span.end if left is None else min(span.end, span.start + left)
            if left is not None:
                left -= end - span.start
            for start, stop, repeated in _added(seen[span.document], span.start, end):
                for piece, grade in _graded(by_document[span.document], start, stop):
                    yield Stretch(piece, 0.0 if grade is None and self.closed else grade, repeated)


def _added(seen: list[tuple[int, int]], start: int, end: int) -> list[tuple[int, int, bool]]:
    """Add a span to the parts of a document that were read, as disjoint spans in order.

    Return its pieces in order, each with True if it had been read before.
    """
    pieces: list[tuple[int, int, bool]] = []
    kept: list[tuple[int, int]] = []
    at, low, high = start, start, end
    for first, last in seen:
        if last < start or first > end:
            kept.append((first, last))
            continue
        low, high = min(low, first), max(high, last)
        if first > at:
            pieces.append((at, first, False))
            at = first
        if min(last, end) > at:
            pieces.append((at, min(last, end), True))
            at = min(last, end)
    if at < end:
        pieces.append((at, end, False))
    if start < end:
        seen[:] = sorted([*kept, (low, high)])
    return pieces


def _graded(labels: Sequence[Graded], start: int, end: int) -> Iterator[tuple[int, float | None]]:
    """Yield the characters from start to end as (number, grade); `labels`: disjoint, in order, of one document."""
    at = start
    first = max(0, bisect_right(labels, start, key=lambda each: each.span.start) - 1)
    for each in labels[first:]:
        if each.span.start >= end:
            break
        low, high = max(each.span.start, at), min(each.span.end, end)
        if low < high:
            if low > at:
                yield low - at, None
            yield high - low, each.grade
            at = high
    if at < end:
        yield end - at, None


def view_of(sample: Sample) -> SpanView | None:
    """Return the retrieved text and the evidence of a sample; None if its metadata holds other things than spans.

    Raises MissingField.
    """
    retrieved, gold = sample.require("retrieved_contexts"), sample.require("reference_contexts")
    rows = sample.metadata.get(SPAN_LABELS)
    if rows is None and not any(LOCATED in each.metadata for each in (*retrieved, *gold)):
        return _by_text(retrieved, gold)
    try:
        if rows is None:
            spans = [DenseSpan(*_row(each.metadata[LOCATED])) for each in gold if LOCATED in each.metadata]
            labels = _disjoint_ones(spans)
        else:
            labels = tuple(
                Graded(DenseSpan(*_row(row[:3])), _grade(row[3])) for row in cast("list[list[object]]", rows)
            )
        places = [DenseSpan(*_row(each.metadata[LOCATED])) if LOCATED in each.metadata else None for each in retrieved]
    except (TypeError, ValueError, IndexError, KeyError):
        return None
    own = [place or _nowhere(context.text) for context, place in zip(retrieved, places, strict=True)]
    lost = sum(place is None and bool(dense(each.text)) for each, place in zip(retrieved, places, strict=True))
    return SpanView(tuple(own), tuple(sorted(labels)), rows is None, lost)


def _row(value: object) -> tuple[str, int, int]:
    """Return a span in metadata. Raises ValueError or TypeError for anything else."""
    document, start, end = cast("list[object]", value)
    if (
        not isinstance(document, str)
        or type(start) is not int
        or type(end) is not int
        or not 0 <= start <= end <= _MAX_POSITION
    ):
        raise ValueError("not a span")
    return document, start, end


def _grade(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= MAX_GRADE:
        raise ValueError("not a grade")
    return max(0.0, float(value))


def _nowhere(text: str) -> DenseSpan:
    """Return a place for text that is in no document: equal texts are at the same one."""
    return DenseSpan(f"\n{dense(text)}", 0, len(dense(text)))


def _disjoint_ones(spans: Sequence[DenseSpan]) -> tuple[Graded, ...]:
    found: list[DenseSpan] = []
    for each in sorted(spans):
        last = found[-1] if found else None
        if last is not None and last.document == each.document and each.start <= last.end:
            found[-1] = last._replace(end=max(last.end, each.end))
        else:
            found.append(each)
    return tuple(Graded(each, 1.0) for each in found)


# -- without documents ----------------------------------------------------------------------------------


def _by_text(retrieved: Sequence[Context], gold: Sequence[Context]) -> SpanView:
    """Return the view in which each distinct reference context is a separate document."""
    texts = [text for text in dict.fromkeys(dense(each.text) for each in gold) if text]
    # A reference context inside another one adds no text.
    texts = [text for text in texts if not any(text in other for other in texts if other != text)]
    spans = [span for context in retrieved for span in _shared(dense(context.text), texts)]
    labels = tuple(Graded(DenseSpan(f"{at}", 0, len(text)), 1.0) for at, text in enumerate(texts))
    return SpanView(tuple(spans), tuple(sorted(labels)), closed=True, lost=0)


def _shared(text: str, texts: Sequence[str]) -> list[DenseSpan]:
    """Return a retrieved text as spans of the reference texts, and of itself where it shares nothing with them."""
    shared = sorted((found, at) for at, other in enumerate(texts) if (found := overlap(text, other)) is not None)
    pieces: list[DenseSpan] = []
    read = 0
    for (start, length, offset), at in shared:
        if start > read:
            pieces.append(_nowhere(text[read:start]))
        pieces.append(DenseSpan(f"{at}", offset, offset + length))
        read = max(read, start + length)
    return [*pieces, _nowhere(text[read:])] if read < len(text) else pieces


def overlap(text: str, other: str) -> tuple[int, int, int] | None:
    """Return where two chunks of one text overlap: start in `text`, length, start in `other`; None if they do not."""
    if not text:
        return None
    if (place := other.find(text)) >= 0:
        return 0, len(text), place
    if (place := text.find(other)) >= 0:
        return place, len(other), 0
    found = [(len(text) - length, length, 0) for length in [_end_in_start(text, other)] if length]
    found += [(0, length, len(other) - length) for length in [_end_in_start(other, text)] if length]
    return max(found, key=lambda each: each[1], default=None)


def _end_in_start(first: str, second: str) -> int:
    """Return the length of the longest end of `first` that begins `second`, at least `_MIN_OVERLAP`; otherwise 0."""
    start = second[:_MIN_OVERLAP]
    if len(start) < _MIN_OVERLAP:
        return 0
    place = first.find(start)
    while place >= 0:
        if second.startswith(first[place:]):
            return len(first) - place
        place = first.find(start, place + 1)
    return 0
