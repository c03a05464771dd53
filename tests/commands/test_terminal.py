"""How the command behaves on a terminal, in a pipe, and at its start."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import COMMAND, Here


def on_terminal(here: Here, *arguments: str, env: dict[str, str] | None = None) -> str:
    """What the command writes to a terminal that is both its outputs."""
    ours, theirs = pty.openpty()
    environment = {**here.environment, "TERM": "xterm-256color", **(env or {})}
    process = subprocess.Popen([COMMAND, *arguments], cwd=here.path, env=environment, stdout=theirs, stderr=theirs)
    os.close(theirs)
    written = b""
    while True:
        try:
            part = os.read(ours, 65_536)
        except OSError:  # Linux says so when the other side is closed
            break
        if not part:
            break
        written += part
    os.close(ours)
    process.wait(timeout=100)
    return written.decode()


def test_colours_are_for_terminals_that_want_them(run: Here) -> None:
    """A terminal gets tones, NO_COLOR, TERM=dumb and a pipe get none; the words are the same."""
    toned = on_terminal(run, "show", "out")
    assert "\x1b[1m" in toned
    plain = run.merilo("show", "out").stdout
    for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert on_terminal(run, "show", "out", env=environment).replace("\r\n", "\n") == plain
    stripped = toned.replace("\r\n", "\n")
    for code in ("0", "1", "2", "31", "32"):
        stripped = stripped.replace(f"\x1b[{code}m", "")
    assert stripped == plain


def test_the_width_follows_columns(run: Here) -> None:
    """Running text is broken at the width that COLUMNS names."""
    narrow = run.merilo("show", "out", "--sample", "tower", env={"COLUMNS": "50"}).stdout
    wide = run.merilo("show", "out", "--sample", "tower", env={"COLUMNS": "120"}).stdout
    assert max(map(len, wide.splitlines())) > 80
    assert len(narrow.splitlines()) > len(wide.splitlines())


def test_a_reader_that_leaves_is_no_error(run: Here) -> None:
    """When nobody reads the output any more the command stops without a word."""
    reading, writing = os.pipe()
    os.close(reading)
    process = subprocess.run(
        [COMMAND, "show", "out"], cwd=run.path, env=run.environment, stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)
    assert process.stderr == b""
    assert process.returncode == 141


def test_an_encoding_that_lacks_signs_does_not_break_the_output(here: Here) -> None:
    """Where standard output is ASCII, other letters are written as codes."""
    here.write("data.jsonl", [{"id": "я", "user_input": "Кто?", "retrieved_contexts": ["Король."]}])
    assert here.merilo("run", "data.jsonl", "--out", "out").returncode == 0
    done = here.merilo("show", "out", "--sample", "я", env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert "\\u041a\\u0442\\u043e" in done.stdout


def test_python_m_merilo_is_the_command(tmp_path: Path) -> None:
    """`python -m merilo --version` and `merilo --version` print the same."""
    printed = [
        subprocess.run([*start, "--version"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        for start in ([sys.executable, "-m", "merilo"], [COMMAND])
    ]
    assert printed[0] == printed[1]
    assert printed[0].startswith("merilo ")


@pytest.mark.parametrize(("words", "helped"), [((), ()), (("judge",), ("judge", "check"))])
def test_without_a_command_the_help_is_shown(here: Here, words: tuple[str, ...], helped: tuple[str, ...]) -> None:
    """The command alone shows its help; a group of one command shows that of the command."""
    assert here.merilo(*words).stdout == here.merilo(*helped, "--help").stdout
    assert here.merilo(*words).returncode == 0


@pytest.mark.parametrize("arguments", [("--version",), ("--help",), ("metrics",), ("run", "-h")])
def test_a_start_loads_nothing_slow(arguments: tuple[str, ...]) -> None:
    """Version, help and the list of metrics load neither the network, nor numbers, nor templates, nor a model."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "merilo", *arguments], capture_output=True, text=True, check=True
    )
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert loaded & {"aiohttp", "numpy", "scipy", "jinja2", "yaml", "sentencex", "razdel", "stamina"} == set()


_GATE = "merilo gate out --min context_relevance=0.1 --cannot-tell"
_INCOMPLETE = "Cannot write the standard output (No space left on device). The output is incomplete.\n"


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        (f"{_GATE} pass >&-", 0, ""),
        (f"{_GATE} fail >&-", 1, ""),
        ("merilo run data.jsonl --out o2 <&- >&- 2>&- && merilo show o2 >/dev/null", 0, ""),
        ("merilo gate missing 2>/dev/full", 2, ""),
        (
            "mkdir gone; cd gone; rmdir ../gone; merilo runs config",
            2,
            "The working directory no longer exists. Change to another one.\n",
        ),
        (f"{_GATE} pass >/dev/full", 74, _INCOMPLETE),
        (f"{_GATE} fail >/dev/full 2>&1", 74, ""),
        ("merilo --help >/dev/full", 74, _INCOMPLETE),
        (
            "ulimit -f 1; merilo metrics --json >large",
            74,
            _INCOMPLETE.replace("No space left on device", "File too large"),
        ),
        (f"{_GATE} pass 1</dev/null", 74, _INCOMPLETE.replace("No space left on device", "Bad file descriptor")),
        ("PYTHONPATH=broken:$PYTHONPATH merilo --version 2>/dev/null", 70, ""),
        (
            "merilo run data.jsonl --quiet --judge code.py:quits",
            2,
            "Code that the command used stopped it with SystemExit(1). Remove the call of sys.exit.\n",
        ),
    ],
)
def test_the_exit_code_is_true_without_streams(run: Here, command: str, code: int, message: str) -> None:
    """1 is the code of a failed gate only; output that cannot be written has its own code and one sentence."""
    (run.path / "broken" / "typer").mkdir(parents=True, exist_ok=True)
    (run.path / "broken" / "typer" / "__init__.py").write_text("raise ImportError", encoding="utf-8")
    (run.path / "code.py").write_text("async def quits(question): raise SystemExit(1)", encoding="utf-8")
    script = f'merilo() {{ "{sys.executable}" -m merilo "$@"; }}\n{command}'
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), **run.environment}
    done = subprocess.run(["sh", "-c", script], cwd=run.path, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr.decode()) == (code, message)
