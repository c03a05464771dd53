"""`merilo demo`."""

from __future__ import annotations

import json
import shlex
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from command_line import Here

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Shown:
    """A demo that was run once, for all tests to look at."""

    here: Here
    text: str

    def copied(self, into: Path) -> None:
        """Its directory, where a test may change it."""
        shutil.copytree(self.here.path / "a place", into)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """What the first demo prints, in a directory with a blank in its name."""
    here = Here(tmp_path_factory.mktemp("demo"))
    done = here.merilo("demo", "--out", "a place")
    assert done.returncode == 0, done.stderr
    return Shown(here, done.stdout)


def test_the_demo_leaves_nothing_elsewhere(shown: Shown) -> None:
    """Nothing is written but the directory that --out names; not even the verdict cache."""
    assert [path.name for path in shown.here.path.iterdir()] == ["a place"]


def test_the_demo_shows_both_rulers(shown: Shown) -> None:
    """The passages that people chose stand beside the judge's numbers, and the page says whether they agree."""
    assert "hit rate@1                            0.817    0.583" in shown.text
    assert "MRR@5                                 0.864    0.636" in shown.text
    assert "By the judge, bm25 is ahead; by the passages that annotators chose, bm25." in " ".join(shown.text.split())
    assert max(map(len, shown.text.splitlines())) <= 80


def test_the_commands_that_the_demo_names_work(shown: Shown, here: Here) -> None:
    """Each of the three commands at the end works as typed."""
    shown.copied(here.path / "a place")
    commands = [shlex.split(line) for line in shown.text.split("Next\n")[1].splitlines()]
    assert len(commands) == 3
    for command in commands:
        assert here.merilo(*command[1:]).returncode == 0, command


def test_a_second_demo_prints_the_same_bytes(shown: Shown, here: Here) -> None:
    """The demo prints the same text when it is run again, over its own runs or from nothing."""
    again = here.merilo("demo", "--out", "a place")
    assert again.stdout == shown.text
    assert here.merilo("demo", "--out", "a place").stdout == shown.text


def test_the_demo_makes_a_run_of_another_version_anew(shown: Shown, here: Here) -> None:
    """A run that differs is replaced; a directory that holds anything else is left alone."""
    shown.copied(here.path / "a place")
    manifest = here.path / "a place" / "answers" / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text(encoding="utf-8")), "splitter": "another"}))
    assert here.merilo("demo", "--out", "a place").stdout == shown.text
    manifest.write_text(json.dumps({**json.loads(manifest.read_text(encoding="utf-8")), "splitter": "another"}))
    (manifest.parent / "notes.txt").write_text("mine")
    refused = here.merilo("demo", "--out", "a place")
    assert refused.returncode == 2
    assert (manifest.parent / "notes.txt").read_text() == "mine"
