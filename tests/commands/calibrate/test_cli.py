"""The judge's errors by group, from the command line."""

from pathlib import Path

from command_line import Here
from labelled_run import by_grade, contexts_rows, fill_in, judged_run

from merilo.commands.label.run import label_run


def test_labels_of_a_pair_are_stored_in_both_runs(tmp_path: Path) -> None:
    """`show --people` of either run has them; with `--by` it is refused."""
    first, second = (judged_run(tmp_path / name, contexts_rows(30), ["context_relevance"]) for name in ("a", "b"))
    label_run(first, tmp_path / "t.jsonl", samples=30, other=second)
    fill_in(tmp_path / "t.jsonl", by_grade)
    here = Here(tmp_path)
    done = here.merilo("label", "a", "b", "--labels", "t.jsonl", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert here.json("show", "b", "--people")["metrics"]["context_relevance"]["agreement"]["relevance"]["items"]
    assert here.merilo("show", "a", "--people", "--by", "language").returncode == 2
    assert all((tmp_path / name / "labels.jsonl").exists() for name in ("a", "b"))
