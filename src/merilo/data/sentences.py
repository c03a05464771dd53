"""Sentences of a text with their positions, which judges refer to by number.

Markdown blocks come first; in each block of prose the language's own splitter works. A heading, a table row and a
code block are one sentence each. Splitting is deterministic, and nothing except white space is left out.
"""

import re
from collections.abc import Callable
from functools import partial
from operator import add, sub
from threading import Lock
from typing import Final

from merilo.cancellation import check_cancelled
from merilo.data.blocks import Block, blocks
from merilo.data.language import detect_language
from merilo.data.prose import NO_SENTENCE, sentence_ends
from merilo.data.spans import Span

__all__ = ["SPLITTER_ID", "Span", "judged_sentences", "sentences", "split"]

SPLITTER_ID: Final = "merilo-sentences-1"
"""Identifier of the rules: part of every run, and changed when any text could be split differently.

The rubrics of support number sentences, so they get a new version with every change of it: cached verdicts would mean
other sentences.
"""

_CACHED_BYTES: Final = 16_000_000
_TEXT_BYTES: Final = 400
_SENTENCE_BYTES: Final = 80
"""Bytes of an entry, and of each of its sentences, in addition to the characters."""
_span: Final[Callable[[tuple[int, int]], Span]] = partial(tuple.__new__, Span)  # pyright: ignore[reportUnknownMemberType]
_WORD: Final = re.compile(r"\w")
_LATIN: Final = "en"
"""The language that `detect_language` returns for any text in Latin script."""


def sentences(text: str, language: str | None = None) -> tuple[str, ...]:
    """Return the sentences of the text, in order, without surrounding white space; none for a blank text.

    While a text is cached, equal text and language give the same tuple.
    """
    # a text is split once, however its language is known
    return _cache.sentences(text, language or (_LATIN if text.isascii() else detect_language(text)))


def judged_sentences(text: str, language: str) -> tuple[str, ...]:
    """Return the sentences of a text as judges see and number them.

    `language`: of the question; it applies unless the script of the text shows another language.
    """
    if text.isascii() or (detected := detect_language(text)) == _LATIN:
        return _cache.sentences(text, language)
    return _cache.sentences(text, detected)


def split(text: str, language: str | None = None) -> tuple[Span, ...]:
    """Return the spans of the sentences of the text: ascending, not blank, with only white space between them.

    `language` is a code such as "en"; None detects it from the script. A unit without a letter or digit (a rule, a
    stray character) is joined to the unit before it in its block, otherwise to the next one.
    """
    code = language or detect_language(text)
    found: list[Span] = []
    waiting: int | None = None  # start of a wordless unit that has no unit before it
    for block in blocks(text):
        check_cancelled()
        first = len(found)
        position = block.start
        ends = _ends(text, block, code)
        pieces = list(map(text.__getitem__, map(slice, [position, *ends[:-1]], ends)))
        if waiting is None and all(map(_WORD.search, pieces)):  # nearly all blocks; the loop finds the same spans
            starts = list(map(sub, ends, map(len, map(str.lstrip, pieces))))
            found += map(_span, zip(starts, map(add, starts, map(len, map(str.strip, pieces))), strict=True))
            continue
        for end in ends:
            piece = text[position:end]
            bare = piece.strip()
            start = position + len(piece) - len(piece.lstrip())
            position = end
            if not bare:
                continue
            if _WORD.search(bare):
                found.append(Span(start if waiting is None else waiting, start + len(bare)))
                waiting = None
            elif len(found) > first:
                found[-1] = Span(found[-1].start, start + len(bare))
            elif waiting is None:
                waiting = start
    if waiting is not None:
        end = len(text.rstrip())
        found = [*found[:-1], Span(found[-1].start, end)] if found else [Span(waiting, end)]
    return tuple(found)


def _ends(text: str, block: Block, language: str) -> list[int]:
    """Return the ends of the block's units; markers go with the sentence that follows them."""
    if not block.is_prose:
        return [block.end]
    if not block.marks:
        return [block.start + end for end in sentence_ends(text[block.start : block.end], language)]
    position = block.start
    pieces: list[str] = []
    for mark in block.marks:  # blanked, except numbers: an item in the same line may continue the count
        shown = text[mark.start : mark.end]
        pieces += (text[position : mark.start], shown if NO_SENTENCE.fullmatch(shown) else " " * len(shown))
        position = mark.end
    prose = "".join((*pieces, text[position : block.end]))
    ends: list[int] = []
    for end in sentence_ends(prose, language):
        begin = ends[-1] if ends else 0
        ends.append(begin + len(prose[begin:end].rstrip()))
    return [*(block.start + end for end in ends), block.end]


class _Cache:
    """The sentences of recent texts. It is emptied once their approximate bytes exceed a limit."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._entries: dict[tuple[str, str], tuple[str, ...]] = {}
        self._lock = Lock()

    def sentences(self, text: str, language: str) -> tuple[str, ...]:
        cached = self._entries.get((text, language))
        if cached is not None:
            return cached
        made = tuple([text[start:end] for start, end in split(text, language)])
        size = _bytes_of(text, made)
        if size > self._max_bytes // 4:
            return made
        with self._lock:
            if self._bytes + size > self._max_bytes:
                self._entries.clear()
                self._bytes = 0
            self._bytes += size
            return self._entries.setdefault((text, language), made)  # another thread may have been faster


def _bytes_of(text: str, its_sentences: tuple[str, ...]) -> int:
    """Return the approximate bytes of an entry: the text twice, whole and in pieces."""
    return _TEXT_BYTES + 2 * len(text) + _SENTENCE_BYTES * len(its_sentences)


_cache = _Cache(_CACHED_BYTES)
