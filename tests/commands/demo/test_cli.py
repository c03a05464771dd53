"""`merilo demo`."""

import json
import shlex

import pytest
from command_line import Here
from demo_runs import Demo

pytestmark = pytest.mark.timeout(300)  # the first test to ask makes the demo, which takes a minute on a busy machine


def test_the_demo_leaves_nothing_elsewhere(demo: Demo) -> None:
    """Nothing is written but the directory that --out names; not even the verdict cache."""
    assert demo.written == ["a place"]


def test_the_demo_decides_by_the_passages_that_annotators_chose(demo: Demo) -> None:
    """Ids name the worse retriever; the judge's own numbers name none, as the contexts differ."""
    assert "opening_overlap is worse by ids: reciprocal_rank 0.864 to 0.636" in demo.text
    assert "By the judge alone: cannot tell, because the contexts differ" in demo.text
    assert max(map(len, demo.text.splitlines())) <= 80


def test_the_commands_that_the_demo_names_work(demo: Demo, here: Here) -> None:
    """Each of the three commands at the end works as typed."""
    demo.copied(here.path / "a place")
    commands = [shlex.split(line) for line in demo.text.split("Next\n")[1].splitlines()]
    assert len(commands) == 3
    for command in commands:
        assert here.merilo(*command[1:]).returncode == 0, command


def test_a_second_demo_prints_the_same_bytes(demo: Demo, here: Here) -> None:
    """The demo prints the same text when it is run again, over its own runs."""
    demo.copied(here.path / "a place")
    assert here.merilo("demo", "--out", "a place").stdout == demo.text


def test_the_demo_makes_a_run_of_another_version_anew(demo: Demo, here: Here) -> None:
    """A run that differs is replaced; a directory that holds anything else is left alone."""
    demo.copied(here.path / "a place")
    manifest = here.path / "a place" / "answers" / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text(encoding="utf-8")), "splitter": "another"}))
    assert here.merilo("demo", "--out", "a place").stdout == demo.text
    manifest.write_text(json.dumps({**json.loads(manifest.read_text(encoding="utf-8")), "splitter": "another"}))
    (manifest.parent / "notes.txt").write_text("mine")
    refused = here.merilo("demo", "--out", "a place")
    assert refused.returncode == 2
    assert (manifest.parent / "notes.txt").read_text() == "mine"
