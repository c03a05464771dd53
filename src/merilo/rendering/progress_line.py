"""Progress for the user, on standard error: one line that is redrawn on a terminal, otherwise a line every N seconds.

The line is drawn with a carriage return and blanks only (design/viewer-and-report.md): the cursor is never hidden, so a
killed run cannot leave it hidden. There is no drawing thread, and no library to import. The text is plain, so nothing
in it can be markup. Cost in all and remaining time are estimated from the progress so far.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from math import ceil
from typing import TYPE_CHECKING, Final, TextIO

from merilo.engine.progress import Traffic
from merilo.engine.schedule import BLOCK
from merilo.numbers import count, duration, money
from merilo.rendering.page import DEFAULT_WIDTH, tell, width_given
from merilo.rendering.translation import translation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

_SETTLED_S: Final = 5.0
"""Seconds before the first estimate."""
LINE_EVERY_S: Final = 10.0
"""Seconds between two plain lines, until a run takes 100 s; from then on a tenth of its time, at most a minute."""
LINE_EVERY_SHARE: Final = 0.1
"""Fraction of the samples that, once finished since the last plain line, makes the next one due early."""
MIN_SILENT_S: Final = 2.0
"""Minimum seconds between two plain lines, so that a quick run does not print ten."""
_MAX_SILENT_S: Final = 60.0
_SHOWN_PAUSE_S: Final = 1.0
_ROUGH_USD: Final = 10
"""Estimated costs from this amount on are shown without cents, which would suggest precision they do not have."""


class ProgressLine:
    """A `Progress` for the user. `plain`: print plain lines even on a terminal, for output shared with others.

    `language`: of the lines, such as `ru`; None for English.
    """

    def __init__(self, *, quiet: bool = False, plain: bool = False, language: str | None = None) -> None:
        self._translation = translation(language)
        self.run: Path | None = None
        """The directory of the run, once it has begun."""
        self.usage: Mapping[str, object] = {}
        """The usage of the run once it has ended; empty before."""
        self._quiet = quiet
        self._plain = plain
        self._terminal: TextIO | None = None
        self._drawn = 0
        self._traffic: Callable[[], Traffic] = Traffic
        self._done = self._samples = self._told = 0
        self._began = self._shown_at = 0.0
        self._since: tuple[float, int] | None = None  # time and samples done at the first request
        self._over = True

    def begin(self, run: Path, samples: int) -> None:
        self.run, self._samples = run, samples
        self._done = self._told = 0
        self._began = self._shown_at = time.monotonic()
        self._since, self._over = None, self._quiet
        self._terminal = sys.stderr if not self._quiet and not self._plain and _takes_a_line(sys.stderr) else None

    def watch(self, traffic: Callable[[], Traffic]) -> None:
        self._traffic = traffic

    def advance(self, samples: int) -> None:
        self._done += samples
        if self._terminal is None and not self._over:
            self._tell_if_due()

    def tick(self) -> None:
        if self._over:
            return
        if self._terminal is None:
            self._tell_if_due()
        else:
            self._draw(self._terminal, self._text())

    def note(self, text: str) -> None:
        self._clear()
        if not self._quiet:
            tell(self._translation.lines(text))

    def spent(self, usage: Mapping[str, object]) -> None:
        self.usage = usage

    def end(self) -> None:
        """See `Progress`; may be called at any time and repeatedly."""
        self._clear()
        self._over, self._traffic = True, Traffic

    def _draw(self, terminal: TextIO, text: str) -> None:
        shown = text[: _width(terminal) - 1]  # a character in the last column would wrap the line
        terminal.write(f"\r{shown.ljust(self._drawn)}\r")
        terminal.flush()
        self._drawn = len(shown)

    def _clear(self) -> None:
        if self._terminal is not None and self._drawn:
            self._draw(self._terminal, "")

    def _tell_if_due(self) -> None:
        now = time.monotonic()
        silent_s = now - self._shown_at
        every_s = min(max(LINE_EVERY_S, (now - self._began) / 10), _MAX_SILENT_S)
        share = (self._done - self._told) / self._samples
        due = silent_s >= every_s or (share >= LINE_EVERY_SHARE and silent_s >= MIN_SILENT_S)
        if due or self._done == self._samples:
            self._told, self._shown_at = self._done, now
            tell(self._text())

    def _text(self) -> str:
        """Return what is done, left and paid, the most important first."""
        now, traffic, done, samples = time.monotonic(), self._traffic(), self._done, self._samples
        if traffic.sent and self._since is None:  # stored and cached answers take no time
            self._since = now, done
        since, known = self._since or (self._began, 0)
        new, cost = done - known, traffic.cost_usd
        settled = now - since >= _SETTLED_S and new >= min(BLOCK, max(1, samples // 4)) and done < samples
        parts = [f"{done:,} of {count(samples, 'sample')} ({done / samples if samples else 1:.0%})"]
        if traffic.paused_s >= _SHOWN_PAUSE_S and done < samples:
            parts.append(f"waiting {ceil(traffic.paused_s)} s (429)")
        elif settled:
            parts.append(f"{duration(max(1.0, (now - since) * (samples - done) / new))} left")
        if cost:
            in_all = cost * (samples - known) / new if settled else 0.0
            rough = f"{in_all:,.0f}" if in_all >= _ROUGH_USD else money(in_all)
            parts.append(f"${money(cost)} of ~${rough}" if settled else f"${money(cost)}")
        if traffic.retries:
            parts.append(count(traffic.retries, "retry", "retries"))
        return ", ".join(map(self._translation.phrase, [*parts, f"{now - self._began:.0f} s"]))


def _takes_a_line(stream: TextIO) -> bool:
    """Return True if a line can be overwritten: on a terminal that is not dumb, and not in CI, which logs output."""
    return stream.isatty() and os.environ.get("TERM") != "dumb" and os.environ.get("CI", "") in {"", "0", "false"}


def _width(stream: TextIO) -> int:
    """Return the columns to use: the variable COLUMNS, otherwise the terminal's width; at most 80."""
    if (given := width_given()) is not None:
        return min(given, DEFAULT_WIDTH)
    with suppress(OSError, ValueError):
        if (own := os.get_terminal_size(stream.fileno()).columns) > 0:  # some terminals report 0 columns
            return min(own, DEFAULT_WIDTH)
    return DEFAULT_WIDTH


def progress_line(*, quiet: bool, language: str | None = None) -> ProgressLine:
    """Return the progress of a command; plain lines with --debug, because a drawn line would cut tracebacks."""
    return ProgressLine(quiet=quiet, plain="--debug" in sys.argv, language=language)
