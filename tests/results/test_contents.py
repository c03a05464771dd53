"""Runs over the same questions that were judged against another truth in the metadata."""

import json
from pathlib import Path

import pytest
from compared import compare_runs

import merilo
from merilo.commands.compare.options import ComparisonRequest
from merilo.data.span_labels import load_judged
from merilo.errors import DataError, UsageError

COUNT = 8


def with_nuggets(path: Path, nuggets: object, others: int = COUNT) -> merilo.Run:
    """A run whose first `others` samples have these nuggets."""
    rows = [
        {
            "id": f"q{n}",
            "user_input": f"Who leads team {n}?",
            "response": "Ada leads it.",
            "nuggets": nuggets if n < others else ["Ada leads it."],
        }
        for n in range(COUNT)
    ]
    return merilo.evaluate(rows, metrics=["nugget_recall"], out=path)


def with_labels(folder: Path, name: str, text: str) -> merilo.Run:
    """A run with span labels of this text."""
    documents, labels, data = (folder / f"{each}.jsonl" for each in ("documents", f"labels-{name}", "data"))
    documents.write_text(json.dumps({"id": "d", "text": "Ada leads it. It meets on Monday."}) + "\n")
    labels.write_text("".join(json.dumps({"sample": f"q{n}", "text": text, "grade": 1}) + "\n" for n in range(COUNT)))
    rows = [{"id": f"q{n}", "user_input": "Who?", "retrieved_contexts": ["Ada leads it."]} for n in range(COUNT)]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    judged = load_judged(str(data), str(labels), str(documents))
    return merilo.evaluate(judged, metrics=["span_recall(unjudged=irrelevant)"], out=folder / name)


def test_other_nuggets_are_refused(tmp_path: Path) -> None:
    """Scores by other nuggets are not compared: the message names the nuggets and says what to do."""
    old = with_nuggets(tmp_path / "old", ["Ada leads it."])
    new = with_nuggets(tmp_path / "new", ["Ben leads it."], others=4)
    match = r"4 of 8 samples have other nuggets in new than in old .*'q0'.*same nuggets.*--across-data"
    with pytest.raises(UsageError, match=match):
        compare_runs([old, new])
    assert compare_runs([old, new], ComparisonRequest(across_data=True)).common == 4
    with pytest.raises(DataError, match=r"other nuggets .* Evaluate all runs with the same nuggets"):
        compare_runs([old, with_nuggets(tmp_path / "all", ["Ben leads it."])])


@pytest.mark.parametrize(
    "nuggets",
    [
        [{"text": " Ada leads it.", "vital": True}],
        [{"text": "Ada leads it.", "importance": "vital"}],
        '["Ada leads it."]',
    ],
)
def test_nuggets_are_compared_by_content(tmp_path: Path, nuggets: object) -> None:
    """The same nuggets written in another form are the same nuggets."""
    old, new = with_nuggets(tmp_path / "old", ["Ada leads it."]), with_nuggets(tmp_path / "new", nuggets)
    assert compare_runs([old, new]).common == COUNT


def test_nuggets_matter_only_to_metrics_that_read_them(tmp_path: Path) -> None:
    """Runs with other nuggets are compared by metrics that do not read them."""
    rows = [{"id": f"q{n}", "user_input": "Who?", "response": "Ada leads it."} for n in range(COUNT)]
    runs = [
        merilo.evaluate(
            [{**row, "nuggets": [nugget]} for row in rows], metrics=["answer_relevancy"], out=tmp_path / nugget
        )
        for nugget in ("Ada", "Ben")
    ]
    assert compare_runs(runs).common == COUNT


def test_other_span_labels_are_refused(tmp_path: Path) -> None:
    """Scores by other span labels are not compared: the message names the labels, not the reference contexts."""
    first, second = (
        with_labels(tmp_path, "first", "Ada leads it."),
        with_labels(tmp_path, "second", "It meets on Monday."),
    )
    with pytest.raises(DataError, match=r"8 of 8 samples have other span labels in second .* same file of span labels"):
        compare_runs([first, second])
    assert compare_runs([first, with_labels(tmp_path, "third", "Ada leads it.")]).common == COUNT
