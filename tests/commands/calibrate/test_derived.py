"""Labels of verdicts, and the metrics that are computed from the same verdicts."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from labelled_run import Row, by_grade, contexts_rows, fill_in, grade_of, judged_run, lenient, read_tasks, strict

import merilo
from merilo.commands.calibrate.correction import (
    corrected_of,
    correction_of,
    match,
    paired_labels,
    uncorrected_of,
    usable_labels,
)
from merilo.commands.calibrate.human_labels import attach_files, read_people
from merilo.commands.gate.run import gate_run
from merilo.commands.gate.suite import Suite
from merilo.commands.label.run import label_run
from merilo.judging.kinds.contexts import Relevance
from merilo.judging.questions import Question
from merilo.metrics.formulas import average_precision, ndcg
from merilo.results.estimate import Basis
from merilo.results.scores import read_scores
from merilo.stats.correction import Reported

RELEVANCE, PRECISION, RANKING = METRICS = ("context_relevance", "context_precision", "context_ranking")
ROWS = contexts_rows(60)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> merilo.Run:
    return judged_run(tmp_path_factory.mktemp("run"), ROWS, METRICS)


def attached(
    folder: Path,
    *,
    rows: Sequence[Row] = ROWS,
    metrics: Sequence[str] = METRICS,
    judge: Callable[[Question[Any]], Row] = lenient,
    label: Callable[[Row], object] = by_grade,
    **draw: Any,
) -> merilo.Run:
    """A run with labels stored, whose tasks were drawn for the first metric."""
    made = judged_run(folder / "run", rows, metrics, judge)
    label_run(made, folder / "t.jsonl", metric=metrics[0], **draw)
    attach_files([str(made.path)], [str(fill_in(folder / "t.jsonl", label))])
    return merilo.Run.open(made.path)


def test_labels_of_all_items_correct_every_metric_of_the_same_verdicts(run: merilo.Run, tmp_path: Path) -> None:
    """Tasks drawn for context relevance with every context give the human value of the rank metrics by their plans."""
    label_run(run, tmp_path / "t.jsonl", metric=RELEVANCE, samples=30, items=9)
    labels = read_people([fill_in(tmp_path / "t.jsonl", by_grade)]).labels
    found = match(read_scores(run), labels, METRICS)
    grades = {row["id"]: [grade_of(text) for text in row["retrieved_contexts"]] for row in ROWS}
    assert [*found] == [*METRICS]
    precision, ranking = found[PRECISION], found[RANKING]
    assert precision.people == [average_precision([each > 0 for each in grades[s]]) for s in precision.samples]
    assert ranking.people == [pytest.approx(ndcg(grades[s], None)) for s in ranking.samples]
    assert len(precision.samples) == 30


def test_labels_of_some_items_are_stated_and_correct_no_rank_metric(tmp_path: Path) -> None:
    """Three of five contexts leave average precision unknown; the agreement on its verdicts is what is known."""
    made = attached(tmp_path, samples=30)
    by_task = {task["context"]: by_grade(task) for task in read_tasks(tmp_path / "t.jsonl")}
    odd = {row["user_input"]: row for row in ROWS}
    agree = sum(
        lenient(Relevance(task["user_input"], (task["context"],)))["grade"] == by_task[task["context"]]
        for task in read_tasks(tmp_path / "t.jsonl")
        if task["user_input"] in odd
    )
    found = uncorrected_of(made, METRICS[1:])
    assert set(found) == {PRECISION, RANKING}
    assert found[PRECISION] == (90, agree)
    assert 0 < agree < 90
    corrections = corrected_of(made)
    assert corrections[RELEVANCE].reported is Reported.CORRECTED
    assert corrections[PRECISION].estimate is None
    assert corrections[PRECISION].reason == f"People agree with its verdicts on {agree} of 90."


def test_one_interrupted_sample_is_left_out_and_two_incomplete_ones_correct_nothing(
    run: merilo.Run, tmp_path: Path
) -> None:
    """Samples whose items were not all drawn are not a random part of the draw, except the one of a pause."""
    label_run(run, tmp_path / "t.jsonl", metric=RELEVANCE, samples=20, items=9)
    tasks = read_tasks(tmp_path / "t.jsonl")
    for lacking, there in ((1, True), (2, False)):
        left = {task["task"] for task in tasks[: 5 * lacking : 5]}
        path = fill_in(
            tmp_path / "t.jsonl",
            lambda task, left=left: None if task["task"] in left else by_grade(task),
            out=tmp_path / f"{lacking}.jsonl",
        )
        found = match(read_scores(run), read_people([path]).labels, METRICS)
        assert (PRECISION in found) is there
        assert len(found[RELEVANCE].samples) == 20


def test_samples_that_follow_a_rule_alone_correct_nothing(tmp_path: Path) -> None:
    """Labels of sufficiency say nothing on relevance, also if some samples have blank contexts and so no question."""

    def judge(question: Question[Any]) -> Row:
        return lenient(question) if isinstance(question, Relevance) else {"label": "sufficient"}

    rows = [{**row, "retrieved_contexts": [" "]} if at % 2 else row for at, row in enumerate(ROWS)]
    metrics = ("context_sufficiency", RELEVANCE)
    made = attached(tmp_path, rows=rows, metrics=metrics, judge=judge, label=lambda _: "insufficient", samples=40)
    assert [*corrected_of(made)] == ["context_sufficiency"]


def test_a_gate_on_a_rank_metric_alone_uses_the_labels(tmp_path: Path) -> None:
    """The gate reads the metric that tasks were drawn for too, although no gate names it, and says so in one line."""
    made = attached(tmp_path, samples=30, items=9)
    found = gate_run(made, Suite(minimums={PRECISION: 0.1}))
    assert [gate.estimate.basis for gate in found.gates] == [Basis.LABELS]
    usable = usable_labels(read_scores(made), METRICS)
    assert usable.notes == ("Labels on relevance of 30 samples also correct context_precision.",)
    assert usable.labels[PRECISION].samples == 30


def test_a_mean_that_labels_leave_undefined_on_some_samples_is_that_of_the_labels(tmp_path: Path) -> None:
    """Weights by the judge's scores would count samples in which people found nothing relevant."""
    rows = contexts_rows(60, contexts=2)
    made = attached(tmp_path, rows=rows, metrics=(RANKING, RELEVANCE), samples=40)
    scores = read_scores(made)
    found = match(scores, read_people([tmp_path / "t.jsonl"]).labels, (RANKING,))[RANKING]
    assert found.broken
    correction = correction_of(scores, RANKING, found)
    assert correction.reported is Reported.HUMAN
    assert correction.corrected.value is None
    assert RANKING not in usable_labels(scores, (RANKING,)).labels
    assert RANKING in usable_labels(scores, (RANKING,)).uncorrected


def test_labels_of_a_pair_correct_differences_of_the_same_verdicts(tmp_path: Path) -> None:
    """Tasks of a pair drawn for context relevance with all contexts correct the rank metrics' differences too."""
    runs = [
        judged_run(tmp_path / name, contexts_rows(60, contexts=3, seed=seed), METRICS, judge)
        for name, seed, judge in (("a", 1, lenient), ("b", 2, strict))
    ]
    label_run(runs[0], tmp_path / "t.jsonl", metric=RELEVANCE, samples=30, other=runs[1])
    attach_files([str(each.path) for each in runs], [str(fill_in(tmp_path / "t.jsonl", by_grade))])
    first, second = (read_scores(each.path, metrics=[PRECISION, RANKING]) for each in runs)
    found = paired_labels(first, second, [PRECISION, RANKING])
    assert len(found.labels[PRECISION].places) == 30
    assert (found.labels[PRECISION].second[0] == found.labels[PRECISION].second[1]).all()
    assert found.notes == ("Labels on relevance of 30 samples also correct context_precision, context_ranking.",)
    assert not found.uncorrected
