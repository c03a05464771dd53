"""A run beside labels of people: what is corrected, what is not, and what is said of it."""

import json
from pathlib import Path
from typing import Any

import pytest
from labelled_run import (
    STATEMENT_ROWS,
    Row,
    by_grade,
    contexts_rows,
    fill_in,
    grade_of,
    judged_run,
    lenient,
    read_tasks,
    says_statements,
    strict,
    true_mean,
)
from seals import seal_again

import merilo
from merilo.commands.calibrate.correction import corrected_of
from merilo.commands.calibrate.run import label_agreement
from merilo.commands.calibrate.text import people_page, people_record
from merilo.commands.label.run import label_run
from merilo.commands.label.tasks import Unit
from merilo.commands.report.run import report_run
from merilo.commands.report.run_page import run_page as report_page
from merilo.commands.show.summary import record_of, run_page
from merilo.errors import DataError, UsageError
from merilo.judges.scripted import ScriptedJudge
from merilo.judging.kinds.contexts import Relevance
from merilo.judging.questions import Question
from merilo.judging.verdicts import FailureKind
from merilo.metrics.formulas import average_precision
from merilo.results.means import corrected_aggregates
from merilo.runs.files import LABELS
from merilo.stats.correction import Reported

PRECISION = "context_precision"
METRICS = (
    "context_relevance",
    "context_relevance(unit=context)",
    "context_relevance(unit=sentence)",
    PRECISION,
)
ROWS = contexts_rows(120)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> merilo.Run:
    return judged_run(tmp_path_factory.mktemp("run"), ROWS, METRICS)


