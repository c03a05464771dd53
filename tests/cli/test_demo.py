"""`merilo demo`."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from command_line import Here


def test_a_second_demo_prints_the_same_bytes(here: Here) -> None:
    """The demo prints the same text when it is run again, over its own runs or from nothing."""
    first, again = here.merilo("demo"), here.merilo("demo")
    assert first.returncode == 0, first.stderr
    assert first.stdout == again.stdout
    assert max(map(len, first.stdout.splitlines())) <= 80


def test_the_demo_shows_both_rulers(here: Here) -> None:
    """The passages that people chose stand beside the judge's numbers, and the page says whether they agree."""
    shown = here.merilo("demo").stdout
    assert "hit rate@1                            0.817    0.583" in shown
    assert "MRR@5                                 0.864    0.636" in shown
    assert "By the judge, bm25 is ahead; by the passages that people chose, bm25." in " ".join(shown.split())


def test_the_commands_that_the_demo_names_work(here: Here) -> None:
    """Each of the three commands at the end works as typed."""
    shown = here.merilo("demo", "--out", "a place").stdout
    commands = [shlex.split(line) for line in shown.split("Next\n")[1].splitlines()]
    assert len(commands) == 3
    for command in commands:
        assert here.merilo(*command[1:]).returncode == 0, command


def test_the_demo_makes_a_run_of_another_version_anew(here: Here) -> None:
    """A run that differs is replaced; a directory that holds anything else is left alone."""
    first = here.merilo("demo").stdout
    manifest = here.path / "merilo-demo" / "bm25" / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text(encoding="utf-8")), "splitter": "another"}))
    assert here.merilo("demo").stdout == first
    manifest.write_text(json.dumps({**json.loads(manifest.read_text(encoding="utf-8")), "splitter": "another"}))
    (manifest.parent / "notes.txt").write_text("mine")
    refused = here.merilo("demo")
    assert refused.returncode == 2
    assert (manifest.parent / "notes.txt").read_text() == "mine"


def test_the_demo_leaves_nothing_elsewhere(here: Here) -> None:
    """Nothing is written but the directory that --out names; not even the verdict cache."""
    here.merilo("demo", "--out", "shown")
    assert [path.name for path in here.path.iterdir()] == ["shown"]
