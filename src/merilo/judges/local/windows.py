"""Windows of whole sentences: a long text as parts that a model can read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from merilo.judges.local.card import Windows


class Window(NamedTuple):
    """Consecutive sentences, or a part of one sentence that is too long."""

    first: int
    """Index of the first sentence."""
    last: int
    """Index of the last sentence."""
    text: str


@dataclass(frozen=True, slots=True)
class Budget:
    """The space for a window, next to the other text of the pair."""

    tokens: int
    length: Callable[[str], int]
    """Number of tokens of a text alone."""
    fits: Callable[[str], bool]
    """True if the pair with this window fits into the model."""


def windows(sentences: Sequence[str], form: Windows, budget: Budget) -> Iterator[Window]:
    """Yield the windows of some sentences, in order; blank sentences are skipped. All sentences are covered."""
    numbered = [(place, text) for place, text in enumerate(sentences) if text.strip()]
    sizes = {place: _Size(budget.length(text), len(text.split())) for place, text in numbered}
    start = 0
    while start < len(numbered):
        end = _end(numbered, start, sizes, form, budget)
        yield from _fitting(numbered[start:end], form, budget)
        if end >= len(numbered):
            return
        start = max(start + 1, end - form.overlap)


class _Size(NamedTuple):
    tokens: int
    words: int


def _end(
    numbered: Sequence[tuple[int, str]], start: int, sizes: dict[int, _Size], form: Windows, budget: Budget
) -> int:
    """Return the end of the window that starts here: as many sentences as fit, at least one."""
    joint = budget.length(form.joined_by) if form.joined_by.strip() or "\n" in form.joined_by else 0
    tokens, words, end = 0, 0, start
    while end < len(numbered):
        size = sizes[numbered[end][0]]
        tokens, words = tokens + size.tokens + (joint if end > start else 0), words + size.words
        if end > start and (tokens > budget.tokens or words > (form.words or words)):
            break
        end += 1
    return end


def _fitting(numbered: Sequence[tuple[int, str]], form: Windows, budget: Budget) -> Iterator[Window]:
    """Yield the sentences as one window; in halves if they do not fit, since joined texts may have more tokens."""
    text = form.joined_by.join(sentence for _, sentence in numbered)
    if len(numbered) > 1:
        if budget.fits(text):
            yield Window(numbered[0][0], numbered[-1][0], text)
            return
        middle = len(numbered) // 2
        yield from _fitting(numbered[:middle], form, budget)
        yield from _fitting(numbered[middle:], form, budget)
        return
    (place, sentence) = numbered[0]
    yield from (Window(place, place, part) for part in _parts(sentence, form, budget))


def _parts(text: str, form: Windows, budget: Budget) -> Iterator[str]:
    """Yield a sentence; in halves, between words if possible, while it is too long."""
    words = text.split()
    short = form.words is None or len(words) <= form.words
    if not text.strip():
        return
    if len(text) < 2 or (short and budget.fits(text)):
        yield text
    elif len(words) > 1:
        middle = len(words) // 2
        yield from _parts(" ".join(words[:middle]), form, budget)
        yield from _parts(" ".join(words[middle:]), form, budget)
    else:
        yield from _parts(text[: len(text) // 2], form, budget)
        yield from _parts(text[len(text) // 2 :], form, budget)
