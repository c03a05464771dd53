"""Judges beside each other: which questions count, what stands for one judge, and how systems are ranked."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from grouping import grouped
from imported import import_scores
from labelled_run import Row, contexts_rows, grade_of, lenient, strict
from seals import seal_again

import merilo
from merilo.commands.check.judges import JudgePair
from merilo.commands.check.page import judges_page
from merilo.commands.check.record import judges_record
from merilo.commands.check.study import JudgesAgreement, judges_agreement
from merilo.errors import DataError, RunError, UsageError
from merilo.judges.scripted import ScriptedJudge
from merilo.judging.kinds.relevance import Relevance
from merilo.judging.kinds.sufficiency import Sufficiency
from merilo.judging.questions import Question

METRICS = ("context_relevance",)


def pair_of(*runs: merilo.Run) -> JudgePair:
    """The agreement of two judges."""
    (pair,) = judges_agreement(runs).pairs
    return pair


ROWS = contexts_rows(60, contexts=3)


def run_of(
    out: Path,
    rows: Sequence[Row],
    answer: Callable[[Question[Any]], Row],
    name: str,
    metrics: Sequence[str] = METRICS,
    **more: Any,  # Any: arguments of evaluate
) -> merilo.Run:
    """A finished run by a judge of this name."""
    judge = ScriptedJudge.by(answer, version=name)
    return merilo.evaluate(
        list(rows), **grouped(metrics=list(metrics), judge=judge, out=out, **{"cache": False, **more})
    )


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[merilo.Run, merilo.Run]:
    """The same samples by a judge that is too lenient and by one that is right."""
    folder = tmp_path_factory.mktemp("two")
    return run_of(folder / "lenient", ROWS, lenient, "lenient"), run_of(folder / "strict", ROWS, strict, "strict")


def test_judges_are_compared_question_by_question(two: tuple[merilo.Run, merilo.Run]) -> None:
    """The table and the weighted kappa are those of both judges' grades of every context."""
    from sklearn.metrics import cohen_kappa_score  # takes a second

    (kind,) = pair_of(*two).kinds
    texts = [(row["user_input"], text) for row in ROWS for text in row["retrieved_contexts"]]
    first = [lenient(Relevance(asked, (text,)))["grade"] for asked, text in texts]
    second = [grade_of(text) for _, text in texts]
    assert (kind.kind, kind.labels, kind.agreement.items) == ("relevance", ("0", "1", "2"), 180)
    assert kind.agreement.kappa_quadratic is not None
    assert kind.agreement.kappa_quadratic.value == pytest.approx(
        cohen_kappa_score(first, second, weights="quadratic"), abs=1e-9
    )
    assert kind.agreement.confusion.counts[1][0] == sum(
        (one, other) == (1, 0) for one, other in zip(first, second, strict=True)
    )
    assert kind.agreement.clusters == 60


def test_the_samples_named_are_those_in_which_they_differ(two: tuple[merilo.Run, merilo.Run]) -> None:
    """Each sample that is named has a context with two grades, and as many questions differ as the table says."""
    (kind,) = pair_of(*two).kinds
    counts = kind.agreement.confusion.counts
    assert kind.differ == kind.agreement.items - sum(counts[place][place] for place in range(3))
    for sample in kind.samples:
        row = next(row for row in ROWS if row["id"] == sample)
        asked = [Relevance(row["user_input"], (text,)) for text in row["retrieved_contexts"]]
        assert any(lenient(each)["grade"] != strict(each)["grade"] for each in asked)


def test_each_kind_of_question_has_its_own_figures(tmp_path: Path) -> None:
    """Relevance and sufficiency are never pooled."""

    def both(question: Question[Any]) -> Row:
        if isinstance(question, Sufficiency):
            return {"label": "sufficient" if sum(map(len, question.contexts)) % 2 else "insufficient"}
        return strict(question)

    metrics = ("context_relevance", "context_sufficiency")
    runs = [run_of(tmp_path / name, ROWS, both, name, metrics) for name in ("a", "b")]
    assert [kind.kind for kind in pair_of(*runs).kinds] == ["relevance", "sufficiency"]


