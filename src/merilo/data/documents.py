"""Source documents, and the position of any text in them, whatever its white space (`data/spans.py`)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from merilo.data.corpus import load_corpus
from merilo.data.spans import DenseSpan, Span, dense

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike


class Document:
    """One source document."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def _places(self) -> list[int]:
        """The offset of each character that is not white space."""
        return [place for place, char in enumerate(self.text) if not char.isspace()]

    def dense_of(self, span: Span) -> Span:
        """Return the dense positions of a span of the text."""
        return Span(bisect_left(self._places, span.start), bisect_left(self._places, span.end))

    def span_of(self, start: int, end: int) -> Span:
        """Return the offsets in the text of a dense span that is not empty; no white space at either end."""
        return Span(self._places[start], self._places[end - 1] + 1)


class Documents:
    """The documents that chunks come from, by id."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._documents = {name: Document(text) for name, text in texts.items()}
        self._names = list(texts)
        self._at = {name: at for at, name in enumerate(self._names)}
        # One search over all documents. A line feed is white space, so no text can match across two of them.
        parts = [dense(text) for text in texts.values()]
        self._joined = "\n".join(parts)
        self._starts = [0, *accumulate(len(part) + 1 for part in parts)][: len(parts)]

    def __contains__(self, name: object) -> bool:
        return name in self._documents

    def __getitem__(self, name: str) -> Document:
        return self._documents[name]

    def whole(self, name: str) -> DenseSpan:
        """Return the span of a whole document."""
        at = self._at[name]
        end = self._starts[at + 1] - 1 if at + 1 < len(self._starts) else len(self._joined)
        return DenseSpan(name, 0, end - self._starts[at])

    def find(self, text: str, document: str | None = None) -> DenseSpan | None:
        """Return the first place of a text, in one document or in all in their order; None if there is none."""
        wanted = dense(text)
        if not wanted:
            return None
        if document is None:
            low, high = 0, len(self._joined)
        else:
            low = self._starts[self._at[document]]
            high = low + self.whole(document).end
        place = self._joined.find(wanted, low, high)
        if place < 0:
            return None
        at = bisect_right(self._starts, place) - 1
        start = place - self._starts[at]
        return DenseSpan(self._names[at], start, start + len(wanted))

    def text_of(self, span: DenseSpan) -> str:
        """Return the text of a span that is not empty, as it is in the document."""
        start, end = self._documents[span.document].span_of(span.start, span.end)
        return self._documents[span.document].text[start:end]


def load_documents(path: str | PathLike[str]) -> Documents:
    """Return the documents of a corpus; see `load_corpus`, also for the errors."""
    return Documents({each.id: each.text for each in load_corpus(Path(path))})
