"""A run's scores are read as columns, one number for each sample and metric, in the run's order."""

import json
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any

import pytest
from seals import seal_again

import merilo
from merilo.errors import DataError, RunError
from merilo.results.scores import read_scores
from merilo.runs.files import MANIFEST, OUTCOMES
from merilo.stats.column import Column

METRICS = ("hit_rate@1", "reciprocal_rank", "recall@2")
SAMPLES: list[dict[str, Any]] = [
    {"id": "q1", "retrieved_context_ids": ["a", "b"], "reference_context_ids": ["a"], "metadata": {"doc": 7}},
    {"id": 'q"2\\', "retrieved_context_ids": ["x", "b"], "reference_context_ids": ["b"], "metadata": {"doc": "7"}},
    {"id": "вопрос", "retrieved_context_ids": ["x"], "reference_context_ids": [], "metadata": {"doc": ["d", 1]}},
    {"id": "q4", "retrieved_context_ids": [], "reference_context_ids": ["a", "b"], "metadata": {"doc": "7"}},
]


@pytest.fixture
def run(tmp_path: Path) -> merilo.Run:
    return merilo.evaluate(SAMPLES, metrics=METRICS, out=tmp_path / "run", storage={"cache": False})


def rewritten(run: merilo.Run, change: Callable[[dict[str, Any]], object]) -> merilo.Run:
    """The run, sealed again, with each of its outcomes changed in its file."""
    records = [json.loads(line) for line in (run.path / OUTCOMES).read_text(encoding="utf-8").splitlines()]
    for record in records:
        change(record)
    text = "".join(json.dumps(record) + "\n" for record in records)
    (run.path / OUTCOMES).write_text(text, encoding="utf-8")
    return merilo.Run.open(seal_again(run.path))


def change_manifest(run: merilo.Run, **fields: object) -> merilo.Run:
    """The run, sealed again, with these fields of its manifest; None takes one out."""
    manifest = json.loads((run.path / MANIFEST).read_text(encoding="utf-8")) | fields
    kept = {name: value for name, value in manifest.items() if value is not None}
    (run.path / MANIFEST).write_text(json.dumps(kept), encoding="utf-8")
    return merilo.Run.open(seal_again(run.path))


def cells(column: Column) -> list[float | str]:
    """The scores of a column, and what stands in the place of one."""
    states = zip(column.values.tolist(), column.scored, column.failed, strict=True)
    return [value if scored else "failed" if failed else "undefined" for value, scored, failed in states]


def test_columns_are_what_the_outcomes_say(run: merilo.Run) -> None:
    """Ids and metrics come in the run's order, a sample without a score is there as undefined."""
    scores = read_scores(run)
    assert scores.ids == ("q1", 'q"2\\', "вопрос", "q4")
    assert list(scores.columns) == list(METRICS)
    assert cells(scores.columns["hit_rate@1"]) == [1.0, 0.0, "undefined", 0.0]
    assert cells(scores.columns["reciprocal_rank"]) == [1.0, 0.5, "undefined", 0.0]
    assert scores.clusters is None


def test_failed_outcomes_are_told_from_undefined_ones(run: merilo.Run) -> None:
    """A failed outcome is marked as such and has no score."""

    def fail(record: dict[str, Any]) -> None:
        if record["sample"] == "q1" and record.pop("value", None) is not None:
            record.update(outcome="failed", error={"kind": "broken", "message": "torn"})

    column = read_scores(rewritten(run, fail)).columns["recall@2"]
    assert cells(column) == ["failed", 1.0, "undefined", 0.0]
    assert column.undefined.tolist() == [False, False, True, False]


def test_clusters_are_equal_values_of_a_key_of_the_metadata(run: merilo.Run) -> None:
    """The number 7 and the text "7" are the same cluster; a list is one by its JSON."""
    assert read_scores(run, cluster="doc").clusters == ("7", "7", '["d",1]', "7")


def test_samples_without_a_cluster_are_counted_and_named(tmp_path: Path) -> None:
    """Nothing is put into a cluster of its own in silence."""
    samples = [sample | {"metadata": {"doc": "d"} if sample["id"] == "q4" else {}} for sample in SAMPLES]
    run = merilo.evaluate(samples, metrics=METRICS, out=tmp_path / "run", storage={"cache": False})
    with pytest.raises(DataError, match=r"^3 samples have no cluster field 'doc': q1, q\"2\\, вопрос\."):
        read_scores(run, cluster="doc")


def test_the_cluster_of_the_run_is_taken_unless_another_or_none_is_named(run: merilo.Run) -> None:
    """`cluster=None` is what the manifest records, `""` is no clusters."""
    run = change_manifest(run, cluster="doc")
    assert read_scores(run).clusters == ("7", "7", '["d",1]', "7")
    assert read_scores(run, cluster="").clusters is None


def test_a_column_has_the_range_that_the_run_recorded(run: merilo.Run) -> None:
    """What a later merilo thinks of the metric does not matter; null is an end without a limit."""
    scale = {"range": [0, None], "higher_is_better": False}
    run = change_manifest(run, scales={"recall@2": scale})
    column = read_scores(run).columns["recall@2"]
    assert (column.span, column.higher_is_better) == ((0.0, inf), False)


@pytest.mark.parametrize("value", [1.5, -0.1, float("inf"), float("nan")])
def test_a_score_outside_its_range_is_an_error(run: merilo.Run, value: float) -> None:
    """Nothing is concluded from a number that the metric cannot give."""

    def spoil(record: dict[str, Any]) -> None:
        if record["sample"] == "q4" and "value" in record:
            record["value"] = value

    with pytest.raises(RunError, match=r"not a finite number from 0 to 1|value is missing or has a wrong value"):
        read_scores(rewritten(run, spoil))


@pytest.mark.parametrize("cut", [1, 40, 400])
def test_a_file_that_was_cut_off_is_damaged(run: merilo.Run, cut: int) -> None:
    """A last line that is no JSON, or a metric that misses a sample, is told, not passed over."""
    path = run.path / OUTCOMES
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - cut] if cut != 1 else whole[: whole[:-1].rfind(b"\n") + 1])
    with pytest.raises(RunError, match=r"is damaged"):
        read_scores(seal_again(run.path))


def test_outcomes_that_lost_their_tail_are_not_taken_for_the_whole(run: merilo.Run) -> None:
    """A copy that was cut at the end of a line is told from a whole run, so that no gate passes on a part of it."""
    lines = (run.path / OUTCOMES).read_text(encoding="utf-8").splitlines(keepends=True)
    first = json.loads(lines[0])["sample"]
    kept = [line for line in lines if json.loads(line)["sample"] == first]
    (run.path / OUTCOMES).write_text("".join(kept), encoding="utf-8")
    with pytest.raises(RunError, match=r"is damaged: its summary covers \d+ samples, its outcomes 1"):
        read_scores(seal_again(run.path))
