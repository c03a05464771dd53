"""The line that a terminal shows and the lines that a log gets: the same facts, never more than there is room for."""

import io
import re
from pathlib import Path

import pytest

from merilo.engine.progress import Traffic
from merilo.rendering import progress_line
from merilo.rendering.progress_line import ProgressLine


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


class Clock:
    """A clock that is set by hand, and the plain line that is written at a moment."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.now = 0.0
        self.capsys = capsys
        monkeypatch.setattr(progress_line.time, "monotonic", lambda: self.now)

    def line(self, watch: ProgressLine, at: float, samples: int, traffic: Traffic) -> str:
        self.now = at
        watch.watch(lambda: traffic)
        watch.advance(samples)
        watch.tick()
        return self.capsys.readouterr().err.splitlines()[-1]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Clock:
    return Clock(monkeypatch, capsys)


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "CI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")


def test_time_and_cost_are_estimated_from_the_first_request_on(clock: Clock, tmp_path: Path) -> None:
    """Samples that were answered before count neither for the time left nor for the cost in all."""
    watch = ProgressLine()
    watch.begin(tmp_path, 1_000)
    assert clock.line(watch, 10.0, 400, Traffic(known=400)) == "400 of 1,000 samples (40%), 15 s left, 10 s"
    assert clock.line(watch, 20.0, 0, Traffic(sent=1)).startswith("400 of 1,000 samples (40%), 20 s")
    found = clock.line(watch, 40.0, 300, Traffic(sent=300, cost_usd=6.0, retries=3))
    assert found == "700 of 1,000 samples (70%), 20 s left, $6.00 of ~$12, 3 retries, 40 s"
    found = clock.line(watch, 60.0, 300, Traffic(sent=600, cost_usd=12.0))
    assert found == "1,000 of 1,000 samples (100%), $12.00, 60 s"


def test_few_finished_samples_foretell_nothing(clock: Clock, tmp_path: Path) -> None:
    """Of a thousand samples one that is finished says neither what all cost nor how long they take."""
    watch = ProgressLine()
    watch.begin(tmp_path, 1_000)
    found = clock.line(watch, 30.0, 1, Traffic(sent=640, cost_usd=12.8))
    assert found == "1 of 1,000 samples (0%), $12.80, 30 s"


def test_a_cost_that_is_not_known_is_not_shown(clock: Clock, tmp_path: Path) -> None:
    """None is unknown: it becomes neither 0 nor an estimate."""
    watch = ProgressLine()
    watch.begin(tmp_path, 100)
    clock.line(watch, 10.0, 0, Traffic(sent=1, cost_usd=None))
    assert "$" not in clock.line(watch, 30.0, 50, Traffic(sent=50, cost_usd=None))


@pytest.mark.parametrize(("columns", "shown"), [(80, "0 of 10 samples (0%), 0 s"), (12, "0 of 10 sam")])
def test_a_line_is_cut_at_the_last_column(
    columns: int, shown: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It would wrap, and could not be drawn over."""
    monkeypatch.setenv("COLUMNS", str(columns))
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    watch = ProgressLine()
    watch.begin(tmp_path, 10)
    watch.tick()
    assert terminal.getvalue() == f"\r{shown}\r"


def test_a_note_and_the_end_are_not_mixed_with_the_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A note begins on a cleared line; after the end nothing is drawn, whoever still calls."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    watch = ProgressLine()
    watch.begin(tmp_path_factory.getbasetemp(), 10)
    watch.tick()
    watch.note("Something \x1b[31mred\nhappened.")
    watch.tick()
    watch.end()
    length = len(terminal.getvalue())
    watch.end()
    watch.tick()
    watch.advance(1)
    assert len(terminal.getvalue()) == length
    line = r"\r0 of 10 samples \(0%\), 0 s\r\r +\r"
    assert re.fullmatch(rf"{line}Something \\x1b\[31mred\nhappened.\n{line}", terminal.getvalue())
