"""Passages of documents, the draw from them, and the text that is left without a passage."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from math import log
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.commands.label.run import drawn
from merilo.data.sentences import split
from merilo.judges.words import stems

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from merilo.data.corpus import SourceDocument

_RAREST: Final = 20
"""Number of words of a passage, the rarest ones, by which similar passages are found."""

_COMMON: Final = 2_000
"""Words in more passages than this find no similar passages, unless they are the rarest word of a passage. They
distinguish little, and would take most of the time in a large corpus."""


class Passage(NamedTuple):
    """Consecutive sentences of one document, as offsets in its text."""

    document: int
    """Index of the document."""
    start: int
    end: int
    text: str
    sentences: tuple[str, ...]
    """The sentences, each as `folded` returns it."""


def folded(sentence: str) -> str:
    """Return a sentence without differences of white space and case, for comparison."""
    return " ".join(sentence.split()).casefold()


def without_sentences(text: str, removed: Collection[str]) -> str:
    """Return the text without the sentences that are equal to a removed one, as `folded` returns them.

    A cut can make other sentences of the rest, so the rest is split again until none is left.
    """
    while found := [span for span in split(text) if folded(text[span.start : span.end]) in removed]:
        for span in reversed(found):
            text = text[: span.start] + text[span.end :].lstrip(" ")
    return text


@dataclass(frozen=True)
class Corpus:
    """Documents divided into passages of at most `size` sentences, which do not overlap."""

    documents: tuple[SourceDocument, ...]
    size: int

    @cached_property
    def passages(self) -> tuple[Passage, ...]:
        """All passages in the order of the documents."""
        found: list[Passage] = []
        for index, document in enumerate(self.documents):
            text, spans = document.text, split(document.text)
            for first in range(0, len(spans), self.size):
                own = spans[first : first + self.size]
                start, end = own[0].start, own[-1].end
                sentences = tuple(folded(text[each.start : each.end]) for each in own)
                found.append(Passage(index, start, end, text[start:end], sentences))
        return tuple(found)

    def id_of(self, passage: Passage) -> str:
        """Return `DOCUMENT:START-END`, which is unique."""
        return f"{self.documents[passage.document].id}:{passage.start}-{passage.end}"

    def draw(self, number: int, *, seed: int) -> list[int]:
        """Return the indices of `number` passages drawn uniformly without replacement, or of all, in corpus order."""
        indices = {self.id_of(each): index for index, each in enumerate(self.passages)}
        return sorted(indices[name] for name in drawn([*indices], number, key=f"sample-questions {seed}"))

    def others(self, index: int, number: int) -> tuple[str, ...]:
        """Return the texts, at most `number`, in which the answer may be found without the passage at `index`.

        These are the passages before and after it, then those of all documents that share its rarest words. Sentences
        equal to one of the passage are removed from them.
        """
        passage = self.passages[index]
        beside = [each for each in (index - 1, index + 1) if 0 <= each < len(self.passages)]
        near = [each for each in beside if self.passages[each].document == passage.document]
        places = [*near, *(each for each in self._similar(index) if each not in near)]
        found = (without_sentences(self.passages[place].text, passage.sentences).strip() for place in places)
        return tuple(islice(filter(None, found), number))

    def without(self, passages: Sequence[Passage]) -> list[SourceDocument]:
        """Return the documents without the sentences of these passages, wherever a sentence occurs."""
        removed = frozenset(sentence for passage in passages for sentence in passage.sentences)
        changed = {each.document for each in self.passages if not removed.isdisjoint(each.sentences)}
        return [
            each._replace(text=without_sentences(each.text, removed)) if index in changed else each
            for index, each in enumerate(self.documents)
        ]

    @cached_property
    def _postings(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = defaultdict(list)
        for index, passage in enumerate(self.passages):
            for word in dict.fromkeys(stems(passage.text)):
                found[word].append(index)
        return found

    def _similar(self, index: int) -> list[int]:
        """Return the passages that share words with this one, by the summed rarity of the words; ties in order."""
        own = sorted(
            dict.fromkeys(stems(self.passages[index].text)), key=lambda each: (len(self._postings[each]), each)
        )
        scores: dict[int, float] = defaultdict(float)
        for at, word in enumerate(own[:_RAREST]):
            places = self._postings[word]
            if at and len(places) > _COMMON:
                break
            for place in places:
                scores[place] += log(1 + len(self.passages) / len(places))
        scores.pop(index, None)
        return sorted(scores, key=lambda place: (-scores[place], place))
