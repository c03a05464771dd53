"""Researchers' studies of judges: files of grades, people, rankings of systems, effective votes and combinations."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Here
from labelled_run import by_grade, contexts_rows, fill_in, judged_run, lenient, strict
from numpy.typing import NDArray
from scipy.stats import kendalltau, spearmanr

from merilo import api
from merilo.commands.check.page import judges_page
from merilo.commands.check.record import judges_record
from merilo.commands.check.study import judges_agreement
from merilo.errors import MeriloError

Grades = NDArray[np.int64]
QUERIES, DOCUMENTS = 25, 20


def qrels(path: Path, grades: Grades) -> Path:
    """A file of grades, one row for each query."""
    rows = [f"q{query} 0 d{place} {grade}" for query, row in enumerate(grades) for place, grade in enumerate(row)]
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


def noisy(truth: Grades, seed: int) -> Grades:
    """The grades of a judge with its own errors."""
    dice = np.random.default_rng(seed)
    return np.clip(np.rint(truth + dice.normal(0.2, 0.9, truth.shape)), 0, 3).astype(np.int64)


@pytest.fixture(scope="module")
def truth() -> Grades:
    """Human grades from 0 to 3."""
    return np.random.default_rng(1).choice(4, size=(QUERIES, DOCUMENTS), p=[0.5, 0.25, 0.15, 0.1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, truth: Grades) -> Path:
    """Human grades, three judges, and six systems."""
    path = tmp_path_factory.mktemp("study")
    qrels(path / "human.txt", truth)
    for seed, name in enumerate("abc"):
        qrels(path / f"{name}.qrels", noisy(truth, seed))
    (path / "systems").mkdir()
    for system in range(6):
        scores = truth * (system / 6) + np.random.default_rng(system).normal(size=truth.shape)
        rows = [f"q{q} Q0 d{d} 1 {scores[q, d]:.6f} s" for q in range(QUERIES) for d in range(DOCUMENTS)]
        (path / "systems" / f"s{system}.run").write_text("\n".join(rows), encoding="utf-8")
    return path


def files(folder: Path, names: str = "abc") -> list[Path]:
    return [folder / f"{name}.qrels" for name in names]


def record_of(*arguments: Any, **more: Any) -> Any:  # Any: arguments of the function, JSON
    """The study as JSON, as the command prints it."""
    return json.loads(json.dumps(judges_record(judges_agreement(*arguments, **more))))


def test_the_published_figure_of_the_llmjudge_challenge(here: Here) -> None:
    """A submission's published alpha is equal to six digits.

    LLMJudge challenge, SIGIR 2024, submission h2oloo-fewself at grade 2: the counts and 0.428016 are printed in
    llm4eval/LLMJudge-benchmark, codes/0-corr-analysis.ipynb (MIT licence).
    """
    counts = {(0, 0): 2719, (0, 1): 519, (1, 0): 483, (1, 1): 702}
    pairs = [pair for pair, times in counts.items() for _ in range(times)]
    for judge, name in enumerate(("human", "fewself")):
        rows = [f"q{place % 25} 0 p{place} {pair[judge]}\n" for place, pair in enumerate(pairs)]
        (here.path / f"{name}.txt").write_text("".join(rows), encoding="utf-8")
    (pair,) = here.json("judge", "check", "human.txt", "fewself.txt")["pairs"]
    found = pair["kinds"]["grade"]
    assert (found["questions"], found["clusters"]) == (4423, 25)
    assert round(found["alpha"]["value"], 6) == 0.428016
    done = here.merilo("judge", "check", "human.txt", "fewself.txt")
    assert "give the same label to 3,421 of 4,423 documents" in " ".join(done.stdout.split())


def test_grades_have_every_measure(folder: Path, truth: Grades) -> None:
    """Kappas are those of scikit-learn, agreement on a grade is 2 n_gg / (n_g. + n_.g), and all have intervals."""
    from sklearn.metrics import cohen_kappa_score  # takes a second

    record = record_of(files(folder, "ab"))
    found, (first, second) = record["pairs"][0]["kinds"]["grade"], (noisy(truth, seed).ravel() for seed in (0, 1))
    for name, weights in (("kappa", None), ("kappa_linear", "linear"), ("kappa_quadratic", "quadratic")):
        assert found[name]["value"] == pytest.approx(cohen_kappa_score(first, second, weights=weights))
    both = ((first == 2) & (second == 2)).sum()
    assert found["by_label"]["2"]["value"] == pytest.approx(2 * both / ((first == 2).sum() + (second == 2).sum()))
    measures = ("kappa", "kappa_linear", "kappa_quadratic", "alpha", "alpha_nominal", "ac1", "accuracy")
    assert all(found[name]["interval"] for name in measures)
    page = str(judges_page(judges_agreement(files(folder, "ab")), 80, full=True))
    assert all(says in page for says in ("linear weights", "alpha, nominal", "Agreement on each grade: 0 "))


def test_systems_are_ranked_under_both_judges(folder: Path, truth: Grades) -> None:
    """Both correlations are those of scipy over the mean nDCG@10 of each system, with linear gain as in trec_eval."""

    def scores(grades: Grades) -> list[float]:
        discount = 1 / np.log2(np.arange(2, 12))
        found = []
        for system in range(6):
            score = truth * (system / 6) + np.random.default_rng(system).normal(size=truth.shape)
            order = np.argsort(-score, axis=1)[:, :10]
            ideal = (-np.sort(-grades, axis=1)[:, :10] * discount).sum(axis=1)
            found.append(float(((np.take_along_axis(grades, order, axis=1) * discount).sum(axis=1) / ideal).mean()))
        return found

    record = record_of(files(folder, "ab"), systems=folder / "systems")
    ranks, means = record["pairs"][0]["systems"], (scores(noisy(truth, 0)), scores(noisy(truth, 1)))
    assert (record["systems"], ranks["queries"], ranks["metric"]) == (6, 25, "nDCG@10")
    assert ranks["kendall_tau_b"]["value"] == pytest.approx(kendalltau(*means).statistic)
    assert ranks["spearman_rho"]["value"] == pytest.approx(spearmanr(*means).statistic)
    assert ranks["kendall_tau_b"]["interval"]


def test_a_study_fits_a_screen_and_its_json_has_everything(folder: Path) -> None:
    """Three judges, people and systems take at most 25 lines; every figure has its number of documents."""
    given = {"labels": [folder / "human.txt"], "systems": folder / "systems"}
    page = str(judges_page(judges_agreement(files(folder), **given), 80))
    assert len(page.splitlines()) <= 25
    assert max(map(len, page.splitlines())) <= 80
    for says in (
        "3 judges and people: 6 pairs",
        "people / a",
        "Rankings of 6 systems",
        "by the correlation of their errors: ",
    ):
        assert says in " ".join(page.split())
    panel = record_of(files(folder), **given)["panel"]["grade"]
    assert panel["questions"] == 500
    assert panel["effective_votes"]["correlation_of"] == "errors"
    assert 1 < panel["effective_votes"]["interval"][0] < panel["effective_votes"]["value"] <= 3
    combined = panel["stacking"]
    assert combined["recommended"]
    assert combined["log_loss"]["difference"]["interval"][1] < 0


def test_votes_without_people_are_by_verdicts(folder: Path) -> None:
    """Without human labels the correlation is that of the grades, the text says so, and nothing is combined."""
    panel = record_of(files(folder))["panel"]["grade"]
    assert panel["effective_votes"]["correlation_of"] == "verdicts"
    assert "stacking" not in panel
    assert "correlation of their labels, also the correct ones: " in " ".join(
        str(judges_page(judges_agreement(files(folder)), 80)).split()
    )


def test_judges_of_runs_are_combined_by_labels_of_people(tmp_path: Path) -> None:
    """Labels that people gave to tasks of a run are matched by question, whichever judge answered it."""
    rows = contexts_rows(60, contexts=2)
    runs = [judged_run(tmp_path / judge.__name__, rows, ["context_relevance"], judge) for judge in (lenient, strict)]
    api.label(runs[0], metric="context_relevance", number=40, out=tmp_path / "tasks.jsonl")
    labels = [fill_in(tmp_path / "tasks.jsonl", by_grade)]
    page = str(judges_page(judges_agreement(runs, labels=labels), 80))
    assert "people / lenient" in page  # the judges' names are equal when they are cut
    record = record_of(runs, labels=labels)
    human, _, both = (pair["kinds"]["relevance"] for pair in record["pairs"])
    assert [pair["first"] for pair in record["pairs"][:2]] == ["people"] * 2
    assert human["questions"] == 80 < both["questions"] == 120
    assert record["pairs"][1]["kinds"]["relevance"]["kappa"]["value"] == 1
    stacked = record["panel"]["relevance"]["stacking"]
    assert (stacked["questions"], stacked["recommended"]) == (80, False)
    assert stacked["best_single"] == record["judges"][1]["name"]


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        ("q1 0 d1 1", "q1 0 d1 1.5", "line 1: expected a whole number as the grade, got '1.5'."),
        ("q1 0 d1 1", "q1 0 d1 1\nq1 0 d1 0", "line 2: expected each document once in a topic"),
        ("q1 0 d1 1", "q2 0 d1 1", "have no answered question in common. Let each judge answer the same questions"),
        ("q1 0 d1 1", "", "expected at least one line, got an empty file."),
        ("q1 0 d1 1", "q1 0 d1 50", "Grades from 1 to 50 are too many to compare. Use at most 21 grades."),
    ],
)
def test_files_that_cannot_be_compared(tmp_path: Path, first: str, second: str, says: str) -> None:
    """One sentence on what is wrong and what to do."""
    for name, text in (("a", first), ("b", second)):
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    with pytest.raises(MeriloError) as refused:
        judges_agreement([tmp_path / "a.txt", tmp_path / "b.txt"])
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("first", "second", "kappa"),
    [
        ("q1 0 d1 1\nq1 0 d2 0", "q1 0 d1 1\nq1 0 d2 1", None),
        ("q1 0 d1 1\nq1 0 d2 1", "q1 0 d1 1\nq1 0 d2 1", None),
        ("q1 0 d1 1\nq1 0 d2 0\nq2 0 d1 1", "q1 0 d1 1\nq1 0 d2 0\nq3 0 d9 1", 1.0),
        ("q1 0 d1 -2\nq1 0 d2 1", "query,document,grade\nq1,d1,0\nq1,d2,1", 1 / 3),
        (
            "q1 0 d1 1\nq1 0 d2 0",
            '{"query": "q1", "document": "d1", "grade": 1}\n{"qid": "q1", "doc": "d2", "rel": 0}',
            1.0,
        ),
    ],
    ids=["one grade", "one grade in both", "unequal queries", "negative and CSV", "JSON Lines"],
)
def test_small_and_odd_files_have_no_interval(tmp_path: Path, first: str, second: str, kappa: float | None) -> None:
    """A measure that the data does not allow is null with its reason, in the text a dash."""
    for name, text in (("a", first), ("b", second)):
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    found = judges_agreement([tmp_path / "a.txt", tmp_path / "b.txt"])
    measured = judges_record(found)["pairs"][0]["kinds"]["grade"]["kappa"]
    assert measured["value"] == (None if kappa is None else pytest.approx(kappa))
    assert (measured["interval"], measured["note"][:11]) == (None, "cannot tell")
    assert "grade  2" in str(judges_page(found, 80))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["a.qrels"], "needs two runs or files of grades, got 1"),
        (["a.qrels", "nowhere"], "No such file: nowhere."),
        (["a.qrels", "a.qrels"], "a.qrels is named twice. Name each run or file once."),
        (["a.qrels", "b.qrels", "--systems", "b.qrels"], "--systems needs a folder with at least two runs"),
        (
            ["a.qrels", "b.qrels", "--labels", "c.qrels", "--labels", "human.txt"],
            "need one file of human grades, got 2",
        ),
        (["embedded", "--systems", "systems"], "--systems needs files of grades. Name two or more of them."),
    ],
)
def test_usage_errors_of_studies(folder: Path, arguments: list[str], says: str) -> None:
    """Exit code 2 and a sentence that says what to do."""
    done = Here(folder).merilo("judge", "check", *arguments)
    assert (done.returncode, says in " ".join(done.stderr.split())) == (2, True), done.stderr
