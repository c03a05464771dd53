"""Long texts as overlapping windows of whole sentences, as the judge reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from encoder.mine import Passages

if TYPE_CHECKING:
    from collections.abc import Sequence

WORDS: Final = 110


def windows(sentences: Sequence[str], *, words: int = WORDS) -> list[str]:
    """Windows of about so many words, each beginning in the middle of the one before; one for a short text."""
    return [" ".join(sentences[at] for at in each) for each in _ranges(sentences, words)] or [""]


def window_around(place: int, sentences: Sequence[str], *, words: int = WORDS) -> range:
    """The sentences of the first window that holds this one."""
    return next(each for each in _ranges(sentences, words) if place in each)


def _ranges(sentences: Sequence[str], words: int) -> list[range]:
    found: list[range] = []
    first = held = 0
    for at, sentence in enumerate(sentences):
        count = len(sentence.split())
        if at > first and held + count > words:
            found.append(range(first, at))
            first += max(1, (at - first) // 2)
            held = sum(len(text.split()) for text in sentences[first:at])
        held += count
    return [*found, range(first, len(sentences))] if sentences else found


def best_window(asked: str, sentences: Sequence[str], *, words: int = WORDS) -> str:
    """The window that shares most with what is asked, by BM25 among the windows; the first among equals."""
    found = windows(sentences, words=words)
    if len(found) == 1:
        return found[0]
    return found[int(Passages(found).scores(asked).argmax())]
