"""The judge's errors by group, from the command line."""

from pathlib import Path

from command_line import Here
from labelled_run import by_grade, contexts_rows, fill_in, judged_run

from merilo.commands.label.run import label_run


def test_groups_are_named_by_repeated_options(tmp_path: Path) -> None:
    """Labels of a pair are stored in both runs; `show --people --by` has one table a field."""
    first, second = (judged_run(tmp_path / name, contexts_rows(30), ["context_relevance"]) for name in ("a", "b"))
    label_run(first, tmp_path / "t.jsonl", samples=30, other=second)
    fill_in(tmp_path / "t.jsonl", by_grade)
    here = Here(tmp_path)
    done = here.merilo("label", "a", "b", "--labels", "t.jsonl", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    options = ["show", "a", "--people", "--by", "language", "--by", "length"]
    done = here.merilo(*options)
    assert (done.returncode, done.stderr) == (0, "")
    assert [f"Errors by {name}" in done.stdout for name in ("language", "length")] == [True] * 2
    assert [*here.json(*options)["metrics"]["context_relevance"]["agreement"]["relevance"]["by"]] == options[4::2]
    assert all((tmp_path / name / "labels.jsonl").exists() for name in ("a", "b"))
