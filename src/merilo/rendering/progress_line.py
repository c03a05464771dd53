"""Progress for the user, on standard error: one line that is redrawn on a terminal, otherwise a line every N seconds.

In a Jupyter notebook it is one output below the cell, which is updated. IPython is never imported: in a notebook it is
loaded already. The text is plain, so nothing in it can be markup.

The line is drawn with a carriage return and blanks only (design/viewer-and-report.md): the cursor is never hidden, so a
killed run cannot leave it hidden. There is no drawing thread, and no library to import. Rate, cost and remaining time
are estimated from the progress so far.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from math import ceil
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TextIO

from merilo.engine.schedule import BLOCK
from merilo.numbers import count, duration, money
from merilo.rendering.page import DEFAULT_WIDTH, colours, tell, width_given
from merilo.rendering.translation import Translation, translation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from merilo.engine.progress import Traffic

_SPAN_S: Final = 60.0
"""Seconds of history that the rate is computed from; longer while it holds fewer than two blocks of samples."""
_RATE_SPAN_S: Final = 10.0
_APART_S: Final = 1.0
"""Minimum seconds between two entries of the history of requests, and that a rate is computed from."""
_SETTLED_S: Final = 5.0
"""Seconds before the first estimate of the remaining time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgressStats:
    """The progress of a run; None for what is unknown, or not known yet."""

    done: int
    samples: int
    seconds: float
    """Seconds since this command began the run."""
    requests_per_s: float | None = None
    in_flight: int = 0
    retries: int = 0
    paused_s: float = 0.0
    cost_usd: float | None = None
    cost_in_all_usd: float | None = None
    seconds_left: float | None = None


class _Seen(NamedTuple):
    at: float
    done: int
    cost_usd: float


