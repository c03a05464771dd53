"""Runs whose metrics average probabilities: what is stored and shown, replay, and correction by human labels."""

from pathlib import Path
from typing import Any

import pytest
from labelled_run import Row, by_grade, contexts_rows, fill_in, grade_of, judged_run, lenient, read_tasks, true_mean
from page_text import page_text

import merilo
from merilo.commands.calibrate.correction import match
from merilo.commands.calibrate.human_labels import read_people
from merilo.commands.calibrate.run import label_agreement
from merilo.commands.label.run import label_run
from merilo.commands.report.run import report_run
from merilo.commands.report.run_page import run_page as report_page
from merilo.commands.show.summary import record_of, run_page
from merilo.judging.kinds.contexts import Relevance
from merilo.judging.questions import Question
from merilo.results.scores import read_scores

METRICS = ("context_relevance", "context_relevance(unit=context)", "context_precision")
NOTE = "context_relevance, context_relevance(unit=context) average of the judge's probabilities"
ROWS = contexts_rows(40)


def averaged(question: Question[Any]) -> Row:
    """The verdict of the lenient judge with a probability that metrics average."""
    verdict = lenient(question)
    return {**verdict, "probability": 0.1 + 0.35 * verdict["grade"], "averaged": True}


def mean_probability(rows: list[Row]) -> float:
    asked = [[averaged(_question(row, text))["probability"] for text in row["retrieved_contexts"]] for row in rows]
    return sum(sum(each) / len(each) for each in asked) / len(asked)


def _question(row: Row, text: str) -> Any:
    return Relevance(row["user_input"], (text,))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> merilo.Run:
    return judged_run(tmp_path_factory.mktemp("run") / "run", ROWS, METRICS, averaged)


def test_a_run_states_once_which_metrics_average(run: merilo.Run) -> None:
    """The full page and the HTML page have one sentence, and JSON one flag for each metric."""
    assert " ".join(str(run_page(run, 100, full=True)).split()).count(NOTE) == 1
    assert page_text(report_page(report_run(run))).count(NOTE.replace(") a", ")a")) == 1
    record = record_of(run)["metrics"]
    assert {name: each["averaged"] for name, each in record.items()} == dict(
        zip(METRICS, (True, True, False), strict=True)
    )


def test_the_page_of_a_sample_explains_its_value(run: merilo.Run) -> None:
    """The value is named an average of probabilities, and each verdict has its probability."""
    page = str([each.detail for each in report_run(run).entries])
    assert "average of the judge's probabilities; contexts 5" in page
    assert "p(relevant) = " in page


def test_the_mean_is_that_of_the_probabilities(run: merilo.Run) -> None:
    """Two rules, one number: by unit=grade and by unit=context at any grade."""
    expected = mean_probability(ROWS)
    assert run.metrics["context_relevance"].mean == pytest.approx(expected)
    assert run.metrics["context_relevance(unit=context)"].mean == pytest.approx(expected)


def test_labels_of_every_context_give_the_mean_of_people(run: merilo.Run, tmp_path: Path) -> None:
    """People's values count grades, the judge's values are its probabilities, as in the outcomes."""
    label_run(run, tmp_path / "t.jsonl", metric="context_relevance", samples=40, items=9)
    found = label_agreement(run, fill_in(tmp_path / "t.jsonl", by_grade), metrics=["context_relevance"])
    correction = found.metrics["context_relevance"].correction
    assert correction.human.value == pytest.approx(true_mean(ROWS), abs=1e-12)
    assert correction.raw.value == pytest.approx(mean_probability(ROWS))
    assert correction.corrected.value == pytest.approx(true_mean(ROWS), abs=1e-2)


def test_the_judge_is_compared_with_people_by_its_probabilities(run: merilo.Run, tmp_path: Path) -> None:
    """On some items of a sample, the value by the judge is the mean of its probabilities of these items."""
    label_run(run, tmp_path / "t.jsonl", metric="context_relevance", samples=8, items=2)
    path = fill_in(tmp_path / "t.jsonl", by_grade)
    found = match(read_scores(run), read_people([path]).labels, ["context_relevance"])["context_relevance"]
    inputs = {row["id"]: row for row in ROWS}
    texts: dict[str, list[str]] = {}
    for task in read_tasks(path):
        sample = next(row["id"] for row in ROWS if task["context"] in row["retrieved_contexts"])
        texts.setdefault(sample, []).append(task["context"])
    for sample, people, judge in zip(found.samples, found.people, found.judge, strict=True):
        own = [averaged(_question(inputs[sample], text))["probability"] for text in texts[sample]]
        assert judge == pytest.approx(sum(own) / len(own))
        assert people == pytest.approx(sum(map(grade_of, texts[sample])) / len(own) / 2)
