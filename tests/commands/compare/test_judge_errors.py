"""A judge that is kinder to one of two runs is named, in every output of a comparison."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from labelled_run import Row, by_grade, fill_in, grade_of, judged_run

import merilo
from merilo.commands.calibrate.human_labels import attach_files
from merilo.commands.compare.caveats import judge_errors
from merilo.commands.compare.record import comparison_record
from merilo.commands.compare.text import comparison_markdown, leads
from merilo.commands.label.run import label_run
from merilo.commands.report.run_page import comparison_page
from merilo.judging.kinds.contexts import Relevance
from merilo.judging.questions import Question
from merilo.stats.corrected_pairs import ErrorDifference
from merilo.stats.intervals import Interval

METRIC = "context_relevance"
SENTENCE = "The judge is kinder to a by 0."


def rows(system: str) -> list[Row]:
    """Sixty samples of one system, each with one context that does not help, in documents of three."""
    return [
        {
            "id": f"s{n}",
            "user_input": f"What is {n}?",
            "retrieved_contexts": [f"System {system}, text {n}, is truly 0."],
            "metadata": {"doc": n // 3, "half": n % 2},
        }
        for n in range(60)
    ]


def kind_to_a(question: Question[Any]) -> Row:
    """One grade more for half of the contexts of A."""
    assert isinstance(question, Relevance)
    text = " ".join(question.sentences)
    extra = int("System A" in text and int(text.split("text ")[1].split(",")[0]) % 2)
    grade = grade_of(text) + extra
    return {"grade": grade, "evidence": [0] if grade else []}


def kind_to_all(question: Question[Any]) -> Row:
    """One grade more for every context."""
    del question
    return {"grade": 1, "evidence": [0]}


def pair(folder: Path, judge: Callable[[Question[Any]], Row], labelled: int) -> tuple[merilo.Run, merilo.Run]:
    """Both runs with labels attached."""
    runs = [judged_run(folder / name, rows(name.upper()), [METRIC], judge) for name in ("a", "b")]
    label_run(runs[0], folder / "t.jsonl", samples=labelled, other=runs[1])
    fill_in(folder / "t.jsonl", by_grade)
    attach_files([str(each.path) for each in runs], [str(folder / "t.jsonl")])
    first, second = (merilo.Run.open(each.path) for each in runs)
    return first, second


def test_every_output_names_the_run_that_the_judge_favours(tmp_path: Path) -> None:
    """Half a grade on half of the samples is 0.25; all 60 pairs are labelled, so the error is known."""
    first, second = pair(tmp_path, kind_to_a, 60)
    found = merilo.compare(first, second)
    note = leads(found)[0]
    assert note.startswith(f"{SENTENCE}25 in context_relevance (0.")
    assert note.endswith("; 60 labelled pairs).")
    assert note in " ".join(str(found).split())
    assert SENTENCE in comparison_page(found)
    assert SENTENCE in comparison_markdown(found)
    record = json.loads(json.dumps(comparison_record(found)))
    (errors,) = [each["facts"] for each in record["comparisons"][0]["caveats"] if each["code"] == "judge-errors"]
    assert (errors["first"], errors["second"], errors["difference"]) == pytest.approx((0.25, 0.0, -0.25))
    assert (errors["labelled"], errors["kinder_to"]) == (60, "a")
    assert errors["interval"][1] < 0


def test_without_labels_there_are_no_errors(tmp_path: Path) -> None:
    """The judge alone cannot tell its own error."""
    first, second = pair(tmp_path, kind_to_a, 40)
    found = merilo.compare(first, second, judge_only=True)
    assert found.rows[0].estimate.caveat("judge-errors") is None
    assert not any("kinder" in each for each in leads(found))


@pytest.mark.parametrize(
    ("ends", "higher", "favoured"),
    [((0.02, 0.14), True, 1), ((-0.14, -0.02), True, 0), ((0.02, 0.14), False, 0), ((-0.01, 0.14), True, None)],
)
def test_kindness_follows_the_direction_of_the_metric(
    ends: tuple[float, float], favoured: int | None, *, higher: bool
) -> None:
    """The error on the run minus that on the base: if lower is better, a lower score is a favour."""
    errors = ErrorDifference(0.1, 0.02, 0.08 if ends[1] > 0 else -0.08, Interval(ends), 40)
    found = judge_errors(errors, "m", ("a", "b"), higher_is_better=higher)
    assert found.facts["kinder_to"] == (None if favoured is None else "ab"[favoured])
