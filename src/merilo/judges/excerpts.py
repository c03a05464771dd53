"""Excerpts of long contexts: the passages that the embedded judge reads if a context is too long to read whole.

Passages are selected by words. Each passage of a long context is scored by the weight of the words that it shares
with the question or statement. The best passages are used, in their original order, until the excerpt is full. All
later steps read the excerpt only, so the time and memory of a verdict are bounded, however long a context is.
Selecting the passages takes time in proportion to the context. A context of at most `CONTEXT_SIZE` is read whole if
all contexts of the question have at most `QUESTION_SIZE` together.

Sizes are in tokens of the encoder. Six characters count as at least one token, so a single endless word has a size
too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.cancellation import check_cancelled
from merilo.judges.question_echo import strip_question_echoes
from merilo.judges.words import coverage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from merilo.judges.blended import BlendedModel

    Size = Callable[[str], int]

CONTEXT_SIZE: Final = 20_000
"""Maximum tokens read of one context: about 85,000 characters of English."""
QUESTION_SIZE: Final = 80_000
"""Maximum tokens read of all contexts of one question."""
MAX_PAIRS: Final = 2_000
"""Maximum pairs of a window of the question or statement and a window of the contexts; see `_question_size`."""
_PASSAGE_SIZE: Final = 128
_WINDOW_SIZE: Final = 127
"""Additional tokens of a text per additional window of the encoder: windows overlap by half."""
_CHARACTERS_PER_TOKEN: Final = 6
_MAX_UNIT: Final = 600
"""Maximum characters of a unit; a longer sentence is split into units."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The sentences of a context that are read, whole or in part, with their positions in the context."""

    sentences: tuple[str, ...]
    places: tuple[int, ...] | None = None
    """Ascending; None if the context is read whole."""

    def place(self, sentence: int) -> int:
        """Return the position in the whole context of a sentence of the excerpt."""
        return sentence if self.places is None else self.places[sentence]


class _Unit(NamedTuple):
    text: str
    sentence: int
    size: int


def excerpts(model: BlendedModel, asked: Sequence[str], contexts: Sequence[Sequence[str]]) -> list[Excerpt]:
    """Return the excerpt of each context, given as its sentences. `asked`: the texts that select the passages."""
    lengths = [sum(map(len, each)) for each in contexts]
    if max(lengths, default=0) <= CONTEXT_SIZE and sum(lengths) <= _question_size(sum(map(len, asked))):
        return [Excerpt(tuple(each)) for each in contexts]  # short enough without counting tokens
    size = _size_of(model)
    most = _question_size(sum(map(size, asked)))
    sizes = [sum(map(size, each)) for each in contexts]
    limit = _limit(sizes, most)
    return [
        Excerpt(tuple(each)) if whole <= limit else _excerpt(asked, each, limit, size)
        for each, whole in zip(contexts, sizes, strict=True)
    ]


def _size_of(model: BlendedModel) -> Size:
    tokens = model.features.encodings.encoder.wordpiece.ids

    def size(text: str) -> int:
        check_cancelled()
        return max(len(tokens(text)), len(text) // _CHARACTERS_PER_TOKEN)

    return size


def _question_size(asked: int) -> int:
    """Return the maximum tokens of contexts for a question or statement of this size.

    The limit exists because each window of the question is paired with each window of the contexts.
    """
    return min(QUESTION_SIZE, MAX_PAIRS * _WINDOW_SIZE // max(1, -(-asked // _WINDOW_SIZE)))


def _limit(sizes: Sequence[int], most: int) -> int:
    """Return the largest limit per context, at most `CONTEXT_SIZE`, with which all contexts have at most `most`
    tokens.
    """
    left = most
    for number, size in enumerate(sorted(min(each, CONTEXT_SIZE) for each in sizes)):
        # In ascending order, a context below its equal part leaves the rest of that part to the larger ones.
        fair = left // (len(sizes) - number)
        if size > fair:
            return fair
        left -= size
    return CONTEXT_SIZE


def _excerpt(asked: Sequence[str], sentences: Sequence[str], limit: int, size: Size) -> Excerpt:
    """Return the passages of a context that share most with the texts; at least one, and the first on ties.

    A passage that only repeats a question scores nothing for it.
    """
    passages = list(_passages(sentences, size))
    texts = [[unit.text for unit in passage] for passage in passages]
    scores = [sum(coverage(each, strip_question_echoes(each, own)) for each in asked) for own in texts]
    room, kept = limit, set[int]()
    for place in sorted(range(len(passages)), key=scores.__getitem__, reverse=True):  # stable: ties keep their order
        room -= sum(unit.size for unit in passages[place])
        # Stop at the first passage that does not fit. Skipping it for a smaller, worse one would read less relevant
        # text.
        if room < 0 and kept:
            break
        kept.add(place)
    pieces: dict[int, list[str]] = {}
    for place in sorted(kept):
        for unit in passages[place]:
            pieces.setdefault(unit.sentence, []).append(unit.text.strip())
    return Excerpt(tuple(" ".join(each) for each in pieces.values()), tuple(pieces))


def _passages(sentences: Sequence[str], size: Size) -> Iterator[list[_Unit]]:
    """Yield the units of all sentences in order, grouped into passages of about `_PASSAGE_SIZE` tokens."""
    passage, total = list[_Unit](), 0
    for place, sentence in enumerate(sentences):
        for text in _units_of(sentence):
            unit = _Unit(text, place, size(text))
            if passage and total + unit.size > _PASSAGE_SIZE:
                yield passage
                passage, total = [], 0
            passage.append(unit)
            total += unit.size
    if passage:
        yield passage


def _units_of(text: str) -> Iterator[str]:
    """Yield a sentence in pieces of at most `_MAX_UNIT` characters, split at white space if possible."""
    start = 0
    while len(text) - start > _MAX_UNIT:
        cut = text.rfind(" ", start + _MAX_UNIT // 2, start + _MAX_UNIT)
        end = cut if cut > 0 else start + _MAX_UNIT
        yield text[start:end]
        start = end
    yield text[start:]