def test_only_questions_that_both_answered_count(tmp_path: Path) -> None:
    """What one judge alone was asked, and what either failed on, is counted beside the figures."""

    def fails(question: Question[Any]) -> Row | merilo.Failure:
        if question.user_input == "What is 0?":  # type: ignore[attr-defined]  # only Relevance is asked here
            return merilo.Failure(merilo.judging.verdicts.FailureKind.REFUSED, "It will not.")
        return strict(question)

    first = run_of(tmp_path / "a", ROWS[:20], strict, "a")
    judge = ScriptedJudge.by(fails, version="b")
    second = merilo.evaluate(
        ROWS[:30], metrics=list(METRICS), judge=judge, out=tmp_path / "b", storage={"cache": False}
    )
    pair = pair_of(first, second)
    assert (pair.common, pair.only_first, pair.only_second, pair.failed) == (57, 0, 30, 3)


def test_one_judge_asked_twice_agrees_with_itself(tmp_path: Path) -> None:
    """Runs of one judge stand for two, the sentence says so, and answers from the cache are told to be copies."""
    store = tmp_path / "cache.sqlite"
    runs = [run_of(tmp_path / name, ROWS, strict, "a", cache=store) for name in ("one", "two")]
    found = judges_agreement(runs)
    assert [*found.judges] == [f"scripted:labelled_run.strict in {run.path}" for run in runs]
    assert "this is its agreement with itself" in found.remarks[0]
    assert "180 answers came from the cache and so agree necessarily" in found.remarks[1]


def test_clusters_are_those_of_a_field(tmp_path: Path) -> None:
    """Samples of one document are resampled together."""
    rows = [{**row, "metadata": {"document": str(place // 6)}} for place, row in enumerate(ROWS)]
    runs = [
        run_of(tmp_path / name, rows, answer, name, cluster="document")
        for name, answer in (("a", strict), ("b", lenient))
    ]
    assert pair_of(*runs).kinds[0].agreement.clusters == 10


def test_runs_without_a_common_question_are_refused(tmp_path: Path) -> None:
    """The sentence says when questions are the same."""
    first = run_of(tmp_path / "a", ROWS[:5], strict, "a")
    second = run_of(tmp_path / "b", ROWS[5:10], strict, "b")
    with pytest.raises(DataError, match="no answered question in common"):
        judges_agreement([first, second])


def test_runs_that_cannot_be_compared_are_refused(two: tuple[merilo.Run, merilo.Run], tmp_path: Path) -> None:
    """A run named twice and scores of another tool are told in a sentence."""
    (tmp_path / "scores.csv").write_text("id,score\na,0.5\n", encoding="utf-8")
    foreign = import_scores(tmp_path / "scores.csv", scores={"score": None}, out=tmp_path / "foreign")
    for runs, says in [
        ([two[0], two[0]], "is named twice"),
        ([two[0], foreign], "has no verdicts to compare: its scores were imported from scores.csv"),
    ]:
        with pytest.raises(UsageError, match=says):
            judges_agreement(runs)


def test_page_and_record_tell_the_same(two: tuple[merilo.Run, merilo.Run]) -> None:
    """The full page names the measures and that neither judge is taken as true; the JSON has them all."""
    found = judges_agreement(two)
    assert isinstance(found, JudgesAgreement)
    page = str(judges_page(found, 80, full=True))
    record = json.loads(json.dumps(judges_record(found)))
    kind = record["pairs"][0]["kinds"]["relevance"]
    assert max(map(len, page.splitlines())) <= 80 or str(two[0].path) in page
    for says in (
        "weighted kappa",
        "alpha",
        "AC1",
        "accuracy",
        "Neither judge is taken as correct",
        "first \\",
    ):
        assert says in page
    assert {"kappa", "kappa_quadratic", "kappa_linear", "alpha", "ac1", "accuracy", "confusion"} <= kind.keys()
    assert kind["kappa"]["interval"][0] < kind["kappa"]["value"] < kind["kappa"]["interval"][1]


@pytest.mark.parametrize("harm", ["cut", "no hex"])
def test_damaged_outcomes_are_told(two: tuple[merilo.Run, merilo.Run], tmp_path: Path, harm: str) -> None:
    """Outcomes cut short, or with a trail that names nothing, are an error and no smaller agreement."""
    copy = tmp_path / "copy"
    shutil.copytree(two[0].path, copy)
    lines = (copy / "outcomes.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    if harm == "cut":
        lines = lines[:20]
    else:
        lines[3] = lines[3].replace('"trail":["', '"trail":["zz')
    (copy / "outcomes.jsonl").write_text("".join(lines), encoding="utf-8")
    seal_again(copy)
    with pytest.raises(RunError, match=r"is damaged: .*(Copy the run again|Copy the whole run again)"):
        judges_agreement([copy, two[1].path])
