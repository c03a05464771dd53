"""Prose as sentences, by the splitter that does best for the language; no markdown here.

Long prose is read in windows that begin where a sentence begins, because sentencex takes quadratic time over
quotation marks that never close.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Final, TypeAlias

_WINDOW_CHARS: Final = 8000

_CJK_END: Final = re.compile(
    r"(?:[。！？｡]|[!?](?![A-Za-z0-9_=&/%])|．(?!\d)|(?<=[^\W\d_])\.(?=\s|\Z)|(?<=…)…(?=[\s”’」』]))"
    r"[。！？｡!?…]*+(?P<closed>[”’\"'」』）)】》〉］\]｣]*+)"
)
_CONTINUES: Final = re.compile(r"[\u3041-\u309f、，,，。]")  # after a closed quotation: "「はい。」と言った。"
_RARELY_ENDED_END: Final = re.compile(r"(?:[!?…។៕။]+|(?<=[^\s.]{6})\.+)[\"'”’»)\]]*(?=\s|\Z)")
"""Thai and its neighbours part sentences by a blank, if at all: a full stop behind a few signs is an abbreviation's."""
_GERMAN_ORDINAL: Final = re.compile(r"(?<!\S)\d\d?\.\s*\Z")
"""The full stop of "im 3. Jahrhundert"; sentences seldom end with so small a number."""
_ANY_END: Final = re.compile(r"[.!?…。！？｡؟।]+[\"'”’»)\]」』]*(?=\s|\Z)|[。！？｡]")

Boundaries: TypeAlias = Callable[[str], list[int]]
"""Where sentences end in a text, ascending, the text's own end last; white space may be on either side."""


def sentence_ends(text: str, language: str) -> list[int]:
    """Where the sentences of a stretch of prose end, ascending; the last end is the text's own."""
    boundaries = _boundaries(language.replace("_", "-").split("-")[0].lower())
    ends: list[int] = []
    start = 0
    while len(text) - start > _WINDOW_CHARS:
        found = boundaries(text[start : start + _WINDOW_CHARS])[:-1]  # the window cuts its last sentence
        ends += [start + end for end in found] or [_next_end(text, start + _WINDOW_CHARS)]
        start = ends[-1]
    if start < len(text):
        ends += [start + end for end in boundaries(text[start:])]
    return ends


def _next_end(text: str, start: int) -> int:
    found = _ANY_END.search(text, start)
    return found.end() if found else len(text)


@cache
def _boundaries(language: str) -> Boundaries:
    if language in ("zh", "ja"):
        return _cjk
    if language in ("th", "lo", "km", "my"):
        return _rarely_ended
    if language == "ru":
        return _russian()
    if language == "de":
        return _german()
    return _any_language(language)


def _cjk(text: str) -> list[int]:
    ends = [
        found.end()
        for found in _CJK_END.finditer(text)
        if not (found["closed"] and _CONTINUES.match(text, found.end()))
    ]
    return _to_the_end(text, ends)


def _rarely_ended(text: str) -> list[int]:
    return _to_the_end(text, [found.end() for found in _RARELY_ENDED_END.finditer(text)])


def _to_the_end(text: str, ends: list[int]) -> list[int]:
    """The ends that were found, the last of them or one more being the text's own."""
    return [*ends, len(text)] if not ends or text[ends[-1] :].strip() else [*ends[:-1], len(text)]


def _russian() -> Boundaries:
    from razdel import sentenize  # 40 ms, and only Russian needs it

    def boundaries(text: str) -> list[int]:
        ends = [found.stop for found in sentenize(text)]
        return [*ends[:-1], len(text)]

    return boundaries


def _german() -> Boundaries:
    found = _any_language("de")

    def boundaries(text: str) -> list[int]:
        *ends, last = found(text)
        return [*(end for end in ends if not _GERMAN_ORDINAL.search(text, max(0, end - 4), end)), last]

    return boundaries


def _any_language(language: str) -> Boundaries:
    from sentencex import get_sentence_boundaries  # a binary library that not every run needs

    def boundaries(text: str) -> list[int]:
        ends = [found["end_index"] for found in get_sentence_boundaries(language, text)]
        return [*ends[:-1], len(text)]

    return boundaries
