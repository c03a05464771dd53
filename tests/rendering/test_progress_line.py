"""The line that a terminal shows and the lines that a log gets: the same facts, never more than there is room for."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merilo.rendering.progress_line import ProgressLine, ProgressStats, TerminalLine, fitting, sentence

BUSY = ProgressStats(
    done=1_234,
    samples=10_000,
    seconds=51.0,
    requests_per_s=58.3,
    in_flight=64,
    retries=3,
    cost_usd=0.42,
    cost_in_all_usd=3.4,
    seconds_left=362.0,
)
PACES = st.builds(
    ProgressStats,
    done=st.integers(0, 10**7),
    samples=st.integers(1, 10**7),
    seconds=st.floats(0, 1e7),
    requests_per_s=st.none() | st.floats(0, 1e5),
    in_flight=st.integers(0, 5_000),
    retries=st.integers(0, 10**6),
    paused_s=st.floats(0, 600),
    cost_usd=st.none() | st.floats(0, 1e6),
    cost_in_all_usd=st.none() | st.floats(0, 1e7),
    seconds_left=st.none() | st.floats(0, 1e8),
)


class Terminal(io.StringIO):
    """A stream that claims to be a terminal with this encoding."""

    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]  # a plain attribute of the base
        return self._encoding

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "CI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (120, (" 1,234/10,000, 58 requests/s, 64 in flight, 3 retries, $0.42 of ~$3.40, 6 min left", 21)),
        (79, (" 1,234/10,000, 58 req/s, 64 in flight, 3 retries, $0.42 of ~$3.40, 6 min left", 0)),
        (70, (" 1,234/10,000, 58 req/s, 64 in flight, $0.42 of ~$3.40, 6 min left", 0)),
        (39, (" 1,234/10,000, 6 min left", 0)),
        (20, (" 1,234/10,000", 0)),
        (5, (" 1,23", 0)),
    ],
)
def test_the_narrower_the_less_is_told(width: int, shown: tuple[str, int]) -> None:
    """Where there is no room, the bar goes first and the samples last; nothing is cut in its middle before."""
    assert fitting(BUSY, width)[1:] == shown


@given(PACES, st.integers(1, 80))
def test_no_line_is_longer_than_its_room(pace: ProgressStats, width: int) -> None:
    """Whatever the figures are, text and bar together fit."""
    _, text, bar = fitting(pace, width)
    assert len(text) + bar <= width


@given(PACES)
def test_a_plain_line_is_one_line(pace: ProgressStats) -> None:
    """Plain lines hold no control sign and nothing that is not known."""
    line = sentence(pace)
    assert line.isprintable()
    assert "None" not in line
    assert "nan" not in line


def test_a_plain_line_says_all() -> None:
    """Done, rate, in flight, retries, cost so far and in all, time gone and left."""
    assert sentence(BUSY) == (
        "1,234 of 10,000 samples (12%), 58 requests/s, 64 in flight, 3 retries, $0.42 of ~$3.40, 51 s, 6 min left"
    )


@pytest.mark.parametrize(("encoding", "signs"), [("utf-8", "━─"), ("ascii", "=-"), ("cp1252", "=-")])
def test_the_bar_has_signs_that_the_terminal_has(encoding: str, signs: str) -> None:
    """Where the terminal is not UTF-8 the bar is ASCII."""
    terminal = Terminal(encoding)
    TerminalLine(terminal).draw(ProgressStats(done=5, samples=10, seconds=1.0))
    drawn = re.sub(r"\x1b\[\d+m", "", terminal.getvalue())
    assert drawn.strip() == signs[0] * 10 + signs[1] * 10 + " 5/10"


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
    drawn = re.sub(r"\x1b\[\d+m", "", terminal.getvalue())
    assert re.fullmatch(r"\r [━─]+ 0/10\r\r +\rSomething \\x1b\[31mred\nhappened.\n\r [━─]+ 0/10\r\r +\r", drawn)
