"""Prose as sentences, by the best splitter for the language; no Markdown here.

Long prose is read in windows that begin at the beginning of a sentence, because sentencex takes quadratic time for
quotation marks that never close.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final, TypeAlias

from merilo.cancellation import check_cancelled

_WINDOW_CHARS: Final = 8000

_CJK_END: Final = re.compile(
    r"(?:[。！？｡]|[!?](?![A-Za-z0-9_=&/%])|．(?!\d)|(?<=[^\W\d_])\.(?=\s|\Z)|(?<=…)…(?=[\s”’」』]))"
    r"[。！？｡!?…]*+(?P<closed>[”’\"'」』）)】》〉］\]｣]*+)"
)
_CONTINUES: Final = re.compile(r"[\u3041-\u309f、，,，。]")  # after a closed quotation: "「はい。」と言った。"
_RARELY_ENDED_END: Final = re.compile(r"(?:(?<![!?…។៕။])[!?…។៕။]+|(?<=[^\s.]{6})\.+)[\"'”’»)\]]*(?=\s|\Z)")
"""Sentence ends of Thai and its neighbours, which separate sentences by a space or not at all.

A full stop after fewer than six characters belongs to an abbreviation.
"""
_NO_END: Final = {
    "de": re.compile(r"(?<!\S)\d\d?\.\s*\Z"),  # "im 3. Jahrhundert"; sentences rarely end with a number this small
    "en": re.compile(r"\b(?:approx|(?P<time>[ap]\.m))\.\s*\Z", re.IGNORECASE),
}
"""Full stops that sentencex mistakes for an end of a sentence, by language."""
_STOP_WORDS: Final = {"en": ("approx.", ".m.")}
"""Texts without which a text has none of them, in lower case."""
_LOOKS_BACK: Final = 12
_AFTER_TIME: Final = re.compile(
    "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|Eastern|Central|Mountain|Pacific|Greenwich|"
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December)\s\d"
)
"""Capitalised words that continue a sentence after "5 p.m."."""
NO_SENTENCE: Final = re.compile(r"\s*(?:\d\d?[.)]\s*)?")
"""Nothing, or only the number of an item."""
_ITEM: Final = re.compile(r"([0-9][0-9]?)[.)]\s+(?=\S)")
_OPENS_LIST: Final = re.compile(r"(?:\A|[:;!?：！？][*_\"'”’»)\]]*)\s*\Z")
_CLOSED: Final = re.compile(r"[:;.!?。：！？][*_\"'”’»)\]]*\s*\Z")
_WHITE: Final = re.compile(r"\s*")
_ANY_END: Final = re.compile(r"(?<![.!?…。！？｡؟।])[.!?…。！？｡؟।]+[\"'”’»)\]」』]*(?=\s|\Z)|[。！？｡]")

Boundaries: TypeAlias = Callable[[str], list[int]]
"""A function that returns the ends of sentences in a text, ascending, ending with the text's own end.

White space may be on either side of an end.
"""


def sentence_ends(text: str, language: str) -> list[int]:
    """Return the ends of the sentences in a stretch of prose, ascending; the last end is the text's own."""
    code = language.replace("_", "-").split("-")[0].lower()
    boundaries = _boundaries(code)
    ends: list[int] = []
    start = 0
    while len(text) - start > _WINDOW_CHARS:
        check_cancelled()
        found = boundaries(text[start : start + _WINDOW_CHARS])[:-1]  # the window truncates its last sentence
        ends += [start + end for end in found] or [_next_end(text, start + _WINDOW_CHARS)]
        start = ends[-1]
    if start < len(text):
        ends += [start + end for end in boundaries(text[start:])]
    return _with_items(text, ends, code)


def unnumbered(sentences: Sequence[str], language: str) -> tuple[str, ...]:
    """Return sentences without the numbers of list items: "2. Close it." becomes "Close it.".

    Outside English, at least two sentences must be numbered, because "2." is also an ordinal there ("2. Weltkrieg").
    """
    numbers = [_ITEM.match(each) for each in sentences]
    if language != "en" and sum(map(bool, numbers)) < 2:
        return tuple(sentences)
    return tuple(each[number.end() :] if number else each for each, number in zip(sentences, numbers, strict=True))


def _with_items(text: str, ends: list[int], language: str) -> list[int]:
    """Return the ends, with each item of a list within a line as a sentence that includes its number.

    "Steps: 1. Open it 2. Close it" has three sentences. A number alone goes with the text after it.
    """
    if _ITEM.search(text) is None:
        return ends
    items = _items(text, ends, ends_open=language == "en")
    sentence_ends: list[int] = []
    start = 0
    for end in sorted({*ends[:-1], *items}):
        if not NO_SENTENCE.fullmatch(text, start, end):
            sentence_ends.append(end)
            start = end
    return sentence_ends + ends[-1:]


def _items(text: str, ends: list[int], *, ends_open: bool) -> list[int]:
    """Return the start positions of numbered list items within a line: numbers from 1, and at least two items.

    The first item begins the text, or follows one of `ends` or a colon, so "(Fig. 1) and (Fig. 2)" has none.
    `ends_open`: an item may end without punctuation. It may not in languages where "2." is also an ordinal ("der 2.
    Weltkrieg").
    """
    found: list[int] = []
    counted: list[int] = []
    ended = {white.end() for end in ends if (white := _WHITE.match(text, end))}
    for each in _ITEM.finditer(text):
        number, start = int(each[1]), each.start()
        if start and not text[start - 1].isspace():
            continue
        back = max(0, start - _LOOKS_BACK)
        if number == 1 and (start in ended or _OPENS_LIST.search(text, back, start)):
            found += counted if len(counted) > 1 else ()
            counted = [start]
        elif counted and number == len(counted) + 1 and (ends_open or _CLOSED.search(text, back, start)):
            counted.append(start)
    return found + (counted if len(counted) > 1 else [])


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
    """Return the ends with the text's own end as the last one."""
    return [*ends, len(text)] if not ends or text[ends[-1] :].strip() else [*ends[:-1], len(text)]


def _russian() -> Boundaries:
    from razdel import sentenize  # import takes 40 ms, and only Russian needs it

    def boundaries(text: str) -> list[int]:
        ends = [found.stop for found in sentenize(text)]
        return [*ends[:-1], len(text)]

    return boundaries


def _any_language(language: str) -> Boundaries:
    from sentencex import get_sentence_boundaries  # a binary library that not every run needs

    stops, words = _NO_END.get(language), _STOP_WORDS.get(language, ("",))

    def boundaries(text: str) -> list[int]:
        ends = [found["end_index"] for found in get_sentence_boundaries(language, text)][:-1]
        if stops is not None and any(map(text.lower().__contains__, words)):
            ends = [end for end in ends if not _goes_on(text, end, stops)]
        return [*ends, len(text)]

    return boundaries


def _goes_on(text: str, end: int, stops: re.Pattern[str]) -> bool:
    """Return True if a sentence continues after the end that the splitter found."""
    found = stops.search(text, max(0, end - _LOOKS_BACK), end)
    return found is not None and (found.lastgroup is None or _AFTER_TIME.match(text, end) is not None)
