"""What `merilo run` shows while it works: on many kinds of terminals, in a pipe, with --quiet, and when stopped."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from command_line import COMMAND, Here
from server import JudgeServer, rate_limited, reset

PRICES = '[[price]]\nmodel = "test-model"\ninput = 100.0\noutput = 400.0\n'
SGR = re.compile(r"\x1b\[[\d;]*m")
CTRL_C = b"\x03"
ATTACHED = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
"""Makes standard input the terminal whose keys send signals, and becomes the command."""


@dataclass
class Screen:
    """What a terminal of so many columns shows; the only controls it knows are colours and the two line ends."""

    width: int
    lines: list[str]
    column: int = 0
    wrapped: bool = False
    """Whether a sign was ever written beyond the last column."""

    @classmethod
    def of(cls, written: str, width: int) -> "Screen":
        screen = cls(width, [""])
        for sign in SGR.sub("", written):
            screen.take(sign)
        return screen

    def take(self, sign: str) -> None:
        if sign == "\r":
            self.column = 0
        elif sign == "\n":
            self.lines.append("")
        else:
            assert sign.isprintable(), f"{sign!r} steers the terminal"
            if self.column == self.width:
                self.wrapped, self.column = True, 0
                self.lines.append("")
            line = self.lines[-1].ljust(self.column)
            self.lines[-1] = line[: self.column] + sign + line[self.column + 1 :]
            self.column += 1

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.lines)


@dataclass
class Shown:
    """One command whose standard error was a terminal."""

    err: str
    out: str
    code: int
    width: int

    @property
    def screen(self) -> "Screen":
        return Screen.of(self.err, self.width)

    @property
    def left(self) -> list[str]:
        """The lines that remain when all is over, on a terminal that breaks none."""
        return Screen.of(self.err, 10_000).text.split("\n")

    @property
    def frames(self) -> list[str]:
        """Each line as it was drawn over the one before."""
        return [part.strip() for part in re.split(r"[\r\n]+", SGR.sub("", self.err)) if part.strip()]


@dataclass
class Desk:
    """Where a run over 48 samples takes a few seconds."""

    here: Here
    server: JudgeServer

    @property
    def arguments(self) -> list[str]:
        return [
            *("run", "data.jsonl", "--judge", "openai:test-model", "--base-url", self.server.base_url),
            *("--metrics", "context_relevance", "--concurrency", "4", "--prices", "prices.toml", "--no-cache"),
        ]

    def shown(
        self,
        *more: str,
        width: int = 80,
        env: dict[str, str] | None = None,
        type_once_seen: tuple[str, bytes] | None = None,
    ) -> Shown:
        """Run with standard error on a terminal that is also the one it is typed at."""
        environment = {**self.here.environment, "TERM": "xterm-256color", "PYTHONUTF8": "1"}
        del environment["COLUMNS"]
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
        process = subprocess.Popen(
            [sys.executable, "-c", ATTACHED, COMMAND, *self.arguments, *more],
            cwd=self.here.path,
            env={**environment, **(env or {})},
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        try:
            written = _read(ours, type_once_seen)
            printed, _ = process.communicate(timeout=100)
        finally:
            process.kill()
            os.close(ours)
        return Shown(written, printed.decode(), process.returncode, width)


def _read(terminal: int, type_once_seen: tuple[str, bytes] | None) -> str:
    written = b""
    while True:
        try:
            part = os.read(terminal, 65_536)
        except OSError:  # Linux says so when the other side is closed
            return written.decode()
        written += part
        if type_once_seen is not None and type_once_seen[0].encode() in written:
            os.write(terminal, type_once_seen[1])
            type_once_seen = None


@pytest.fixture
def desk(here: Here) -> Iterator[Desk]:
    rows = [
        {
            "id": f"s{number} \x1b[2J\u202e",
            "user_input": f"How long is river {number}?",
            "retrieved_contexts": [f"River {number}, part {part}, is long." for part in range(2)],
        }
        for number in range(48)
    ]
    here.write("data.jsonl", rows)
    (here.path / "prices.toml").write_text(PRICES, encoding="utf-8")
    with JudgeServer(delay_s=0.06) as server:
        yield Desk(here, server)


def test_one_line_tells_all_and_is_gone_in_the_end(desk: Desk) -> None:
    """On a terminal the line says what is done, retries, pauses and the cost."""
    desk.server.fail(reset(), share=0.1, seed=2, first_attempt_only=True)
    desk.server.fail_next(*([rate_limited("2")] * 4))
    shown = desk.shown()
    assert shown.code == 0
    for fact in (
        r"^\d+ of 48 samples \(\d+%\), ",
        r", \d+ retr(y|ies)",
        r"waiting [12] s \(429\)",
        r"\$\d+\.\d\d",
    ):
        assert any(re.search(fact, frame) for frame in shown.frames), fact
    assert max(len(frame) for frame in shown.frames if "of 48" in frame) < 80
    assert [line for line in shown.left if line] == [frame for frame in shown.frames if "Retrying" in frame]
    assert "\x1b[?" not in shown.err  # the cursor is never hidden, so it need not be brought back
    assert shown.out.startswith("data: 48 samples")


def test_a_pipe_gets_plain_lines(desk: Desk) -> None:
    """Without a terminal there are a few lines with the same facts, and no control sign."""
    desk.server.fail_next(rate_limited("1"))
    done = desk.here.merilo(*desk.arguments, env={"PYTHONUTF8": "1"})
    lines = done.stderr.splitlines()
    assert done.returncode == 0
    assert all(line.isprintable() for line in lines)
    assert re.fullmatch(r"48 of 48 samples \(100%\), \$\d+\.\d\d, 1 retry, \d+ s", lines[-1])
    assert len(lines) <= 6


def test_progress_that_nobody_reads_ends_no_run(desk: Desk) -> None:
    """Where the reader of standard error has left, the run is done all the same."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [COMMAND, *desk.arguments],
        cwd=desk.here.path,
        env=desk.here.environment,
        stdout=subprocess.PIPE,
        stderr=writing,
        check=False,
    )
    os.close(writing)
    assert done.returncode == 0
    assert done.stdout.startswith(b"data: 48 samples")


def test_ctrl_c_takes_the_line_away(desk: Desk) -> None:
    """Stopped in the middle, nothing of the line is left, and the way to go on stands on lines of its own."""
    shown = desk.shown("--out", "run", type_once_seen=("of 48", CTRL_C))
    assert shown.code == 130
    assert shown.left[0].startswith("Stopped. Spent so far: ")
    assert shown.left[1].startswith("All answers are kept. To resume: merilo run data.jsonl")
    assert shown.left[2:] == [""]
