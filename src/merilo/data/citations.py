"""Citation markers in a response: the text without them, and the contexts that each sentence cites.

Markers are numbers of contexts in brackets (`[1]`, `[1, 2]`, `[1-3]`, `[^2]`, `[[1]]`, `【3】`, `[1](https://...)`),
numbers after a word (`(Doc 3)`, `[Source 2]`, `(Sources 1 and 2)`), and ids of contexts (`[doc:faq-7]`, `[faq-7]`). A
bracket with anything else in it stays in the text, and so does everything in code. Reading takes time linear in the
text.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.data.sentences import Span, split

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from merilo.data.sample import Sample

    IsSource: TypeAlias = Callable[[str, re.Match[str]], bool]
    """A function that returns True for a bracket that names a source, given its text and its match."""

_MAX_RANGE: Final = 20
"""Numbers in a range such as [1-3]; a longer one is more likely a page range than a citation."""
_NO_IDS: Final = frozenset({"not", "no", "never", "only", "and", "or"})
"""Words that an answer may have in brackets, whatever the ids of its contexts are."""
_WORDS: Final = (
    "docs?|documents?|sources?|passages?|contexts?|chunks?|snippets?|refs?|references?|cite|citations?"
    "|quellen?|dokumente?|fuentes?|documentos?|fonti|fonte|документы?|источники?"
)
_LINK: Final = r"""(?: \( (?:https?:|/|\#) (?: [^()\s] | \([^()\s]{0,200}\) ){1,500} (?: \ "[^"\n]{0,200}" )? \) )?+"""
_TOKEN: Final = re.compile(
    rf"""
    (?P<code> ```.*?``` | (?<![^\n])~~~.*?\n~~~ | `[^`\n]*` )
    | [(\[] (?P<wrapped>
        \[ [^\[\]()\n]{{1,200}} \] {_LINK} (?: [,;\ ]{{0,3}} \[ [^\[\]()\n]{{1,200}} \] {_LINK} ){{0,20}}
      ) [)\]] {_LINK}
    | \[ (?P<square> [^\[\]\n]{{1,200}} ) \] {_LINK}
    | 【 (?P<lens> [^【】\n]{{1,200}} ) 】
    | [(（] (?P<round> [^()（）\[\]【】\n]{{1,200}} ) [)）]
    """,
    re.VERBOSE | re.DOTALL,
)
_ADDRESS: Final = re.compile(_LINK, re.VERBOSE)
_BETWEEN: Final = re.compile(r"\s?(?:[,;&–-]|and|und|et|y|e|и)\s?")
"""Text between two markers that goes with them."""
_INVISIBLE: Final = dict.fromkeys([*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x206A), 0xFEFF])
"""Zero-width characters and direction marks."""
_SEPARATOR: Final = re.compile(r"(?:(?<!\s)\s++)?+[,;&，、][\s,;]*+|(?<!\s)\s++(?:and|und|et|y|e|и)\s+")
_NUMBERS: Final = re.compile(
    rf"(?P<word>(?:{_WORDS})\s*+[:#.]?+\s*+)?\^?(?P<number>\d{{1,3}})(?:\s*[-–—]\s*(?P<last>\d{{1,3}}))?", re.IGNORECASE
)
_NAMED: Final = re.compile(rf"(?:{_WORDS}|id)\s*[:#]\s*(?P<id>\S+)", re.IGNORECASE)
_WORD: Final = re.compile(r"\w")
_LIST_NUMBER: Final = re.compile(r"\A[\s>]*\d{1,3}[.)]")
_INDEXED: Final = re.compile(
    r"(?:(?<![^\W_])[a-z]|[=<>∈] ?|\b(?:option|step|figure|table|equation|item|element|answer) )\Z", re.IGNORECASE
)
"""A variable, a value or a number of something else: "a[1]", "x = [1]" and "step [1]" are not citations."""
_LOWER: Final = re.compile(r" (?!(?:and|und|et|y|e) )[a-z]")
_CLOSING: Final = re.compile(r"[\s.,;:!?…。)]|\Z")


class CitedSentence(NamedTuple):
    """A sentence without its markers, and what it cites."""

    text: str
    contexts: tuple[int, ...] = ()
    """Indices of the cited contexts, from 0, each once."""
    unknown: tuple[str, ...] = ()
    """Numbers and ids that no context has, each once."""


@dataclass(frozen=True, slots=True)
class CitedText:
    """A text without its markers, and its sentences."""

    text: str
    sentences: tuple[CitedSentence, ...]
    """One for each sentence of `text`, as `merilo.data.sentences` splits it."""

    @property
    def citations(self) -> int:
        """The number of pairs of a sentence and what it cites."""
        return sum(len(each.contexts) + len(each.unknown) for each in self.sentences)


class Contexts(NamedTuple):
    """What tells a citation from content: the texts that may contain the same, and the ids of the contexts."""

    texts: tuple[str, ...] = ()
    ids: tuple[str | None, ...] = ()

    @classmethod
    def of(cls, sample: Sample) -> Contexts:
        """Return the contexts of a sample, and the question as one more text."""
        own, contexts = sample.retrieved_context_ids, sample.retrieved_contexts or ()
        ids = own if own is not None and len(own) == len(contexts) else tuple([each.id for each in contexts])
        return cls((*[each.text for each in contexts], sample.user_input or ""), ids)


NO_CONTEXTS: Final = Contexts()


def cited(text: str, contexts: Contexts, *, first: int = 1, language: str | None = None) -> CitedText:
    """Return the text without its markers, and the contexts that each sentence cites.

    `first`: the number of the first context. A number is a position; if there is no such position, it may be an id. A
    marker belongs to the sentence before it, or to the sentence after it at the beginning of a line. A bracket that a
    context has too, after the same word, is not a marker.
    """
    reader = _Reader(contexts, first)
    reader.read(text)
    clean = "".join(reader.parts)
    spans = split(clean, language)
    starts, breaks = [span.start for span in spans], [found.start() for found in re.finditer("\n", clean)]
    known: list[dict[int, None]] = [{} for _ in spans]
    unknown: list[dict[str, None]] = [{} for _ in spans]
    for mark in reader.marks if spans else ():
        at = _sentence_of(mark, spans, starts, breaks)
        known[at] |= dict.fromkeys(mark.contexts)
        unknown[at] |= dict.fromkeys(mark.unknown)
    return CitedText(
        clean,
        tuple(
            CitedSentence(clean[start:end], tuple(own), tuple(none))
            for (start, end), own, none in zip(spans, known, unknown, strict=True)
        ),
    )


def without_brackets(text: str, contexts: Contexts, is_source: IsSource, *, marks: bool) -> str:
    """Return the text without brackets that `is_source` accepts, and without markers unless `marks`."""
    if _TOKEN.search(text) is None:
        return text
    reader = _Reader(contexts, is_source=is_source, keeps_marks=marks)
    reader.read(text)
    return "".join(reader.parts)


def _word_before(found: re.Match[str]) -> str:
    """Return the last word before a bracket, in lower case."""
    words = found.string[max(0, found.start() - 40) : found.start()].split()
    return words[-1].casefold() if words else ""


@lru_cache(maxsize=64)
def _pairs(texts: tuple[str, ...]) -> frozenset[tuple[str, str]]:
    """Return each bracket of the texts in lower case, with the word before it."""
    return frozenset((_word_before(found), found[0].casefold()) for text in texts for found in _TOKEN.finditer(text))


class _Mark(NamedTuple):
    position: int
    """Its position in the text without markers."""
    opens_line: bool
    """True if no word is before it in its line."""
    contexts: tuple[int, ...]
    unknown: tuple[str, ...]


class _Names(NamedTuple):
    contexts: tuple[int, ...]
    unknown: tuple[str, ...]


def _sentence_of(mark: _Mark, spans: Sequence[Span], starts: list[int], breaks: list[int]) -> int:
    """Return the index of the sentence that a marker belongs to."""
    before = max(bisect_left(starts, mark.position) - 1, 0)
    if not mark.opens_line:
        return before
    if spans[before].end > mark.position:
        return before
    after = bisect_left(starts, mark.position)
    line = bisect_right(breaks, mark.position - 1)
    line_end = breaks[line] if line < len(breaks) else None
    in_line = after < len(spans) and (line_end is None or starts[after] < line_end)
    return after if in_line else before


@dataclass(slots=True)
class _Reader:
    """Reads a text from left to right; keeps what is not a marker."""

    contexts: Contexts
    first: int = 1
    is_source: IsSource | None = None
    keeps_marks: bool = False
    places: dict[str, int] = field(init=False)
    """Id of a context → its index."""
    parts: list[str] = field(default_factory=list[str])
    marks: list[_Mark] = field(default_factory=list[_Mark])
    _length: int = 0
    _opens_line: bool = True

    def __post_init__(self) -> None:
        self.places = {name: place for place, name in reversed([*enumerate(self.contexts.ids)]) if name}

    def read(self, text: str) -> None:
        """Read the whole text."""
        position, pairs = 0, _pairs(self.contexts.texts)
        for found in _TOKEN.finditer(text):
            inside, names = found[found.lastgroup or 0], self._names(found)
            is_source = found["code"] is None and self.is_source is not None and self.is_source(inside, found)
            stays = self.keeps_marks if names else not is_source
            opens = text[max(0, found.start() - 2) : found.start()].strip(" ")[-1:] in {"", "\n", "."}
            is_subject = opens and _LOWER.match(text, found.end()) is not None
            is_variable = is_subject or _INDEXED.search(text, max(0, found.start() - 12), found.start())
            if stays or is_variable or (_word_before(found), found[0].casefold()) in pairs:
                continue
            between = text[position : found.start()]
            self._keep("" if position and _BETWEEN.fullmatch(between) else between)
            position = found.end()
            if _CLOSING.match(text, position):
                self._drop_spaces()
            if names:
                self.marks.append(_Mark(self._length, self._opens_line, names.contexts, names.unknown))
        self._keep(text[position:])

    def _names(self, found: re.Match[str]) -> _Names | None:
        """Return what a bracket names; None if it is not a marker."""
        inside = found["square"] or found["lens"] or found["round"]
        if found["wrapped"] is not None:
            inside = _ADDRESS.sub("", found["wrapped"]).replace("]", ",").replace("[", "").strip(", ;")
        if inside is None:
            return None
        known: list[int] = []
        unknown: list[str] = []
        worded = found["round"] is None  # a number in round brackets needs a word
        for item in _SEPARATOR.split(inside.partition("†")[0].strip()):
            read = _NUMBERS.fullmatch(item.translate(_INVISIBLE))
            worded = worded or _NAMED.fullmatch(item) is not None or (read is not None and read["word"] is not None)
            names = (self._id(item) if read is None else self._numbers(read)) if worded else None
            if names is None:
                return None
            known += names.contexts
            unknown += names.unknown
        if self.first and "0" in unknown and len(unknown) + len(known) > 1:
            return None  # an interval, such as [0, 1]
        return _Names(tuple(known), tuple(unknown))

    def _id(self, item: str) -> _Names | None:
        named = _NAMED.fullmatch(item)
        for name in (item, named["id"] if named else ""):
            if name in self.places and name not in _NO_IDS:
                return _Names((self.places[name],), ())
        return _Names((), (named["id"],)) if named else None

    def _numbers(self, read: re.Match[str]) -> _Names | None:
        low = int(read["number"])
        high = low if read["last"] is None else int(read["last"])
        if not low <= high < low + _MAX_RANGE:
            return None
        places = {number: number - self.first for number in range(low, high + 1)}
        found = {
            number: place if 0 <= place < len(self.contexts.ids) else self.places.get(str(number))
            for number, place in places.items()
        }
        return _Names(
            tuple(place for place in found.values() if place is not None),
            tuple(str(number) for number, place in found.items() if place is None),
        )

    def _keep(self, text: str) -> None:
        if not text:
            return
        _, broken, line = text.rpartition("\n")
        if broken or not self._length:
            line = _LIST_NUMBER.sub("", line)
        self.parts.append(text)
        self._length += len(text)
        self._opens_line = (self._opens_line or bool(broken)) and not _WORD.search(line)

    def _drop_spaces(self) -> None:
        """Remove the spaces before a marker that ends a phrase."""
        while self.parts:
            kept = self.parts[-1].rstrip(" \t")
            self._length -= len(self.parts[-1]) - len(kept)
            self.parts[-1] = kept
            if kept:
                break
            self.parts.pop()
        for back in range(len(self.marks) - 1, -1, -1):
            if self.marks[back].position <= self._length:
                break
            self.marks[back] = self.marks[back]._replace(position=self._length)
