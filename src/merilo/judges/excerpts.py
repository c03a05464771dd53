"""Excerpts of long contexts: the passages that the embedded judge reads if a context is too long to read whole.

Passages are selected by words. Each passage of a long context is scored by the weight of the words that it shares
with the question or statement. The best passages are used, in their original order, until the excerpt is full. All
later steps read the excerpt only, so the time and memory of a verdict are bounded, however long a context is.

Sizes are in tokens of the encoder. Six characters count as at least one token, so a single endless word has a size
too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from merilo.cancellation import check_cancelled
from merilo.judges.question_echo import strip_question_echoes
from merilo.judges.words import coverage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.judges.blended import BlendedModel

CONTEXT_SIZE: Final = 20_000
"""Maximum tokens read of one context: about 85,000 characters of English."""
QUESTION_SIZE: Final = 80_000
"""Maximum tokens read of all contexts of one question. If they have more, each gets an equal part."""
MAX_PAIRS: Final = 2_000
"""Maximum pairs of a window of the question or statement and a window of the contexts."""
_PASSAGE_SIZE: Final = 128
_WINDOW_SIZE: Final = 127
"""Additional tokens of a text per additional window of the encoder: windows overlap by half."""
_CHARACTERS_PER_TOKEN: Final = 6
_MIN_READ: Final = 600
"""Characters. Of a sentence that has more than this and than the limit in tokens, only the beginning is read."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The sentences of a context that are read, with their positions in the context."""

    sentences: tuple[str, ...]
    places: tuple[int, ...] | None = None
    """Ascending; None if the context is read whole."""

    def place(self, sentence: int) -> int:
        """Return the position in the whole context of a sentence of the excerpt."""
        return sentence if self.places is None else self.places[sentence]


def excerpts(model: BlendedModel, asked: Sequence[str], contexts: Sequence[Sequence[str]]) -> list[Excerpt]:
    """Return the excerpt of each context, given as its sentences. `asked`: the texts that select the passages."""
    lengths = [sum(map(len, each)) for each in contexts]
    if max(lengths, default=0) <= CONTEXT_SIZE and sum(lengths) <= _question_size(sum(map(len, asked))):
        return [Excerpt(tuple(each)) for each in contexts]  # short enough without counting tokens
    most = _question_size(sum(_size(model, each) for each in asked))
    sizes = [sum(_size(model, text) for text in each) for each in contexts]
    fits = sum(min(each, CONTEXT_SIZE) for each in sizes) <= most
    limit = CONTEXT_SIZE if fits else most // len(contexts)
    return [
        Excerpt(tuple(each)) if whole <= limit else _excerpt(model, asked, each, limit)
        for each, whole in zip(contexts, sizes, strict=True)
    ]


def _size(model: BlendedModel, text: str) -> int:
    """Return the size of a text in tokens."""
    check_cancelled()
    return max(len(model.features.encodings.encoder.wordpiece.ids(text)), len(text) // _CHARACTERS_PER_TOKEN)


def _question_size(asked: int) -> int:
    """Return the maximum tokens of contexts for a question or statement of this size.

    The limit exists because each window of the question is paired with each window of the contexts.
    """
    return min(QUESTION_SIZE, MAX_PAIRS * _WINDOW_SIZE // max(1, -(-asked // _WINDOW_SIZE)))


def _excerpt(model: BlendedModel, asked: Sequence[str], sentences: Sequence[str], limit: int) -> Excerpt:
    """Return the passages of a context that share most with the texts; at least one, and the first on ties.

    A passage that only repeats a question scores nothing for it.
    """
    read = [each[: max(limit, _MIN_READ)] for each in sentences]
    sizes = [_size(model, each) for each in read]
    passages, room = list[list[int]](), -1
    for at, size in enumerate(sizes):
        room -= size
        if room < 0:
            passages.append([])
            room = _PASSAGE_SIZE - size
        passages[-1].append(at)
    texts = [[read[at] for at in passage] for passage in passages]
    scores = [sum(coverage(each, strip_question_echoes(each, own)) for each in asked) for own in texts]
    kept, left = list[int](), limit
    for place in sorted(range(len(passages)), key=scores.__getitem__, reverse=True):  # stable: ties keep their order
        left -= sum(sizes[at] for at in passages[place])
        # Stop at the first passage that does not fit: a smaller, worse one would be less relevant text.
        if left < 0 and kept:
            break
        kept += passages[place]
    places = tuple(sorted(kept))
    return Excerpt(tuple(read[at] for at in places), places)
