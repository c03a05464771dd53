"""Where pages and messages meet the outside: standard output and error, with rich where they are terminals."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TextIO

from merilo.rendering.page import Tone
from merilo.rendering.sanitize import clean

if TYPE_CHECKING:
    from rich.console import Console

    from merilo.rendering.page import Page

DEFAULT_WIDTH = 80
WIDEST = 100
"""Longer lines are hard to read."""

_STYLES: Final = {Tone.STRONG: "bold", Tone.QUIET: "dim", Tone.GOOD: "green", Tone.BAD: "red"}
"""Readable on light and dark grounds alike; no white, no yellow, no ground of our own."""


def page_width() -> int:
    """How wide a page on standard output may be: COLUMNS, else the terminal's, else 80; at most 100."""
    if (given := width_given()) is not None:
        return given
    if not sys.stdout.isatty():
        return DEFAULT_WIDTH
    return min(shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns, WIDEST)


def width_given() -> int | None:
    """The width that the variable COLUMNS gives; None where it gives none."""
    with suppress(ValueError):
        if (given := int(os.environ.get("COLUMNS", "0"))) > 0:
            return given
    return None


def show(page: Page) -> None:
    """Write a page to standard output, with colours where a terminal takes them."""
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


def write(text: str) -> None:
    """Write text as it is to standard output, and see it gone; what the encoding lacks is written as its code."""
    _encodable(sys.stdout)
    sys.stdout.write(text)
    sys.stdout.flush()


def tell(text: str) -> None:
    """A message to the user on standard error, each line of it cleaned."""
    _encodable(sys.stderr)
    for line in text.split("\n"):
        sys.stderr.write(clean(line) + "\n")
    sys.stderr.flush()


def colours(stream: TextIO) -> bool:
    """Whether the stream takes colours: a terminal that is not dumb, unless NO_COLOR or FORCE_COLOR say otherwise."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") != "dumb")


def _console(stream: TextIO) -> Console:
    from rich.console import Console

    return Console(file=stream, markup=False, highlight=False, emoji=False)


def _encodable(stream: TextIO) -> None:
    """Make a stream write what its encoding lacks as codes instead of raising."""
    reconfigure = getattr(stream, "reconfigure", None)  # not every stand-in for a stream has it
    if reconfigure is not None and getattr(stream, "errors", "") != "backslashreplace":
        reconfigure(errors="backslashreplace")
