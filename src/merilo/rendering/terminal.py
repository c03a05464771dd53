"""Writes pages and messages to standard output and standard error, with rich if they are terminals."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TextIO

from merilo.rendering.page import Tone
from merilo.rendering.sanitize import clean, json_text

if TYPE_CHECKING:
    from rich.console import Console

    from merilo.rendering.page import Page

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
