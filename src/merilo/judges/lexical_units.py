"""The units in which the embedded judge reads a text: table rows with their headers, list items with their lead-in.

`read_sentences` prepares the sentences of a context once, and `units_of` splits each of them where a part must be
read alone. All tasks use both. A sentence keeps its position: there is one prepared sentence for each.
"""

from __future__ import annotations

import re
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.bounded_cache import BoundedCache
from merilo.cancellation import check_cancelled
from merilo.judges.lexical_text import unit_texts
from merilo.judges.word_bags import is_word_bag

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_UNIT: Final = 600
"""Maximum characters of a unit; a longer sentence is split into units."""
MAX_UNENDED: Final = 200
"""The same in Thai and Lao, which do not mark the end of a sentence: a passage would be a single unit."""
_UNENDED: Final = re.compile("[\u0e00-\u0eff]")
_WORD: Final = re.compile(r"\w")
_RULE: Final = re.compile(r"[\s|:+=-]*")
_FENCE: Final = re.compile(r"\s*(?:```|~~~)")
_FIELD: Final = re.compile(r"\s*(?:[-*+•]\s+)?[\w(*][^:\n.!?]{0,60}: \S")
_ITEM: Final = re.compile(r"[ \t>]*(?:[-*+•–]|\d{1,3}[.)]|[a-z]\))\s+")
_LEAD_IN: Final = re.compile(r"[:：][*_]*\s*\Z")
_HEADING: Final = re.compile(r"\s{0,3}#{1,6}\s")
_PROSE_END: Final = re.compile(r"[.!?]\s|[.!?]\Z")
_GAP: Final = re.compile(r"(?<=\S) {2,}(?=\S)")
_FIGURE: Final = re.compile(r"[-+−$€£¥(]{0,2}\d[\d.,:%)]*")
_YEAR: Final = re.compile("1[5-9]\\d\\d|20\\d\\d")
_MAX_STEP: Final = 10
"""Years between the headers of two columns."""
_MAX_LEAD_IN: Final = 200
_MAX_CELL: Final = 60
_MAX_HEADER: Final = 40
_MIN_DELIMITED: Final = 3
"""Lines with the same delimiter from which they are a table: prose has commas too."""
_MAX_UNMARKED: Final = 2
"""Sentences without a list marker after which a list is finished."""
_CACHED_BYTES: Final = 16_000_000
CELLS: Final = "; "
"""Separates the cells of a table row as it is read."""


class _Line(NamedTuple):
    sentence: int
    line: int
    cells: tuple[str, ...]


def read_sentences(sentences: Sequence[str]) -> tuple[str, ...]:
    """Return the sentences of a context as they are read, one for each, in order.

    The cells of a table row follow their headers ("Town: Lund; Built: 1712"), a list item follows the sentence that
    introduces it, and a sequence of words that is not a sentence is empty: it states nothing.
    """
    return _cached[tuple(sentences)]


def units_of(sentence: str) -> Sequence[str]:
    """Return the pieces in which a sentence is read: lines of code and of a table, parts of a long sentence."""
    pieces = _lines(sentence) if "\n" in sentence else [sentence]
    longest = MAX_UNENDED if _UNENDED.search(sentence) else MAX_UNIT
    if len(pieces) == 1:
        return unit_texts(sentence, longest=longest) if len(sentence) > longest else (sentence,)
    return [unit for piece in pieces for unit in unit_texts(piece, longest=longest)]


def is_field(unit: str) -> bool:
    """Return True for a line with a name and its value: "Weight: 2 kg"."""
    return _FIELD.match(unit) is not None


def item_text(sentence: str) -> str:
    """Return a sentence without the marker of a list item."""
    marker = _ITEM.match(sentence)
    return sentence[marker.end() :] if marker else sentence


def _lines(sentence: str) -> list[str]:
    lines = [line for line in sentence.split("\n") if line.strip()]
    is_code = _FENCE.match(sentence) is not None
    if any(CELLS in line and _FIELD.match(line) for line in lines):  # rows, with other text before or after them
        groups = groupby(enumerate(lines), lambda each: each[0] + 1 if CELLS in each[1] else 0)
        return ["\n".join(line for _, line in group) for _, group in groups]
    if len(lines) > 1 and (is_code or all(map(_FIELD.match, lines))):
        return [line for line in lines if not _FENCE.match(line)] or lines
    return [sentence]


def _read(sentences: tuple[str, ...]) -> tuple[str, ...]:
    found = list(sentences)
    if any("|" in each or "\t" in each or "\n" in each or "  " in each for each in sentences):
        _read_tables(found)
    _read_lists(found)
    for place, text in enumerate(found):
        check_cancelled()
        if is_word_bag(text):
            found[place] = ""
    return tuple(found)


