"""Runs with different numbers of contexts, compared over the same number."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compared import compare_runs
from graded_runs import graded, judge, many
from labelled_run import by_grade, fill_in, judged_run, strict

import merilo
from merilo.commands.calibrate.human_labels import attach_files
from merilo.commands.compare.record import comparison_record, flat_row
from merilo.commands.compare.result import Row, RunComparison
from merilo.commands.compare.run import ComparisonRequest
from merilo.commands.compare.text import comparison_markdown
from merilo.commands.compare.text import comparison_page as full_page
from merilo.commands.label.run import label_run
from merilo.commands.report.run_page import comparison_page
from merilo.judging.kinds.contexts import Sufficiency
from merilo.judging.questions import Question
from merilo.judging.verdicts import Failure
from merilo.results.estimate import Verdict
from merilo.stats.means import paired_of

METRIC = "context_relevance"


def grades(count: int, *own: int) -> dict[str, list[int]]:
    """So many samples with contexts of these grades."""
    return {f"s{number}": list(own) for number in range(count)}


def cut(row: Row) -> dict[str, Any]:
    """The comparison over the same number of contexts; empty if there is none."""
    found = row.estimate.caveat("same-contexts")
    return {} if found is None else dict(found.facts)


def numbers_of(found: RunComparison) -> list[dict[str, Any]]:
    """The mean numbers of contexts of the runs."""
    return [dict(each.facts) for each in found.caveats if each.code == "context-numbers"]


def only(found: RunComparison) -> Row:
    """Its one row."""
    (row,) = found.rows
    return row


def text(found: RunComparison) -> str:
    """Its full page in one line."""
    return " ".join(str(full_page(found, 100, full=True)).split())


def judged(out: Path, contexts: Sequence[str], metrics: Sequence[str]) -> merilo.Run:
    """A run of 30 samples with these contexts, whose sufficiency is that of the best context."""

    def answer(question: Question[Any]) -> dict[str, Any] | Failure:
        if isinstance(question, Sufficiency):
            return {"label": "sufficient" if "Grade 2" in " ".join(question.contexts) else "insufficient"}
        return judge(question)

    rows = [
        {"id": f"s{number}", "user_input": f"What is {number}?", "retrieved_contexts": list(contexts)}
        for number in range(30)
    ]
    return merilo.evaluate(
        rows, metrics=metrics, judge=merilo.ScriptedJudge.by(answer), out=out, storage={"cache": False}
    )


def test_a_run_cut_to_its_first_context_differs_in_the_number_only(tmp_path: Path) -> None:
    """The shorter run scores 0.75 higher, and with the same number of contexts every pair is equal, on all pages."""
    short, long = graded(tmp_path / "short", grades(30, 2)), graded(tmp_path / "long", grades(30, 2, 0, 0, 0))
    found = compare_runs([short, long])
    row = only(found)
    assert row.difference == -0.75
    assert (cut(row)["first_mean"], cut(row)["second_mean"], cut(row)["difference"]) == (1.0, 1.0, 0.0)
    shown = (
        "1.000 and 1.000, difference +0.000, all pairs equal, with the same number of contexts per sample (30 pairs)"
    )
    refuted = "not shown with the same number of contexts per sample, where the difference is +0.000, all pairs equal"
    for page in (text(found), comparison_page(found), comparison_markdown(found)):
        assert "Different numbers of contexts" in page
        assert "1.00 in short, 4.00 in long" in page
        assert shown in page
        assert refuted in page.replace("Not shown", "not shown")


def test_a_corrected_conclusion_is_not_qualified_by_the_judge_alone(tmp_path: Path) -> None:
    """Over the same number of contexts there is only the judge's own number, which labels do not correct."""
    own = [[f"Text {n}, truly {grade}." for grade in (2, 0, 0, 0)] for n in range(30)]
    rows = [{"id": f"s{n}", "user_input": f"What is {n}?", "retrieved_contexts": own[n]} for n in range(30)]
    short = [{**row, "retrieved_contexts": own[n][:1]} for n, row in enumerate(rows)]
    runs = [judged_run(tmp_path / name, each, [METRIC], strict) for name, each in (("short", short), ("long", rows))]
    label_run(runs[0], tmp_path / "tasks.jsonl", other=runs[1])
    fill_in(tmp_path / "tasks.jsonl", by_grade)
    attach_files([str(run.path) for run in runs], [str(tmp_path / "tasks.jsonl")])
    refuted = " shown with the same number of contexts"
    for judge_only in (False, True):
        found = merilo.compare(*(run.path for run in runs), judge_only=judge_only)
        assert found.verdict is Verdict.WORSE
        for page in (text(found), comparison_page(found), comparison_markdown(found)):
            assert (refuted in page) is judge_only


