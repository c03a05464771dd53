"""Labels of samples that the judge did not judge: they are drawn, and corrected numbers are about them too."""

from pathlib import Path
from typing import Any

import pytest
from labelled_run import fill_in, read_tasks

import merilo
from merilo.commands.calibrate.correction import corrected_metrics, corrected_of
from merilo.commands.calibrate.run import label_agreement
from merilo.commands.compare.run import compare_runs
from merilo.commands.gate.run import gate_run
from merilo.commands.gate.suite import Suite
from merilo.commands.label.run import label_run
from merilo.judges.scripted import ScriptedJudge
from merilo.judging.kinds.contexts import Support
from merilo.judging.kinds.responses import Statements
from merilo.judging.questions import Question
from merilo.judging.verdicts import Failure, FailureKind
from merilo.results.estimate import Verdict
from merilo.results.judged_samples import with_not_judged
from merilo.results.scores import read_scores
from merilo.runs.run import Run

METRIC, SAMPLES = "faithfulness", 40


def rows(end: str, blank: int = 0) -> list[dict[str, Any]]:
    """Samples with two statements each; the second one ends in another word in each run. One response is blank."""
    return [
        {
            "id": f"s{number}",
            "user_input": f"Who wrote book {number}?",
            "retrieved_contexts": [f"Ann wrote book {number}."],
            "response": f"Ann wrote book {number}. Book {number} sold {end}." if number != blank else " ",
        }
        for number in range(SAMPLES + 1)
    ]


def number_in(statement: str) -> int:
    """The number of the book that a statement is about."""
    return int(statement.split("ook ")[1].split(maxsplit=1)[0].rstrip("."))


def half_silent(question: Question[Any]) -> dict[str, Any] | Failure:
    """Support the first statement; leave the second one open for three of four books, with a probability or without."""
    if isinstance(question, Statements):
        return {"statements": [{"text": text, "sentence": at} for at, text in enumerate(question.sentences)]}
    if not isinstance(question, Support):
        return {"noncommittal": False}
    number = number_in(question.statement)
    if "sold" not in question.statement:
        return {"label": "supported", "evidence": [0]}
    if number % 4:
        return Failure(FailureKind.NOT_JUDGED, "too short", 0.3 if number % 2 else None)
    return {"label": "not_stated", "evidence": []}


def human(task: dict[str, Any]) -> str:
    """Annotators find the second statement supported for every second book."""
    number = number_in(task["statement"])
    return "no" if "sold" in task["statement"] and number % 2 else "yes"


def evaluated(out: Path, end: str = "well", blank: int = 0) -> Run:
    return merilo.evaluate(
        rows(end, blank), metrics=[METRIC], judge=ScriptedJudge.by(half_silent), out=out, storage={"cache": False}
    )


def test_a_sample_with_an_open_statement_is_drawn_with_all_its_statements(tmp_path: Path) -> None:
    """Every sample with statements can be drawn; a blank response has nothing to label."""
    run = evaluated(tmp_path / "run")
    assert (run.metrics[METRIC].scored, run.metrics[METRIC].undefined) == (SAMPLES // 4, SAMPLES * 3 // 4 + 1)
    found = label_run(run, tmp_path / "t.jsonl", metric=METRIC)
    assert (found.population, found.samples) == (SAMPLES, SAMPLES)
    asked = {(line.ticket.sample, dict(line.texts)["statement"]) for line in found.lines}
    assert {("s1", "Ann wrote book 1."), ("s1", "Book 1 sold well.")} <= asked
    assert len(asked) == 2 * SAMPLES


def test_the_value_of_an_open_statement_is_its_probability(tmp_path: Path) -> None:
    """Or 0.5 without one; scores stay as they are, and what nobody can label stays undefined."""
    scores = read_scores(evaluated(tmp_path / "run"))
    column = with_not_judged(scores).columns[METRIC]
    found = dict(zip(scores.ids, zip(column.values.tolist(), column.scored.tolist(), strict=True), strict=True))
    assert found["s0"] == (0.0, False)
    assert found["s1"] == (pytest.approx((1 + 0.3) / 2), True)
    assert found["s2"] == (pytest.approx((1 + 0.5) / 2), True)
    assert found["s4"] == (0.5, True)


def test_labels_of_a_pair_correct_the_pair_and_both_runs_over_all_samples(tmp_path: Path) -> None:
    """With every sample labelled, means and difference are those of the annotators."""
    first, second = evaluated(tmp_path / "a"), evaluated(tmp_path / "b", "badly")
    label_run(first, path := tmp_path / "t.jsonl", metric=METRIC, samples=SAMPLES, other=second)
    assert len(read_tasks(path)) == 3 * SAMPLES  # the first statement is the same in both runs
    fill_in(path, human, annotator="ann")
    found = label_agreement(first, path, attach=True, other=second)
    assert [each.items for each in found.metrics[METRIC].agreement] == [SAMPLES + SAMPLES // 4]  # those judged
    for run in (Run.open(first.path), Run.open(second.path)):
        mean = corrected_metrics(run)[METRIC]
        assert (mean.mean, mean.scored, mean.undefined) == (pytest.approx(0.75), SAMPLES, 1)
        assert corrected_of(run)[METRIC].labelled == SAMPLES
        assert gate_run(run, Suite({METRIC: 0.6})).passed
    (row,) = compare_runs([first.path, second.path]).rows
    assert (row.verdict, row.comparison.counts.pairs, row.comparison.labelled) == (Verdict.NOT_SHOWN, SAMPLES, SAMPLES)
    assert (row.base_mean, row.difference) == (pytest.approx(0.75), pytest.approx(0.0))
    assert row.estimate.caveat("judge-errors") is None
    assert gate_run(second.path, Suite(max_drop=0.2), baseline=first.path).passed


def test_labels_of_a_pair_correct_a_run_that_has_more_samples_to_label_than_both(tmp_path: Path) -> None:
    """Each run has a blank response to another question. The pair has the questions with two responses."""
    first, second = evaluated(tmp_path / "a"), evaluated(tmp_path / "b", "badly", blank=1)
    drawn = label_run(first, path := tmp_path / "t.jsonl", metric=METRIC, samples=SAMPLES + 1, other=second)
    assert (drawn.samples, drawn.population) == (SAMPLES + 1, SAMPLES + 1)
    fill_in(path, human, annotator="ann")
    label_agreement(first, path, attach=True, other=second)
    for run, mean in ((Run.open(first.path), 0.75), (Run.open(second.path), 0.75 + 0.5 / SAMPLES)):
        assert corrected_metrics(run)[METRIC].mean == pytest.approx(mean)
    (row,) = compare_runs([first.path, second.path]).rows
    assert (row.comparison.counts.pairs, row.comparison.labelled) == (SAMPLES - 1, SAMPLES - 1)


def test_a_gate_says_that_few_samples_have_a_score(tmp_path: Path) -> None:
    """One sentence; the metric cannot tell, as those without a score could change it."""
    found = gate_run(evaluated(tmp_path / "run"), Suite({METRIC: 0.4}))
    assert found.verdict == "cannot tell"
    assert f"{METRIC} has a score on 10 of 41 questions only: merilo show lists the reasons." in found.notes