@pytest.fixture(scope="module")
def labels(run: merilo.Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty samples, three contexts each, labelled by people."""
    path = tmp_path_factory.mktemp("labels") / "tasks.jsonl"
    label_run(run, path, metric="context_relevance", samples=40)
    return fill_in(path, by_grade)


def test_every_label_of_every_sample_gives_the_mean_of_people(run: merilo.Run, tmp_path: Path) -> None:
    """With all contexts of all samples labelled the estimate of people is their own mean, the corrected one nearly."""
    label_run(run, tmp_path / "t.jsonl", metric="context_relevance", samples=120, items=9)
    found = label_agreement(run, fill_in(tmp_path / "t.jsonl", by_grade), metrics=["context_relevance"])
    correction = found.metrics["context_relevance"].correction
    assert correction.human.value == pytest.approx(true_mean(ROWS), abs=1e-12)
    assert correction.corrected.value == pytest.approx(true_mean(ROWS), abs=1e-3)  # trust differs a little by fold
    assert correction.raw.value == pytest.approx(run.metrics["context_relevance"].mean)


def test_the_corrected_estimate_is_reported_among_three(run: merilo.Run, labels: Path) -> None:
    """The mean by the judge, by the labels alone, and the corrected one, which is reported, with the reason."""
    found = label_agreement(run, labels).metrics["context_relevance"]
    assert found.correction.reported is Reported.CORRECTED
    assert found.correction.reason.startswith("The corrected estimate is reported whenever it has an interval")
    low, high = found.correction.corrected.interval.ends or (0.0, 0.0)
    assert low < true_mean(ROWS) < high
    assert (found.labels, found.correction.labelled, found.scored) == (120, 40, 120)


@pytest.mark.parametrize(
    ("metric", "says"),
    [
        (PRECISION, "needs labels of whole samples"),
        ("context_relevance(unit=sentence)", "Such labels alone do not determine its value"),
    ],
)
def test_a_metric_that_the_labels_do_not_decide_is_refused_by_name(
    run: merilo.Run, labels: Path, metric: str, says: str
) -> None:
    """The sentence says why, and how to draw tasks for it."""
    with pytest.raises(UsageError, match=says):
        label_agreement(run, labels, metrics=[metric])


def test_rank_metrics_are_computed_anew_from_whole_samples(run: merilo.Run, tmp_path: Path) -> None:
    """People's value of a sample is the metric's own formula over people's grades."""
    label_run(run, tmp_path / "t.jsonl", metric=PRECISION, samples=120)
    found = label_agreement(run, fill_in(tmp_path / "t.jsonl", by_grade), metrics=[PRECISION])
    values = [average_precision([grade_of(text) > 0 for text in row["retrieved_contexts"]]) for row in ROWS]
    assert found.metrics[PRECISION].correction.human.value == pytest.approx(sum(values) / len(values), abs=1e-12)


def test_a_whole_sample_with_a_gap_is_left_out_and_told(run: merilo.Run, tmp_path: Path) -> None:
    """One missing grade leaves a rank metric without a value of that sample."""
    label_run(run, tmp_path / "t.jsonl", metric=PRECISION, samples=30)
    first = read_tasks(tmp_path / "t.jsonl")[0]["task"]
    fill_in(tmp_path / "t.jsonl", lambda task: None if task["task"] == first else by_grade(task))
    found = label_agreement(run, tmp_path / "t.jsonl", metrics=[PRECISION])
    assert found.metrics[PRECISION].correction.labelled == 29
    assert "1 labelled sample left out: this metric needs a label of every item" in found.metrics[PRECISION].remarks[0]
    assert found.remarks == ("1 of 150 tasks has no label; merilo treats the others as representative.",)


def test_a_value_that_people_give_is_taken_as_it_is(run: merilo.Run, tmp_path: Path) -> None:
    """Numbers in the metric's range count, with a decimal comma too; others are told with their place."""
    metric = "context_relevance(unit=sentence)"
    label_run(run, tmp_path / "t.jsonl", metric=metric, samples=30)
    given = iter(["0,5", "2", "much", *["0.25"] * 27])
    found = label_agreement(run, fill_in(tmp_path / "t.jsonl", lambda _: next(given)), metrics=[metric]).metrics[metric]
    assert found.unit is Unit.VALUE
    assert found.correction.labelled == 28
    assert found.correction.human.value == pytest.approx((0.5 + 27 * 0.25) / 28)
    assert (
        "2 labels left out, not a possible answer: t.jsonl, line 2: expected a number from 0 to 1" in found.remarks[0]
    )


def test_samples_without_a_question_count_as_the_rule_says(tmp_path: Path) -> None:
    """A quarter of the samples retrieved nothing: faithfulness is 0 there for judge and people alike."""
    run = judged_run(tmp_path / "run", STATEMENT_ROWS, ["faithfulness"], says_statements)
    label_run(run, tmp_path / "t.jsonl", samples=24)
    found = label_agreement(run, fill_in(tmp_path / "t.jsonl", lambda _: "yes"))
    correction = found.metrics["faithfulness"].correction
    assert correction.labelled == 24
    assert correction.human.value == pytest.approx(0.75)


def test_labels_of_one_judge_calibrate_another_over_the_same_samples(labels: Path, tmp_path: Path) -> None:
    """Tasks of a uniform draw are valid for a second judge, who agrees with the annotators fully."""
    other = judged_run(tmp_path / "run", ROWS, ["context_relevance"], strict)
    found = label_agreement(other, labels).metrics["context_relevance"]
    assert found.correction.reported is Reported.CORRECTED
    assert found.correction.corrected.value == pytest.approx(true_mean(ROWS), abs=0.01)
    (agreement,) = found.agreement
    assert agreement.several is not None
    assert agreement.several.kappa.value == 1.0


def test_statements_of_another_judge_match_nothing_and_that_is_said(tmp_path: Path) -> None:
    """A judge that cuts answers otherwise was asked other questions; what remains is too little to report."""
    first = judged_run(tmp_path / "a", STATEMENT_ROWS, ["faithfulness"], says_statements)
    label_run(first, tmp_path / "t.jsonl", samples=24)

    def cuts(question: Question[Any]) -> Row:
        said = says_statements(question)
        if "statements" in said:
            return {"statements": [{"text": "In short: " + each["text"], "sentence": 0} for each in said["statements"]]}
        return said

    other = judged_run(tmp_path / "b", STATEMENT_ROWS, ["faithfulness"], cuts)
    found = label_agreement(other, fill_in(tmp_path / "t.jsonl", lambda _: "yes")).metrics["faithfulness"]
    assert found.correction.reported is Reported.NOTHING
    assert "36 labels left out: this run's judge was not asked these questions" in found.remarks[0]


def test_labels_that_were_not_asked_for_are_told(run: merilo.Run, tmp_path: Path) -> None:
    """`maybe` is no grade: it is left out with its line, and the others count."""
    label_run(run, tmp_path / "t.jsonl", metric="context_relevance", samples=20)
    given = iter(["maybe", " 2.0 ", *["1"] * 58])
    found = label_agreement(run, fill_in(tmp_path / "t.jsonl", lambda _: next(given))).metrics["context_relevance"]
    assert found.labels == 59
    assert "t.jsonl, line 1: expected 0 or 1 or 2, got 'maybe'." in found.remarks[0]


def test_two_uniform_draws_are_one(run: merilo.Run, tmp_path: Path) -> None:
    """The labels of a draw and of a larger one count together, each task once."""
    for name, samples in (("a", 12), ("b", 20)):
        path = tmp_path / f"{name}.jsonl"
        label_run(run, path, metric="context_relevance", samples=samples)
        fill_in(path, by_grade, annotator="ann")
    files = [tmp_path / f"{name}.jsonl" for name in "ab"]
    drawn = {task["user_input"] for path in files for task in read_tasks(path)}
    found = label_agreement(run, files, metrics=["context_relevance"]).metrics["context_relevance"]
    assert found.correction.labelled == len(drawn) == 20


def test_the_agreement_of_judge_and_people_comes_with_intervals(run: merilo.Run, labels: Path) -> None:
    """Grades have a weighted kappa; the cut at 1 has rates, kappa and, with probabilities, AUROC."""
    (found,) = label_agreement(run, labels).metrics["context_relevance"].agreement
    assert found.several is not None
    assert found.yes_or_no is not None
    assert found.items == 120
    for each in (found.several.kappa, found.yes_or_no.kappa, found.yes_or_no.auroc):
        assert each.value is not None
        assert each.interval.ends is not None
    assert found.yes_or_no.sensitivity.value == 1.0


def test_annotators_may_disagree(run: merilo.Run, labels: Path, tmp_path: Path) -> None:
    """A sum takes their mean label, agreement their majority; the items on which they disagree are counted."""
    other = fill_in(
        labels, lambda task: min(2, by_grade(task) + ("luck 3" in task["context"])), out=tmp_path / "o.jsonl"
    )
    found = label_agreement(run, [labels, other]).metrics["context_relevance"]
    (agreement,) = found.agreement
    assert agreement.disputed > 0
    alone = label_agreement(run, labels).metrics["context_relevance"].correction.human.value
    added = label_agreement(run, other).metrics["context_relevance"].correction.human.value
    assert alone is not None
    assert added is not None
    assert found.correction.human.value == pytest.approx((alone + added) / 2)


def test_clusters_are_the_units_where_samples_belong_together(tmp_path: Path) -> None:
    """With a document for every four samples, units are documents, in the estimates and in the agreement."""
    rows = [dict(row, metadata={"document": f"d{at // 4}"}) for at, row in enumerate(ROWS)]
    kappas = []
    for cluster in (None, "document"):
        judge, out = ScriptedJudge.by(lenient), tmp_path / f"run{cluster}"
        run = merilo.evaluate(rows, ["context_relevance"], judge=judge, out=out, cluster=cluster)
        label_run(run, tasks := tmp_path / f"{cluster}.jsonl", samples=60)
        found = label_agreement(run, fill_in(tasks, by_grade)).metrics["context_relevance"]
        assert found.correction.raw.clusters == (None if cluster is None else 30)
        assert found.agreement[0].yes_or_no is not None
        kappas.append(found.agreement[0].yes_or_no.kappa)
    assert kappas[0].value == kappas[1].value
    assert kappas[0].interval != kappas[1].interval


def test_attached_labels_are_kept_with_the_run(labels: Path, tmp_path: Path) -> None:
    """They come back without the file, give the same corrections, and stay when others are added later."""
    run = judged_run(tmp_path / "run", ROWS, ["context_relevance"])
    assert corrected_of(run) == {}
    found = label_agreement(run, labels, attach=True)
    assert corrected_of(run) == {"context_relevance": found.metrics["context_relevance"].correction}
    assert set(json.loads((run.path / LABELS).read_text(encoding="utf-8").splitlines()[0])) == {
        "task",
        "label",
        "annotator",
        "ticket",
    }
    before = corrected_of(run)["context_relevance"]
    label_run(run, tmp_path / "few.jsonl", samples=5)
    again = label_agreement(run, fill_in(tmp_path / "few.jsonl", by_grade), attach=True)
    assert corrected_of(run)["context_relevance"] == again.metrics["context_relevance"].correction == before
    label_run(run, tmp_path / "more.jsonl", samples=50)
    more = label_agreement(run, fill_in(tmp_path / "more.jsonl", by_grade, annotator="ben"), attach=True)
    assert any("attached before also count" in remark for remark in more.remarks)
    assert corrected_of(run)["context_relevance"].labelled == more.metrics["context_relevance"].correction.labelled
    assert corrected_of(run)["context_relevance"].labelled > before.labelled


def test_a_file_with_an_invalid_label_attaches_nothing(labels: Path, tmp_path: Path) -> None:
    """The first invalid labels are named, and the labels attached before stay as they were."""
    run = judged_run(tmp_path / "run", ROWS, ["context_relevance"])
    label_agreement(run, labels, attach=True)
    before = (run.path / LABELS).read_bytes()
    label_run(run, tmp_path / "odd.jsonl", samples=5)
    answers = iter(["maybe", "7"])
    fill_in(tmp_path / "odd.jsonl", lambda task: next(answers, by_grade(task)))
    with pytest.raises(DataError, match=r"No label was attached, because 2 lines cannot be used: odd\.jsonl, line"):
        label_agreement(run, tmp_path / "odd.jsonl", attach=True)
    fill_in(tmp_path / "odd.jsonl", by_grade)
    with (tmp_path / "odd.jsonl").open("a", encoding="utf-8") as file:
        file.write("not JSON\n")
    with pytest.raises(DataError, match="1 line cannot be used"):
        label_agreement(run, tmp_path / "odd.jsonl", attach=True)
    assert (run.path / LABELS).read_bytes() == before


def test_labels_of_another_metric_stay_attached(tmp_path: Path) -> None:
    """Labels attached later leave those for other metrics."""
    run = judged_run(tmp_path / "run", ROWS, ["context_relevance", "context_relevance(unit=context)"])
    texts = list(run.manifest.metrics)
    for at, text in enumerate(texts):
        label_run(run, tmp_path / f"{at}.jsonl", metric=text, samples=20 + at)
        found = label_agreement(run, fill_in(tmp_path / f"{at}.jsonl", by_grade), metrics=[text], attach=True)
    assert any(remark.startswith("Earlier labels remain: ") for remark in found.remarks)
    assert [corrected_of(run)[text].labelled for text in texts] == [20, 21]


def test_corrected_means_lie_within_their_bounds(labels: Path, tmp_path: Path) -> None:
    """The bounds with what is not scored move with the corrected mean."""
    rows = [*ROWS[:-2], *({**row, "retrieved_contexts": []} for row in ROWS[-2:])]
    run = judged_run(tmp_path / "run", rows, ["context_relevance"])
    label_run(run, tmp_path / "t.jsonl", samples=40)
    found = label_agreement(run, fill_in(tmp_path / "t.jsonl", by_grade)).metrics["context_relevance"].correction
    own = run.metrics["context_relevance"]
    assert own.undefined == 2
    assert own.mean is not None
    assert found.estimate is not None
    (moved,) = corrected_aggregates([own], {"context_relevance": found})
    assert abs(moved.mean - own.mean) > 0.05
    share = own.scored / (own.scored + own.undefined)
    assert moved.bounds_with_undefined == pytest.approx((moved.mean * share, moved.mean * share + 1 - share))


def test_the_summary_reports_the_corrected_mean_once_labels_are_attached(labels: Path, tmp_path: Path) -> None:
    """Page, JSON and browser page give the corrected mean, the judge's own beside it, and no longer the remark."""
    run = judged_run(tmp_path / "run", ROWS, ["context_relevance"])
    remark = "not judge error"
    assert remark in " ".join(str(run_page(run, 100, full=True)).split())
    label_agreement(run, labels, attach=True)
    corrections = corrected_of(run)
    estimate = corrections["context_relevance"].corrected
    page = " ".join(str(run_page(run, 100, full=True)).split())
    assert remark not in page
    assert f"context_relevance {estimate.value:.3f}" in page
    assert "corrected by 40 labelled samples" in page
    assert f"judge alone: {run.metrics['context_relevance'].mean:.3f}" in page
    record = record_of(run)["metrics"]["context_relevance"]
    assert record["mean"] == estimate.value
    assert record["correction"]["judge"]["value"] == pytest.approx(run.metrics["context_relevance"].mean)
    html = report_page(report_run(run))
    assert "Human labels" in html
    assert remark not in html


def test_the_record_is_plain_json_with_stable_names(run: merilo.Run, labels: Path) -> None:
    """Every number of the page is in the JSON, by metric."""
    record = people_record(label_agreement(run, labels))
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    metric = record["metrics"]["context_relevance"]
    assert metric["reported"] == "corrected"
    assert metric["estimate"] == metric["corrected"]
    assert {"judge", "people", "corrected", "reason", "trust", "agreement"} <= set(metric)
    assert {"kappa", "sensitivity", "specificity", "auroc", "by_label"} <= set(metric["agreement"]["relevance"])


def test_labels_drawn_from_another_population_are_a_sentence_and_no_number(labels: Path, tmp_path: Path) -> None:
    """Where the run has scores of samples that could not have been drawn, nothing is reported, and it says why."""

    def silent(question: Question[Any]) -> Row | merilo.Failure:
        said = lenient(question)
        hard = isinstance(question, Relevance) and question.user_input in {"What is 3?", "What is 4?"}
        return merilo.Failure(FailureKind.REFUSED, "It will not.") if hard else said

    other = judged_run(tmp_path / "run", ROWS, ["context_relevance"], silent)  # type: ignore[arg-type]  # or a Failure
    found = label_agreement(other, labels)
    correction = found.metrics["context_relevance"].correction
    assert correction.reported is Reported.NOTHING
    assert correction.estimate is correction.human.value is correction.corrected.value is None
    assert (
        "the tasks were drawn from 120 samples with a score of context_relevance, but this run has 118"
        in correction.reason
    )
    assert found.has_estimate is False
    assert correction.reason.split(";")[0] in " ".join(str(people_page(found, 300)).split())
    assert found.metrics["context_relevance"].agreement[0].items > 100


def test_attached_labels_of_a_population_that_changed_are_told_in_the_summary(tmp_path: Path) -> None:
    """The summary keeps the judge's own mean and says why the labels do not correct it any more."""
    run = judged_run(tmp_path / "run", ROWS, ["context_relevance"])
    label_run(run, tmp_path / "t.jsonl", samples=40)
    label_agreement(run, fill_in(tmp_path / "t.jsonl", by_grade), attach=True)
    lines = run.path / "outcomes.jsonl"
    first, rest = lines.read_text(encoding="utf-8").split("\n", 1)
    record = json.loads(first)
    undefined = {"sample": record["sample"], "metric": record["metric"], "outcome": "undefined", "reason": "gone"}
    lines.write_text(f"{json.dumps(undefined)}\n{rest}", encoding="utf-8")
    (correction,) = corrected_of(merilo.Run.open(seal_again(run.path))).values()
    assert correction.estimate is None
    assert "this run has 119" in correction.reason
