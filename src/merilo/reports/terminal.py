"""Where pages and progress meet the outside: standard output and error, with rich where they are terminals."""

from __future__ import annotations

import os
import shutil
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TextIO

from merilo.reports.clean import clean
from merilo.reports.page import Tone
from merilo.reports.words import count

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

    from merilo.reports.page import Page

DEFAULT_WIDTH = 80
WIDEST = 100
"""Longer lines are hard to read."""
LINE_EVERY_S = 10.0
LINE_EVERY_SHARE = 0.1
LEAST_SILENT_S = 2.0
"""Between two lines, so that a quick run does not print ten."""

_STYLES: Final = {Tone.STRONG: "bold", Tone.QUIET: "dim", Tone.GOOD: "green", Tone.BAD: "red"}
"""Readable on light and dark grounds alike; no white, no yellow, no ground of our own."""


def page_width() -> int:
    """How wide a page on standard output may be: COLUMNS, else the terminal's, else 80; at most 100."""
    with suppress(ValueError):
        if (given := int(os.environ.get("COLUMNS", "0"))) > 0:
            return given
    if not sys.stdout.isatty():
        return DEFAULT_WIDTH
    return min(shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns, WIDEST)


def show(page: Page) -> None:
    """Write a page to standard output, with colours where a terminal takes them."""
    if not _colours(sys.stdout):
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


class Watch:
    """A `Progress` for people on standard error: a bar on a terminal, else a line now and then."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.run: Path | None = None
        """The directory of the run, once it has begun."""
        self._quiet = quiet
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        self._total = self._done = self._told = 0
        self._began = self._told_at = 0.0

    def begin(self, run: Path, samples: int) -> None:
        """See `Progress`."""
        self.run, self._total = run, samples
        self._began = self._told_at = time.monotonic()
        if not self._quiet and sys.stderr.isatty():
            self._bar = _bar()
            self._task = self._bar.add_task("", total=samples)
            self._bar.start()

    def advance(self, samples: int) -> None:
        """See `Progress`."""
        self._done += samples
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task, samples)
        elif not self._quiet and self._due():
            self._told, self._told_at = self._done, time.monotonic()
            seconds = self._told_at - self._began
            tell(f"{self._done:,} of {count(self._total, 'sample')} ({self._done / self._total:.0%}), {seconds:.0f} s")

    def note(self, text: str) -> None:
        """See `Progress`."""
        if self._bar is not None:
            self._bar.console.print(clean(text), markup=False, highlight=False, emoji=False)
        elif not self._quiet:
            tell(text)

    def end(self) -> None:
        """See `Progress`."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _due(self) -> bool:
        silent_s = time.monotonic() - self._told_at
        share = (self._done - self._told) / self._total
        due = silent_s >= LINE_EVERY_S or (share >= LINE_EVERY_SHARE and silent_s >= LEAST_SILENT_S)
        return due or self._done == self._total


def _bar() -> Bar:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("samples"),
        BarColumn(bar_width=40, style="dim", complete_style="green", finished_style="green"),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=_console(sys.stderr),
        transient=True,
    )


def _console(stream: TextIO) -> Console:
    from rich.console import Console

    return Console(file=stream, markup=False, highlight=False, emoji=False)


def _colours(stream: TextIO) -> bool:
    """Whether the stream takes colours: a terminal that is not dumb, unless NO_COLOR or FORCE_COLOR say otherwise."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") != "dumb")


def _encodable(stream: TextIO) -> None:
    """Make a stream write what its encoding lacks as codes instead of raising."""
    reconfigure = getattr(stream, "reconfigure", None)  # not every stand-in for a stream has it
    if reconfigure is not None and getattr(stream, "errors", "") != "backslashreplace":
        reconfigure(errors="backslashreplace")
