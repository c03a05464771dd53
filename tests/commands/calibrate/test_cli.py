"""The judge's errors by group, from the command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from command_line import Here
from labelled_run import by_grade, contexts_rows, fill_in, judged_run

from merilo.commands.label.run import label_run

if TYPE_CHECKING:
    from pathlib import Path


def test_groups_are_named_by_repeated_options(tmp_path: Path) -> None:
    """Labels of a pair show the systems and are stored in both runs; `show --people --by` has one table a field."""
    first, second = (judged_run(tmp_path / name, contexts_rows(30), ["context_relevance"]) for name in ("a", "b"))
    label_run(first, tmp_path / "t.jsonl", samples=30, other=second)
    fill_in(tmp_path / "t.jsonl", by_grade)
    here = Here(tmp_path)
    done = here.merilo("label", "a", "b", "--labels", "t.jsonl", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)["metrics"]["context_relevance"]["agreement"]["relevance"]["by"]
    assert {each["group"] for each in found["system"]} == {"a", "b"}
    options = ["show", "a", "--people", "--by", "language", "--by", "length"]
    done = here.merilo(*options)
    assert (done.returncode, done.stderr) == (0, "")
    assert [f"Errors by {name}:" in done.stdout for name in ("language", "length")] == [True] * 2
    assert [*here.json(*options)["metrics"]["context_relevance"]["agreement"]["relevance"]["by"]] == options[4::2]
    assert all((tmp_path / name / "labels.jsonl").exists() for name in ("a", "b"))


def test_systems_need_another_run(tmp_path: Path) -> None:
    """The message shows the command to use, and the exit code is 2."""
    run = judged_run(tmp_path / "a", contexts_rows(12), ["context_relevance"])
    label_run(run, tmp_path / "t.jsonl", samples=12)
    fill_in(tmp_path / "t.jsonl", by_grade)
    here = Here(tmp_path)
    assert here.merilo("label", "a", "--labels", "t.jsonl").returncode == 0
    done = here.merilo("show", "a", "--people", "--by", "system")
    assert done.returncode == 2
    assert "merilo label a OTHER --labels FILE" in done.stderr