class ProgressMeter:
    """Estimates the pace of a run; `look` is called several times per second. `now` is any clock in seconds."""

    def __init__(self, samples: int, now: float) -> None:
        self._samples = samples
        self._began = now
        self._first = _Seen(now, 0, 0.0)
        self._seen: deque[_Seen] = deque([self._first])
        self._sends: deque[tuple[float, int]] = deque([(now, 0)])
        self._asking = False

    def look(self, now: float, done: int, traffic: Traffic | None) -> ProgressStats:
        """Return the pace at this moment; `done` samples are finished."""
        sent, cost = (0, None) if traffic is None else (traffic.sent, traffic.cost_usd)
        self._remember(now, done, cost or 0.0, sent)
        seconds, left_s = now - self._began, self._left_s(now, done)
        if traffic is None or not sent:
            return ProgressStats(done=done, samples=self._samples, seconds=seconds, seconds_left=left_s)
        return ProgressStats(
            done=done,
            samples=self._samples,
            seconds=seconds,
            requests_per_s=self._requests_per_s(now, sent),
            in_flight=traffic.in_flight,
            retries=traffic.retries,
            paused_s=traffic.paused_s,
            cost_usd=cost,
            cost_in_all_usd=None if cost is None else self._in_all_usd(done, cost),
            seconds_left=left_s,
        )

    def _remember(self, now: float, done: int, cost_usd: float, sent: int) -> None:
        if sent and not self._asking:  # stored and cached answers take no time: count from the first request
            self._asking = True
            self._first = _Seen(now, done, 0.0)
            self._seen = deque([self._first])
        seen = self._seen
        if done != seen[-1].done:
            seen.append(_Seen(now, done, cost_usd))
        while len(seen) > 1 and now - seen[1].at >= _SPAN_S and done - seen[1].done >= 2 * BLOCK:
            seen.popleft()

    @property
    def _needed(self) -> int:
        """The minimum number of finished samples for an estimate."""
        return min(BLOCK, max(1, self._samples // 4))

    def _requests_per_s(self, now: float, sent: int) -> float | None:
        if now - self._sends[-1][0] >= _APART_S:
            self._sends.append((now, sent))
        while len(self._sends) > 1 and now - self._sends[1][0] >= _RATE_SPAN_S:
            self._sends.popleft()
        since, before = self._sends[0]
        return (sent - before) / (now - since) if now - since >= _APART_S else None

    def _left_s(self, now: float, done: int) -> float | None:
        """Return the seconds left; they count down between samples, and up again if the next block is late."""
        since, last = self._seen[0], self._seen[-1]
        if now - since.at < _SETTLED_S or last.at <= since.at or done - since.done < self._needed:
            return None
        sample_s = (last.at - since.at) / (last.done - since.done)
        waited_s = now - last.at
        late_s = max(0.0, waited_s - BLOCK * sample_s)
        return max(0.0, (self._samples - done) * sample_s - waited_s + 2 * late_s)

    def _in_all_usd(self, done: int, cost_usd: float) -> float | None:
        """Return the estimated final cost of the run, from the cost per finished sample.

        Unfinished samples are partly paid for, which inflates the cost per finished one. Samples finish in blocks, and
        right after a block the inflation is smallest. So the lowest recent cost per sample is the best estimate.
        """
        if done == self._samples:
            return cost_usd
        first = self._first.done
        finished = [each for each in self._seen if each.done - first >= self._needed]
        if not finished:
            return None
        sample_usd = min(each.cost_usd / (each.done - first) for each in finished)
        return max(cost_usd, sample_usd * (self._samples - first))


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
_ENGLISH: Final = translation(None)
_GREEN, _DIM, _RESET = "\x1b[32m", "\x1b[2m", "\x1b[0m"


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
        self._line: TerminalLine | None = None
        self._notebook: NotebookLine | None = None
        self._traffic: Callable[[], Traffic] | None = None
        self._done = self._samples = self._told = 0
        self._pacer = ProgressMeter(0, 0.0)
        self._shown_at = 0.0
        self._began = 0.0
        self._over = True

    def begin(self, run: Path, samples: int) -> None:
        self.run, self._samples = run, samples
        self._done = self._told = 0
        self._began = self._shown_at = time.monotonic()
        self._pacer = ProgressMeter(samples, self._began)
        self._over = self._quiet
        if not self._quiet and not self._plain and _takes_a_line(sys.stderr):
            self._line = TerminalLine(sys.stderr, self._translation)
        elif not self._quiet and not self._plain and _in_notebook():
            self._notebook = NotebookLine()

    def watch(self, traffic: Callable[[], Traffic]) -> None:
        self._traffic = traffic

    def advance(self, samples: int) -> None:
        self._done += samples
        if self._line is None and self._notebook is None and not self._over:
            self._tell_if_due()

    def tick(self) -> None:
        if self._over:
            return
        pace = self._pace()
        if self._line is not None:
            self._line.draw(pace)
        elif self._notebook is not None:
            self._notebook.show(sentence(pace, self._translation))
        else:
            self._tell_if_due()

    def note(self, text: str) -> None:
        if self._line is not None:
            self._line.clear()
        if not self._quiet:
            tell(self._translation.lines(text))

    def spent(self, usage: Mapping[str, object]) -> None:
        self.usage = usage

    def end(self) -> None:
        """See `Progress`; may be called at any time and repeatedly."""
        line, self._line = self._line, None
        if line is not None:
            line.clear()
        if self._notebook is not None:
            self._notebook.show(sentence(self._pace(), self._translation))
            self._notebook = None
        self._over, self._traffic = True, None

    def _pace(self) -> ProgressStats:
        return self._pacer.look(time.monotonic(), self._done, None if self._traffic is None else self._traffic())

    def _tell_if_due(self) -> None:
        now = time.monotonic()
        silent_s = now - self._shown_at
        every_s = min(max(LINE_EVERY_S, (now - self._began) / 10), _MAX_SILENT_S)
        share = (self._done - self._told) / self._samples
        due = silent_s >= every_s or (share >= LINE_EVERY_SHARE and silent_s >= MIN_SILENT_S)
        if due or self._done == self._samples:
            self._told, self._shown_at = self._done, now
            tell(sentence(self._pace(), self._translation))


class TerminalLine:
    """One line of a terminal that is overwritten in place; the cursor rests at its beginning."""

    def __init__(self, stream: TextIO, translation: Translation = _ENGLISH) -> None:
        self._stream = stream
        self._translation = translation
        self._drawn = 0
        self._chars = "━─" if (stream.encoding or "").lower().startswith("utf") else "=-"
        self._coloured = colours(stream) and os.name != "nt"  # old Windows consoles print the escape codes
        self._levels: dict[tuple[int, bool], int] = {}

    def draw(self, pace: ProgressStats) -> None:
        """Show the progress of the run."""
        width = _width(self._stream) - 1  # a character in the last column would wrap the line
        state = width, pace.paused_s >= _SHOWN_PAUSE_S
        level, text, bar = fitting(pace, width, self._levels.get(state, 0), self._translation)
        self._levels[state] = level
        blanks = " " * (self._drawn - len(text) - bar)
        self._write(f" {self._bar(pace, bar)}{text[1:]}{blanks}" if bar else text + blanks)
        self._drawn = len(text) + bar

    def clear(self) -> None:
        """Erase the line."""
        if self._drawn:
            self._write(" " * self._drawn)
            self._drawn = 0

    def _write(self, text: str) -> None:
        self._stream.write(f"\r{text}\r")
        self._stream.flush()

    def _bar(self, pace: ProgressStats, width: int) -> str:
        full = round((width - 1) * pace.done / pace.samples) if pace.samples else 0
        done, rest = self._chars[0] * full, self._chars[1] * (width - 1 - full)
        return f"{_GREEN}{done}{_DIM}{rest}{_RESET} " if self._coloured else f"{done}{rest} "


class NotebookLine:
    """One output of a notebook cell that is replaced; it keeps its last text."""

    def __init__(self) -> None:
        self._shown = ""
        self._handle: Any = None  # Any: a DisplayHandle of IPython, which has no types here

    def show(self, text: str) -> None:
        """Show this text in place of the one before."""
        if text == self._shown:
            return
        self._shown, content = text, {"text/plain": text}
        if self._handle is None:
            self._handle = import_module("IPython.display").display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)


class _LineLayout(NamedTuple):
    bar: int
    facts: tuple[str, ...]


_FORMS: Final = (
    _LineLayout(21, ("samples", "requests", "flight", "retries", "cost", "left")),
    _LineLayout(11, ("samples", "requests", "flight", "retries", "cost", "left")),
    _LineLayout(11, ("samples", "rate", "flight", "retries", "cost", "left")),
    _LineLayout(7, ("samples", "rate", "flight", "retries", "cost", "left")),
    _LineLayout(0, ("samples", "rate", "flight", "retries", "cost", "left")),
    _LineLayout(0, ("samples", "rate", "flight", "cost", "left")),
    _LineLayout(0, ("samples", "rate", "cost", "left")),
    _LineLayout(0, ("samples", "cost", "left")),
    _LineLayout(0, ("samples", "left")),
    _LineLayout(0, ("samples",)),
)
"""Layouts from the widest to the narrowest: the width of the bar with its blank, and the facts after it."""


def fitting(
    pace: ProgressStats, width: int, level: int = 0, translation: Translation = _ENGLISH
) -> tuple[int, str, int]:
    """Return the first layout, from `level` on, that fits into `width` columns: its number, text and bar width."""
    facts = _facts(pace, translation)
    for number, form in enumerate(_FORMS[level:], level):
        text = " " + ", ".join(filter(None, (facts[name] for name in form.facts)))
        if len(text) + form.bar <= width:
            return number, text, form.bar
    return len(_FORMS) - 1, f" {facts['samples']}"[:width], 0


def sentence(pace: ProgressStats, translation: Translation = _ENGLISH) -> str:
    """Return the same facts as a plain line."""
    facts = _facts(pace, translation)
    share, say = pace.done / pace.samples if pace.samples else 1.0, translation.phrase
    parts = [say(f"{pace.done:,} of {count(pace.samples, 'sample')} ({share:.0%})"), facts["requests"]]
    if pace.done < pace.samples:
        parts += [facts["flight"]]
    parts += [facts["retries"], facts["cost"], say(f"{pace.seconds:.0f} s"), facts["left"]]
    return ", ".join(filter(None, parts))


def _facts(pace: ProgressStats, translation: Translation) -> dict[str, str]:
    """Return each fact as text; empty if there is nothing to report."""
    rate = pace.requests_per_s
    facts = {
        "samples": f"{pace.done:,}/{pace.samples:,}",
        "requests": "" if rate is None else _rate(rate, "requests"),
        "rate": "" if rate is None else _rate(rate, "req"),
        "flight": f"{pace.in_flight:,} in flight" if pace.requests_per_s is not None or pace.in_flight else "",
        "retries": count(pace.retries, "retry", "retries") if pace.retries else "",
        "cost": _cost(pace),
        "left": _left(pace),
    }
    return {name: translation.phrase(fact) for name, fact in facts.items()}


def _rate(per_s: float, what: str) -> str:
    if per_s < 1:
        return f"{per_s * 60:.0f} {what}/min"
    return f"{per_s:,.0f} {what}/s" if per_s >= 10 else f"{per_s:.1f} {what}/s"


def _cost(pace: ProgressStats) -> str:
    if not pace.cost_usd:
        return ""
    if pace.cost_in_all_usd is None or pace.done == pace.samples:
        return f"${money(pace.cost_usd)}"
    in_all = pace.cost_in_all_usd
    return f"${money(pace.cost_usd)} of ~${f'{in_all:,.0f}' if in_all >= _ROUGH_USD else money(in_all)}"


def _left(pace: ProgressStats) -> str:
    if pace.done == pace.samples:
        return ""
    if pace.paused_s >= _SHOWN_PAUSE_S:
        return f"waiting {ceil(pace.paused_s)} s (429)"
    return "" if pace.seconds_left is None else f"{duration(max(1.0, pace.seconds_left))} left"


def _takes_a_line(stream: TextIO) -> bool:
    """Return True if a line can be overwritten: on a terminal that is not dumb, and not in CI, which logs output."""
    return stream.isatty() and os.environ.get("TERM") != "dumb" and os.environ.get("CI", "") in {"", "0", "false"}


def _in_notebook() -> bool:
    """Return True if the code runs in a kernel of Jupyter, whose front end can replace an output."""
    if "IPython" not in sys.modules:
        return False
    shell: Any = sys.modules["IPython"].get_ipython()  # Any: no types
    return getattr(shell, "kernel", None) is not None


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
