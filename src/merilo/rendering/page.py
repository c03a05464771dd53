"""A page of text: lines with tones, laid out to a width, the same for a terminal and a file; and its output.

Every text is cleaned when it is added, so no text of data or models can control the terminal. merilo's own words are
plain ASCII in English. A tone never adds information, so a page without colours reads the same.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TextIO

from rich.cells import cell_len

from merilo.data.sanitize import clean, clean_lines, harmless, json_text
from merilo.rendering.translation import translation

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console

GAP = 2
NARROWEST = 40
_NARROWEST_NOTE = 20
_NOTE_INDENT = 4
_WIDEST_LABEL = 28
DATA_LABELS = frozenset({"user input", "response", "reference", "reference ids", "metadata"})
"""Labels whose texts belong to the user and are never translated."""
BLANK = "(blank)"
"""Stands for a blank text of the user."""


class Tone(StrEnum):
    """The emphasis of a piece of text, shown as a colour or weight on terminals with colours."""

    PLAIN = "plain"
    STRONG = "strong"
    QUIET = "quiet"
    GOOD = "good"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a line."""

    text: str
    tone: Tone = Tone.PLAIN


Line = tuple[Span, ...]


class Page:
    """Lines, added from top to bottom; no line is wider than `width` cells, except those added by `line`."""

    def __init__(self, width: int, language: str | None = None) -> None:
        """Begin a page; `language`: of merilo's own words, which are given in English."""
        self.width = max(width, NARROWEST)
        self.lines: list[Line] = []
        self.translation = translation(language)

    def __str__(self) -> str:
        return "".join("".join(span.text for span in line).rstrip() + "\n" for line in self.lines)

    def line(self, *spans: Span | str) -> None:
        """Add a line that is never wrapped. Blanks at the ends of spans are preserved, since they are layout."""
        self.lines.append(tuple(_cleaned(span) for span in spans))

    def blank(self) -> None:
        """Add an empty line, unless the page is empty or already ends with one."""
        if self.lines and self.lines[-1]:
            self.lines.append(())

    def heading(self, text: str) -> None:
        """Add a heading with an empty line above it."""
        self.blank()
        self.line(Span(self.translation.line(text), Tone.STRONG))

    def text(self, text: str, *, indent: int = 0, tone: Tone = Tone.PLAIN, verbatim: bool = False) -> None:
        """Add running text, wrapped to the width; its own line breaks are preserved.

        `verbatim`: the text is not merilo's, so it is not translated.
        """
        say = _verbatim if verbatim else self.translation.line
        for paragraph in clean_lines(text):
            for row in wrap(say(paragraph), self.width - indent):
                self.line(" " * indent, Span(row, tone))

    def entry(self, label: str, text: str, *, column: int, indent: int = 0, tone: Tone = Tone.PLAIN) -> None:
        """Add a label with a text indented to `column`; a label that does not fit before it gets its own line."""
        say = _verbatim if label in DATA_LABELS and text != BLANK else self.translation.line
        label = self.translation.phrase(clean(label))
        rows = [row for part in clean_lines(text) for row in wrap(say(part), self.width - column)] or [""]
        if indent + cell_len(label) + GAP > column:
            self.line(" " * indent, label)
            label = ""
        for row in rows:
            self.line(pad(" " * indent + label, column), Span(row, tone))
            label = ""

    def entries(self, rows: Iterable[tuple[str, str]], *, indent: int = 2) -> None:
        """Add labels with texts that start in a common column; labels of over 28 cells get their own line."""
        found = [(clean(label), text) for label, text in rows]
        sizes = [cell_len(self.translation.phrase(label)) for label, _ in found]
        column = indent + GAP + max([size for size in sizes if size <= _WIDEST_LABEL] or [_WIDEST_LABEL])
        for label, text in found:
            self.entry(label, text, column=column, indent=indent)

    def table(self, rows: Sequence[Sequence[str]], tones: Sequence[Tone], *, notes: Sequence[str] = ()) -> None:
        """Add a table: names on the left, cells on the right, headings in the first row, each row in its tone.

        A name that is too long for its column gets its own line. `notes`: a text at the right of each row, whose parts
        are divided by semicolons; wrapped there, or below a narrow row.
        """
        rows = [[*map(self.translation.phrase, rows[0])], *rows[1:]]
        names = [clean(row[0]) for row in rows]
        cells = columns([row[1:] for row in rows], left=frozenset())
        room = self.width - cell_len(cells[0]) - GAP
        column = max(cell_len(name) for name in names if cell_len(name) <= room or name == names[0])
        for name, line, tone, note in zip(names, cells, tones, notes or [""] * len(names), strict=True):
            label = name
            if cell_len(name) > column:
                self.line(Span(name, tone))
                label = ""
            row = f"{pad(label, column)}{' ' * GAP}{line}"
            text = "; ".join(map(self.translation.phrase, note.split("; ")))
            beside = self.width - cell_len(row) - GAP
            narrow = bool(text) and beside < min(_NARROWEST_NOTE, cell_len(text))
            first, *rest = ["", *wrap(text, self.width - _NOTE_INDENT)] if narrow else wrap(text, beside)
            self.line(Span(f"{row}{' ' * GAP}{first}", tone))
            for each in rest:
                self.line(" " * (_NOTE_INDENT if narrow else cell_len(row) + GAP), Span(each, tone))