def _read_tables(found: list[str]) -> None:
    """Replace the rows of tables by their cells with headers."""
    table: list[_Line] = []
    delimiter = ""
    split = [each.split("\n") for each in found]
    _mark_columns(split)
    for sentence, lines in enumerate(split):
        for line, text in enumerate(lines):
            own = _delimiter(text)
            cells = _cells(text, own)
            if own and not _WORD.search(text) and table:
                continue  # the rule below a header
            if not own or own != delimiter or (table and len(cells) != len(table[0].cells)):
                _name_cells(table, delimiter, split)
                table, delimiter = [], own
            if own and _WORD.search(text):
                table.append(_Line(sentence, line, cells))
    _name_cells(table, delimiter, split)
    for sentence, lines in enumerate(split):
        if (text := "\n".join(lines)) != found[sentence]:
            found[sentence] = "\n".join(line for line in lines if not _is_rule(line))


def _mark_columns(split: list[list[str]]) -> None:
    """Put tabs between the columns of tables that are aligned with spaces, or whose rows are words and numbers."""
    lines = [(sentence, line) for sentence, own in enumerate(split) for line in range(len(own))]
    headers = 0
    for at, (sentence, line) in enumerate(lines):
        text = split[sentence][line]
        wide = text if "|" in text else _GAP.sub("\t", text)
        words = text.split()
        if wide != text and not _PROSE_END.search(text) and all(len(each) <= _MAX_CELL for each in wide.split("\t")):
            split[sentence][line] = wide
        elif headers == len(words) > 1 and all(map(_FIGURE.fullmatch, words[1:])):
            split[sentence][line] = "\t".join(words)
            above = lines[at - 1]
            split[above[0]][above[1]] = "\t".join(split[above[0]][above[1]].split())
            continue
        headers = len(words) if all(map(str.isalpha, words)) else 0


def _name_cells(table: Sequence[_Line], delimiter: str, split: list[list[str]]) -> None:
    least = _MIN_DELIMITED if delimiter in {",", ";"} else 2
    if len(table) < least:
        return
    headers = table[0].cells
    if any(len(each) > _MAX_HEADER for each in headers) or not _are_headers(headers[1:]):
        return
    for row in table[1:]:
        named = (
            f"{name}: {cell}" if name else cell for name, cell in zip(headers, row.cells, strict=True) if cell.strip()
        )
        split[row.sentence][row.line] = CELLS.join(named)


def _are_headers(cells: Sequence[str]) -> bool:
    """Return True if cells are names without digits, or years that follow each other, up or down."""
    if not any(map(str.isdigit, "".join(cells))):
        return True
    years = [int(each) for each in cells if _YEAR.fullmatch(each)]
    steps = {later - earlier for earlier, later in pairwise(years)}
    return 1 < len(years) == len(cells) and len(steps) == 1 and 0 < abs(steps.pop()) <= _MAX_STEP


def _delimiter(line: str) -> str:
    """Return the character that separates the cells of a line; empty if the line is not like a row of a table."""
    if line.lstrip().startswith("|") or line.count("|") > 1:
        return "|"
    if "\t" in line.strip():
        return "\t"
    if _PROSE_END.search(line) or "  " in line.strip():
        return ""
    for delimiter in (";", ","):
        cells = line.split(delimiter)
        if len(cells) > 1 and all(len(each) <= _MAX_CELL for each in cells):
            return delimiter
    return ""


def _cells(line: str, delimiter: str) -> tuple[str, ...]:
    if not delimiter:
        return ()
    text = line.strip()
    if delimiter == "|":
        text = text.removeprefix("|").removesuffix("|")
    return tuple(cell.strip().strip('*_`"') for cell in text.split(delimiter))


def _is_rule(line: str) -> bool:
    return bool(line.strip()) and _RULE.fullmatch(line) is not None


def _read_lists(found: list[str]) -> None:
    """Put the sentence that introduces a list before each of its items."""
    lead_in, unmarked = "", 0
    for place, text in enumerate(found):
        if _ITEM.match(text):
            unmarked = 0
            if lead_in:
                found[place] = f"{lead_in} {item_text(text)}"
        elif _LEAD_IN.search(text) and len(text) <= _MAX_LEAD_IN:
            lead_in, unmarked = text.strip().lstrip("#* ").rstrip("*_"), 0
        else:
            unmarked += 1
            if unmarked >= _MAX_UNMARKED or _HEADING.match(text):
                lead_in = ""


def _bytes_of(sentences: tuple[str, ...], read: tuple[str, ...]) -> int:
    """Return the approximate bytes of an entry: the key, and the prepared sentences."""
    return 200 + sum(160 + len(one) + len(other) for one, other in zip(sentences, read, strict=True))


_cached: Final = BoundedCache(_read, size=_bytes_of, max_size=_CACHED_BYTES)
