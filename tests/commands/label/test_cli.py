"""`merilo label` as people use it, the form in a real pseudo-terminal."""

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import COMMAND, Here

CTRL_C, CTRL_D = b"\x03", b"\x04"
ATTACHED = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
"""Makes standard input the terminal whose keys send signals, and becomes the command."""
WAIT_S = 100.0


class Typist:
    """Somebody at a terminal in which the form runs."""

    def __init__(self, here: Here, *arguments: str) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", ATTACHED, COMMAND, "label", *arguments],
            cwd=here.path,
            env={**here.environment, "TERM": "xterm"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self.seen = ""

    def wait_for(self, text: str) -> str:
        """What was written up to this text and after what was waited for last."""
        end = time.monotonic() + WAIT_S
        while text not in self.seen:
            assert time.monotonic() < end, self.seen
            try:
                self.seen += os.read(self._ours, 65536).decode("utf-8", "replace")
            except OSError:  # the other side is closed
                raise AssertionError(self.seen) from None
        before, _, self.seen = self.seen.partition(text)
        return before

    def type(self, keys: bytes) -> None:
        """Press keys; a terminal sends them as they come."""
        os.write(self._ours, keys)

    def end(self) -> int:
        """The exit code, once the command has ended."""
        with contextlib.suppress(OSError):
            while piece := os.read(self._ours, 65536):
                self.seen += piece.decode("utf-8", "replace")
        return self.process.wait(WAIT_S)

    def close(self) -> None:
        """End what is left."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._ours)


@pytest.fixture
def tasks(run: Here) -> Here:
    """A run and the four tasks of its `faithfulness`, in tasks.jsonl."""
    done = run.merilo("label", "out", "--metric", "faithfulness", "--number", "4", "-o", "tasks.jsonl")
    assert done.returncode == 0, done.stderr
    return run


def labels(here: Here, name: str = "tasks.jsonl") -> list[Any]:
    lines = (here.path / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["label"] for line in lines]


@contextlib.contextmanager
def typist(here: Here, *arguments: str) -> Iterator[Typist]:
    one = Typist(here, *arguments)
    try:
        yield one
    finally:
        one.close()


def test_tasks_are_drawn_and_the_next_commands_shown(run: Here) -> None:
    """The page says what was drawn, of how many, and what to type next; --json says it in fields."""
    done = run.merilo("label", "out", "--metric", "context_relevance", "-o", "t.csv")
    assert done.stdout.startswith("2 of 2 questions, drawn at random, 3 contexts to label for context_relevance:\n")
    assert "label t.csv\n" in done.stdout
    assert "label out --labels t.csv" in done.stdout
    found = run.json("label", "out", "--metric", "context_relevance", "-o", "t.jsonl")
    assert found["unit"] == "whole"
    assert (found["tasks"], found["samples"], found["scored_samples"], found["minutes"]) == (3, 2, 2, 0.3)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("out", "--json"), "leave out --json, or name a file for the tasks"),
        (("data.jsonl", "-o", "t.jsonl"), "The tasks are in data.jsonl; leave out --out"),
        (("data.jsonl",), "No task to label in data.jsonl."),
        (("none.jsonl",), "No such file: none.jsonl."),
        (("none",), "No such run: none"),
        (("out", "--labels", "t.jsonl", "--html", "t.html"), "leave out --out and --html"),
        (("out", "-o", "t.parquet", "--metric", "faithfulness"), "A file of tasks ends in .jsonl or .csv"),
    ],
)
def test_wrong_use_has_a_sentence(run: Here, arguments: tuple[str, ...], says: str) -> None:
    """Each wrong call says what to type instead, with exit code 2."""
    done = run.merilo("label", *arguments)
    assert done.returncode == 2
    assert says in done.stderr


def test_the_form_asks_keeps_each_label_and_ends(tasks: Here) -> None:
    """An answer is in the file before the next task is shown; at the end the form says how many are labelled."""
    with typist(tasks, "tasks.jsonl", "--annotator", "ann") as person:
        shown = person.wait_for("> ")
        assert "Task 1 of 4, 0 labelled" in shown
        assert "Do these texts support the statement?" in shown
        person.type(b"y\n")
        assert "Task 2 of 4, 1 labelled" in person.wait_for("> ")
        assert labels(tasks) == ["yes", None, None, None]
        person.type(b"perhaps\n")
        assert "Type n, y, or s, b, q." in person.wait_for("> ")
        person.type(b"no\n")
        person.wait_for("> ")
        person.type(b"Y\n")
        person.wait_for("> ")
        person.type(b"s\n")
        assert person.end() == 0
        assert "3 of 4 tasks labelled; 1 skipped. Repeat the command to label it." in person.seen
    assert labels(tasks) == ["yes", "no", "yes", None]
    assert '"annotator": "ann"' in (tasks.path / "tasks.jsonl").read_text(encoding="utf-8")


def test_the_form_goes_back_skips_and_quits(tasks: Here) -> None:
    """`b` shows the task before with its label, Enter keeps it, `s` leaves a task for later, `q` ends."""
    with typist(tasks, "tasks.jsonl") as person:
        person.wait_for("> ")
        person.type(b"y\n")
        person.wait_for("> ")
        person.type(b"b\n")
        assert "Labelled yes so far; press Enter to keep it." in person.wait_for("> ")
        person.type(b"n\n")
        person.wait_for("> ")
        person.type(b"s\n")
        assert "Task 3 of 4" in person.wait_for("> ")
        person.type(b"q\n")
        assert person.end() == 0
        assert "1 of 4 tasks labelled; 3 left. Repeat the command to label them." in person.seen
    assert labels(tasks) == ["no", None, None, None]


def test_the_form_goes_on_where_it_was(tasks: Here) -> None:
    """A second call begins with the first task that has no label; the end of input is as good as q."""
    with typist(tasks, "tasks.jsonl") as person:
        person.wait_for("> ")
        person.type(b"y\n")
        person.wait_for("> ")
        person.type(CTRL_D)
        assert person.end() == 0
    with typist(tasks, "tasks.jsonl") as person:
        assert "Task 2 of 4, 1 labelled" in person.wait_for("> ")


@pytest.mark.parametrize("how", ["kill", "ctrl-c"])
def test_whatever_ends_the_form_the_labels_are_there(tasks: Here, how: str) -> None:
    """Killed between two tasks, or stopped by Ctrl-C, it leaves a whole file with every answer given."""
    with typist(tasks, "tasks.jsonl") as person:
        person.wait_for("> ")
        person.type(b"y\n")
        person.wait_for("> ")
        if how == "kill":
            person.process.send_signal(signal.SIGKILL)
            assert person.end() == -signal.SIGKILL
        else:
            person.type(CTRL_C)
            assert person.end() == 130
            assert "The answers are saved in tasks.jsonl" in person.seen
    assert labels(tasks) == ["yes", None, None, None]


def test_what_others_wrote_cannot_steer_the_terminal(run: Here) -> None:
    """Escape sequences in a context are shown as their codes."""
    hostile = {"id": "x", "user_input": "What is lost\u202e?", "retrieved_contexts": ["\x1b[2J\x07 1889 =1+1"]}
    run.write("hostile.jsonl", [hostile])
    run.write("judge.jsonl", [{"kind": "relevance", "verdict": {"grade": 0}}])
    run.merilo(
        "run", "hostile.jsonl", "--judge", "scripted:judge.jsonl", "--metrics", "context_relevance", "--out", "h"
    )
    run.merilo("label", "h", "-o", "h.jsonl")
    with typist(run, "h.jsonl") as person:
        shown = person.wait_for("> ")
        assert "\x1b[2J" not in shown
        assert "\\x1b[2J\\x07" in shown
        assert "\\u202e" in shown


def test_too_few_labels_are_no_estimate_and_exit_3(tasks: Here) -> None:
    """Four labels of three samples report nothing; the page says so, and that the run has too few questions."""
    tasks.merilo("label", "tasks.jsonl", stdin="y\nn\ny\nn\n")
    done = tasks.merilo("label", "out", "--labels", "tasks.jsonl")
    assert done.returncode == 3
    shown = " ".join(done.stdout.split())
    assert "Nothing is reported" in shown
    assert "at least 10 labelled" in shown
    assert "20 labelled samples are needed to decide; this run has 3. Evaluate more questions." in shown
    assert "judge alone" in tasks.merilo("show", "out", "--people", "--full").stdout


def test_attached_labels_are_said_to_be_kept(tasks: Here) -> None:
    """--labels leaves labels.jsonl with the run, and `show --people` compares the judge with them."""
    tasks.merilo("label", "tasks.jsonl", stdin="y\n")
    done = tasks.merilo("label", "out", "--labels", "tasks.jsonl")
    assert "The labels are stored with the run" in done.stdout
    assert Path(tasks.path / "out" / "labels.jsonl").is_file()
    assert "Human labels" in tasks.merilo("show", "out", "--full").stdout
    shown = tasks.merilo("show", "out")
    assert "1 of at least 20 needed samples are labelled" in " ".join(shown.stdout.split())
    assert tasks.json("show", "out")["metrics"]["faithfulness"]["correction"]["reported"] == "nothing"
    assert "judge compared with human labels" in tasks.merilo("show", "out", "--people", "--full").stdout
    again = tasks.json("show", "out", "--people")["metrics"]["faithfulness"]
    assert again == tasks.json("label", "out", "--labels", "tasks.jsonl")["metrics"]["faithfulness"]