def cells_of(text: str) -> int:
    """Return the number of terminal cells that a text takes."""
    return cell_len(text)


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Return the text padded to `width` cells, on the left if `right`; longer text is returned unchanged."""
    blanks = " " * (width - cell_len(text))
    return blanks + text if right else text + blanks


def cut(text: str, width: int) -> str:
    """Return the text on one line of at most `width` cells; longer text ends in "..."."""
    text = clean(text)
    if cell_len(text) <= width:
        return text
    start = text[:width]
    while start and cell_len(start) > width - 3:
        start = start[:-1]
    return start.rstrip() + "..."


def cut_id(text: str, width: int) -> str:
    """Return an id on at most `width` cells; the middle of a longer one is left out, since ids often differ at the end.

    Ids with wide characters end in "...".
    """
    text = clean(text)
    if cell_len(text) <= width or cell_len(text) != len(text):
        return cut(text, width)
    half = (width - 3) // 2
    return f"{text[: width - 3 - half]}...{text[-half:]}"


def wrap(text: str, width: int) -> list[str]:
    """Return one cleaned line as rows of at most `width` cells: wrapped at blanks, and inside words that are wider."""
    width = max(width, 10)
    rows: list[str] = []
    row, used = "", 0
    for word in text.split(" "):
        cells = cell_len(word)
        if row and used + 1 + cells <= width:
            row, used = f"{row} {word}", used + 1 + cells
            continue
        if row:
            rows.append(row)
        *full, row = _pieces(word, width) if cells > width else [word]
        rows += full
        used = cell_len(row)
    return [*rows, row] if row or not rows else rows


def columns(rows: Sequence[Sequence[str]], *, left: frozenset[int]) -> list[str]:
    """Return rows of cells as lines; a column is as wide as its widest cell, right-aligned unless listed in `left`."""
    widths = [max(cell_len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        (" " * GAP).join(pad(cell, widths[index], right=index not in left) for index, cell in enumerate(row))
        for row in rows
    ]


def _verbatim(text: str) -> str:
    return text


def _pieces(word: str, width: int) -> list[str]:
    pieces: list[str] = []
    piece, used = "", 0
    for sign in word:
        cells = cell_len(sign)
        if used + cells > width and piece:
            pieces.append(piece)
            piece, used = "", 0
        piece += sign
        used += cells
    return [*pieces, piece]


def _cleaned(span: Span | str) -> Span:
    return Span(harmless(span.text), span.tone) if isinstance(span, Span) else Span(harmless(span))


# -- standard output and error -------------------------------------------------------------------------

DEFAULT_WIDTH = 80
WIDEST = 100
"""Maximum width of a page in columns; longer lines are hard to read."""

_STYLES: Final = {Tone.STRONG: "bold", Tone.QUIET: "dim", Tone.GOOD: "green", Tone.BAD: "red"}
"""Readable on light and dark backgrounds: no white, no yellow, no background colour."""


def page_width() -> int:
    """Return the width for standard output: COLUMNS if set, otherwise the terminal's (at most 100) or 80."""
    if (given := width_given()) is not None:
        return given
    if not sys.stdout.isatty():
        return DEFAULT_WIDTH
    return min(shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns, WIDEST)


def width_given() -> int | None:
    """Return the width in the variable COLUMNS; None if it is not set to a positive number."""
    with suppress(ValueError):
        if (given := int(os.environ.get("COLUMNS", "0"))) > 0:
            return given
    return None


def show(page: Page) -> None:
    """Write a page to standard output, with colours if the terminal supports them."""
    if not colours(sys.stdout):
        write(str(page))
        return
    from rich.text import Text

    console = _console(sys.stdout)
    for line in page.lines:
        text = Text()
        for span in line:
            text.append(span.text, _STYLES.get(span.tone))
        text.rstrip()
        console.print(text, soft_wrap=True)


def print_result(found: Page | Mapping[str, Any]) -> None:  # Any: JSON
    """Write a page, or a record as one JSON object, to standard output."""
    if isinstance(found, Mapping):
        write(json_text(found) + "\n")
    else:
        show(found)


def write(text: str) -> None:
    """Write text unchanged to standard output and flush; characters that it cannot encode are written as codes."""
    _encodable(sys.stdout)
    sys.stdout.write(text)
    sys.stdout.flush()


def tell(text: str) -> None:
    """Write a message to the user on standard error, each line cleaned."""
    _encodable(sys.stderr)
    for line in text.split("\n"):
        sys.stderr.write(clean(line) + "\n")
    sys.stderr.flush()


def colours(stream: TextIO) -> bool:
    """Return True if the stream gets colours: a terminal that is not dumb; NO_COLOR and FORCE_COLOR override that."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") != "dumb")


def _console(stream: TextIO) -> Console:
    from rich.console import Console

    return Console(file=stream, markup=False, highlight=False, emoji=False)


def _encodable(stream: TextIO) -> None:
    """Make a stream write characters that its encoding lacks as codes instead of raising."""
    reconfigure = getattr(stream, "reconfigure", None)  # a replaced sys.stdout may not have it
    if reconfigure is not None and getattr(stream, "errors", "") != "backslashreplace":
        reconfigure(errors="backslashreplace")