def test_the_difference_over_the_same_number_has_known_values(tmp_path: Path) -> None:
    """The longer run has the better first context in 12 of 30 samples; the interval is that of the paired test."""
    long = graded(tmp_path / "long", grades(30, 2, 0))
    short = graded(tmp_path / "short", {**grades(30, 2), **grades(12, 1)})
    row = only(compare_runs([long, short]))
    assert row.difference == pytest.approx(0.8 - 0.5)
    assert cut(row)["difference"] == pytest.approx(-0.2)
    expected = paired_of(np.array([-0.5] * 12 + [0.0] * 18), None, (-1.0, 1.0), 0.95, (-1.0, 0.9))
    assert cut(row)["interval"] == pytest.approx(list(expected.interval.ends or ()))
    assert cut(row)["p"] == pytest.approx(expected.p)


def test_a_supported_conclusion_has_no_remark(tmp_path: Path) -> None:
    """If the same number of contexts gives the same conclusion, the conclusion is not qualified."""
    long, short = graded(tmp_path / "long", grades(30, 2, 1)), graded(tmp_path / "short", grades(30, 0))
    found = compare_runs([long, short])
    assert cut(only(found))
    assert "not shown with the same number" not in text(found)


def test_each_sample_is_cut_to_its_own_smaller_number(tmp_path: Path) -> None:
    """Either run may be the longer one, and pairs without a score in both are not counted."""
    first = graded(tmp_path / "a", {"s0": [2, 0], "s1": [1], "s2": [2, 2], "s3": [], "s4": [2, 2]})
    second = graded(tmp_path / "b", {"s0": [0], "s1": [0, 2, 2], "s2": [1, 1], "s3": [2], "s4": [-1]})
    found = compare_runs([first, second])
    row = only(found)
    assert cut(row)["pairs"] == 3
    assert (cut(row)["second_mean"], cut(row)["first_mean"]) == pytest.approx(((0 + 0 + 0.5) / 3, (1 + 0.5 + 1) / 3))
    (numbers,) = numbers_of(found)
    assert (numbers["first_mean"], numbers["second_mean"], numbers["samples"]) == pytest.approx((7 / 5, 8 / 5, 5))


def test_of_many_pairs_a_random_sample_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 30 pairs at a maximum of 20, 20 are compared, always the same, and the page says so."""
    for module in ("matching", "caveats"):
        monkeypatch.setattr(f"merilo.commands.compare.{module}.MAX_CUT_PAIRS", 20)
    mixed = {f"s{number}": [number % 3, 0] for number in range(30)}
    runs = [graded(tmp_path / "long", mixed), graded(tmp_path / "short", grades(30, 1))]
    found = compare_runs(runs)
    row = only(found)
    assert row.comparison.counts.pairs == 30
    assert cut(row)["pairs"] == 20
    assert "(a random sample of 20 pairs)" in text(found)
    assert text(compare_runs(runs)) == text(found)


def test_recall_and_sufficiency_have_no_such_comparison(tmp_path: Path) -> None:
    """A verdict on all contexts together says nothing about some of them."""
    metrics = (METRIC, "context_sufficiency")
    long = judged(tmp_path / "long", ["Grade 1. One.", "Grade 2. Two."], metrics)
    short = judged(tmp_path / "short", ["Grade 1. One."], metrics)
    found = {row.metric: row for row in compare_runs([long, short]).rows}
    assert cut(found[METRIC])
    assert found["context_sufficiency"].difference == -1.0
    assert not cut(found["context_sufficiency"])


def test_equal_numbers_are_not_mentioned(tmp_path: Path) -> None:
    """Runs with as many contexts for every sample have nothing to add."""
    found = compare_runs([graded(tmp_path / "a", grades(30, 2, 0)), graded(tmp_path / "b", grades(30, 1, 1))])
    assert numbers_of(found) == []
    assert not cut(only(found))
    assert "Different numbers of contexts" not in text(found)


@pytest.mark.parametrize("undefined", ["drop", "worst"])
def test_samples_without_contexts_are_not_cut(undefined: str, tmp_path: Path) -> None:
    """If the numbers differ only where nothing was retrieved, they are reported, and no comparison is made."""
    full, silent = graded(tmp_path / "a", many(30, 1)), graded(tmp_path / "b", {**many(30, 1), "s0": []})
    found = compare_runs([full, silent], ComparisonRequest(undefined=undefined))
    assert [(each["first_mean"], each["second_mean"]) for each in numbers_of(found)] == [(1.0, pytest.approx(29 / 30))]
    assert not cut(only(found))


def test_json_has_the_numbers(tmp_path: Path) -> None:
    """The record has the mean numbers and, in each row, the comparison; a flat row has no nested values."""
    found = compare_runs([graded(tmp_path / "a", grades(30, 2)), graded(tmp_path / "b", grades(30, 2, 0))])
    record = comparison_record(found)
    assert [each["facts"] for each in record["caveats"]][:1] == [
        {"first": "a", "second": "b", "first_mean": 1.0, "second_mean": 2.0, "samples": 30}
    ]
    (own,) = [each["facts"] for each in record["comparisons"][0]["caveats"] if each["code"] == "same-contexts"]
    assert own == {
        "first_mean": 1.0,
        "second_mean": 1.0,
        "difference": 0.0,
        "interval": pytest.approx([-0.1157, 0.1157], abs=1e-4),
        "p": None,
        "pairs": 30,
    }
    assert not any(isinstance(each, list | dict) for each in flat_row(found, only(found)).values())
