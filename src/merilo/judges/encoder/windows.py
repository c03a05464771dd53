"""Overlapping windows of whole sentences for long texts: no token of a text is left out."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.judges.encoder.wordpiece import WordPiece


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of a text, as the ids of its pieces, without special tokens."""

    sentences: range
    """The indices of its sentences; of one sentence if the window is a part of a longer one."""
    pieces: tuple[int, ...]
    ends: tuple[int, ...]
    """The end of each of its sentences, as an index into its pieces."""

    @classmethod
    def of(cls, pieces: Sequence[int], sentence: int = 0) -> Self:
        """Return a window of one sentence, or of a part of one."""
        return cls(range(sentence, sentence + 1), tuple(pieces), (len(pieces),))


def windows(sentences: Sequence[str], wordpiece: WordPiece, *, longest: int) -> tuple[Window, ...]:
    """Return windows of at most `longest` pieces, in order: one if everything fits, an empty one for no sentences.

    Each window begins in the middle of the previous one, or later if it would be too long otherwise. A sentence of
    more than `longest` pieces is separate, in parts that overlap by half.
    """
    pieces = [tuple(wordpiece.ids(sentence)) for sentence in sentences]
    pieces_before = [0, *accumulate(map(len, pieces))]
    found: list[Window] = []
    first = 0

    def close(end: int) -> None:
        if end > first:
            ends = tuple(each - pieces_before[first] for each in pieces_before[first + 1 : end + 1])
            flat = tuple(piece for each in pieces[first:end] for piece in each)
            found.append(Window(range(first, end), flat, ends))

    for at, each in enumerate(pieces):
        if len(each) > longest:
            close(at)
            found.extend(Window.of(part, at) for part in _parts(each, longest))
            first = at + 1
        elif at > first and pieces_before[at + 1] - pieces_before[first] > longest:
            close(at)
            # Half of the previous window is read again, so a sentence near an end also has its neighbours on both
            # sides.
            first += max(1, (at - first) // 2)
            while pieces_before[at + 1] - pieces_before[first] > longest:
                first += 1
    close(len(pieces))
    return tuple(found) or (Window(range(0), (), ()),)


def _parts(pieces: tuple[int, ...], longest: int) -> list[tuple[int, ...]]:
    step = max(1, longest // 2)
    last = len(pieces) - longest
    return [pieces[start : start + longest] for start in [*range(0, last, step), last]]
