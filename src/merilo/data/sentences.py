"""Sentences of a text with their positions, which judges refer to by number.

Markdown blocks come first; in each block of prose the language's own splitter works. A heading, a table row and a
code block are one sentence each. Splitting is deterministic, and nothing except white space is left out.

"Dense" positions count the characters that are not white space. Chunkers trim, join and wrap lines, so white space
differs between a document and a chunk of it. All other characters are equal, code point by code point.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import groupby
from operator import add, sub
from typing import Final, NamedTuple, TypeAlias

from merilo.bounded_cache import BoundedCache
from merilo.cancellation import check_cancelled
from merilo.data.language import detect_language

MAX_GRADE: Final = 1_000_000
"""The largest grade of a span. Sums of much larger ones would be infinite."""


class Span(NamedTuple):
    """The characters from `start` up to, and not including, `end`; both count from 0."""

    start: int
    end: int


class DenseSpan(NamedTuple):
    """A stretch of a document from `start` up to, and not including, `end`, in dense positions."""

    document: str
    start: int
    end: int


def dense(text: str) -> str:
    """Return the text without its white space."""
    return "".join(text.split())


# -- Markdown as blocks, each with its position; only markup that moves sentence boundaries is recognised ---

_LINE: Final = re.compile(
    r"""
    (?P<blank>\s*(?:\n|\Z))
    | [ \t]*+ (?P<fence>```++|~~~++)
    | [ ]{0,3} (?P<heading>\#{1,6}[ \t])
    | [ \t]*+ (?P<row>\|)
    | [ \t]*+ (?P<rule>(?:-{3,}+|={3,}+|\*{3,}+|_{3,}+)[ \t\r]*+(?:\n|\Z))
    | (?P<item>[ \t>]*+ (?:[-*+•–]|\d{1,3}[.)]) [ \t]++ (?=\S))
    | (?P<quote>[ \t]*+ >[ \t>]*+)
    """,
    re.VERBOSE,
)
_MAY_INTERRUPT: Final = re.compile(r"[ \t>]*+(?:[-*+•–]|1[.)])")  # as in CommonMark
_CLOSING_MARKS: Final = frozenset(".!?…。！？｡:;,，、-")
_TITLE_CHARS: Final = 80
_TITLE_SHARE: Final = 0.6


@dataclass(slots=True)
class Block:
    """A stretch of the text; `marks` are list and quote markers in it, which are not part of its prose.

    `is_prose` is False for a block that is a single unit: a heading, a table row, code.
    """

    start: int
    end: int
    is_prose: bool = True
    marks: list[Span] = field(default_factory=list)


def blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a text, in order, without overlaps and with only white space between them."""
    reader = _Reader(text)
    position, size = 0, len(text)
    while position < size:
        found = _LINE.match(text, position)
        kind = found.lastgroup if found else None
        mark_end = found.end() if found else position
        if kind == "blank":
            yield from reader.close()
            position = mark_end
            continue
        end = _line_end(text, position)
        match kind:
            case "fence":
                end = _code_end(text, end, text[position:mark_end].strip())
                yield from reader.unit(position, end)
            case "heading" | "row":
                yield from reader.unit(position, end)
            case "rule":
                yield from reader.ruled(position, end)
            case _:
                yield from reader.line(position, end, kind, mark_end)
        position = end
    yield from reader.close()


class _Reader:
    """The current block, and the state that determines how the next line continues it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.block: Block | None = None
        self.in_list = False
        self.in_quote = False

    def close(self) -> Iterator[Block]:
        """Yield the current block, if any, and end it."""
        if self.block:
            yield self.block
        self.block = None

    def unit(self, start: int, end: int) -> Iterator[Block]:
        """Yield the current block, then these lines as one unit."""
        yield from self.close()
        yield Block(start, end, is_prose=False)
        self.in_list = self.in_quote = False

    def ruled(self, start: int, end: int) -> Iterator[Block]:
        """Yield the block above a ruled line together with the line; the line alone if there is no such block."""
        if self.block is None:
            yield from self.unit(start, end)
        else:
            self.block.marks.append(Span(start, end))
            self.block.end = end
            yield from self.close()
        self.in_list = self.in_quote = False

    def line(self, start: int, end: int, kind: str | None, mark_end: int) -> Iterator[Block]:
        """Add a line of prose, with or without a list or quote marker; yield the block that it ends."""
        is_item, is_quote = kind == "item", kind == "quote"
        if is_item and self.block and not self.in_list and not _MAY_INTERRUPT.match(self.text, start):
            is_item = False  # prose whose line begins with a year or the like
        if self.block is None or is_item or (is_quote and not self.in_quote) or self.follows_title(start, end):
            self.in_list = is_item or (self.in_list and self.text[start] in " \t")
            yield from self.close()
            self.block = Block(start, end)
            self.in_quote = is_quote
        self.block.end = end
        if is_item or is_quote:
            self.block.marks.append(Span(start, mark_end))

    def follows_title(self, start: int, end: int) -> bool:
        """Return True if the current block is a title and the next line starts a new block.

        A title is one short line without final punctuation, followed by a longer one: "Eiffel Tower", a line break,
        "The tower was built from 1887 to 1889.". It is not a wrapped line, because wrapped lines have about the same
        length.
        """
        block, text = self.block, self.text
        if block is None:
            return False
        length = block.end - block.start
        return (
            length <= _TITLE_CHARS
            and length < (end - start) * _TITLE_SHARE
            and text[start].isupper()
            and "\n" not in text[block.start : block.end - 1]
            and text[block.start : block.end].rstrip()[-1:] not in _CLOSING_MARKS
        )


def _line_end(text: str, start: int) -> int:
    found = text.find("\n", start)
    return len(text) if found < 0 else found + 1


def _code_end(text: str, start: int, fence: str) -> int:
    """Return the end of the code that this fence opened: after the closing fence, otherwise at the end of the text."""
    closing = re.compile(rf"^[ \t]*{re.escape(fence)}[{fence[0]}]*[ \t\r]*$", re.MULTILINE).search(text, start)
    return _line_end(text, closing.end()) if closing else len(text)


# -- prose as sentences, by the best splitter for the language -------------------------------------------

_WINDOW_CHARS: Final = 8000
"""Prose is read in windows, because sentencex takes quadratic time for quotation marks that never close."""

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
        far = _ANY_END.search(text, start + _WINDOW_CHARS)
        ends += [start + end for end in found] or [far.end() if far else len(text)]
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


# -- sentences of a text --------------------------------------------------------------------------------

SPLITTER_ID: Final = "merilo-sentences-1"
"""Identifier of the rules: part of every run, and changed when any text could be split differently.

The rubrics of support number sentences, so they get a new version with every change of it: cached verdicts would mean
other sentences.
"""

_CACHED_BYTES: Final = 32_000_000
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
    return _cache[text, language or (_LATIN if text.isascii() else detect_language(text))]


def judged_sentences(text: str, language: str) -> tuple[str, ...]:
    """Return the sentences of a text as judges see and number them.

    `language`: of the question; it applies unless the script of the text shows another language.
    """
    if text.isascii() or (detected := detect_language(text)) == _LATIN:
        return _cache[text, language]
    return _cache[text, detected]


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


_cache: Final = BoundedCache[tuple[str, str], tuple[str, ...]](
    lambda key: tuple([key[0][start:end] for start, end in split(*key)]),
    # about the bytes of an entry: the text twice, whole and in pieces
    size=lambda key, found: _TEXT_BYTES + 2 * len(key[0]) + _SENTENCE_BYTES * len(found),
    max_size=_CACHED_BYTES,
)


# -- tables --------------------------------------------------------------------------------------------

_MAX_HEADER: Final = 60
_MAX_GROWTH: Final = 5
"""How much longer than the texts their cells may be: each repeats the name of its row."""
_RULE: Final = re.compile(r"[\s|:+]*+[-=][\s|:=+-]*+")
_SEPARATORS: Final = tuple(map(re.compile, (r"\|", r"\t", r"(?<=\S) {2,40}(?=\S)", r";(?=\S)", r",(?=\S)")))
_NO_SEPARATOR: Final = re.compile(r"\Z.")
_GROUPED: Final = re.compile(r"\d[,;]\d{3}(?!\d)")


class Piece(NamedTuple):
    """A cell of a table, or text that is in none; `place` is the index of the text that it is from."""

    place: int
    text: str
    is_cell: bool = False


def pieces(texts: Sequence[str]) -> list[Piece]:
    """Return the texts in order, with each table in them divided into its cells, such as "Town: Lund; Founded: 990".

    A table is at least two lines in a row with the same number of cells: between `|`, tabs or columns of spaces, or as
    CSV without a space behind the separator. The first line is the header.
    """
    lines = [Piece(place, line) for place, text in enumerate(texts) for line in text.split("\n")]
    found: list[Piece] = []
    at, room = 0, _MAX_GROWTH * sum(map(len, texts))
    while at < len(lines) and room >= 0:
        first = lines[at].text
        separator = next((each for each in _SEPARATORS if each.search(first)), _NO_SEPARATOR)
        header, rows, end = _cells(first, separator), dict[int, list[str]](), at + 1
        while len(header) > 1 and end < len(lines):
            is_rule, cells = _RULE.fullmatch(lines[end].text), _cells(lines[end].text, separator)
            if not is_rule and len(cells) != len(header):
                break
            rows |= {} if is_rule else {end: cells}
            end += 1
        rows = rows if _is_header(header, first) else {}
        room -= sum(len(lines[row].text) + len(first) + len(header) * len(cells[0]) for row, cells in rows.items())
        # Without a rule the first line may be a row.
        found += lines[at:end] if not rows else lines[at : at + 1] if len(rows) == end - at - 1 else []
        found += [Piece(lines[row].place, text, is_cell=True) for row in rows for text in _named(header, rows[row])]
        at = end
    if room < 0 or not any(each.is_cell for each in found):
        return [Piece(*each) for each in enumerate(texts)]
    runs = groupby(enumerate(found), lambda each: each[0] if each[1].is_cell else -1 - each[1].place)
    joined = ([each for _, each in run] for _, run in runs)
    return [run[0]._replace(text="\n".join(each.text for each in run)) for run in joined]


def _cells(line: str, separator: re.Pattern[str]) -> list[str]:
    plain = line.strip().removeprefix("|").removesuffix("|")
    return [each.strip(' "') for each in separator.split(plain)]


def _is_header(cells: Sequence[str], line: str) -> bool:
    named = [each for each in cells if each]
    is_short = all(len(each) <= _MAX_HEADER and each[-1] not in ".!?;," for each in named)
    return bool(named) and is_short and not named[0][0].isdigit() and not _GROUPED.search(line)


def _named(header: Sequence[str], cells: Sequence[str]) -> Iterator[str]:
    name = f"{header[0]}: {cells[0]}" if header[0] else cells[0]
    named = [f"{name}; {head}: {cell}" for head, cell in zip(header[1:], cells[1:], strict=True) if cell]
    yield from named or [name]
