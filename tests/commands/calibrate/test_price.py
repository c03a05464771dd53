"""The price of labels: what `merilo label` would ask, and how long it takes."""

from pathlib import Path

import pytest
from labelled_run import by_grade, contexts_rows, fill_in, judged_run

import merilo
from merilo.commands.calibrate.human_labels import attach_files, labels_of
from merilo.commands.calibrate.people import labelling_price, seconds_of, without_labelled
from merilo.commands.label.run import label_run
from merilo.commands.label.tasks import ASSUMED_S, labelling_time

METRIC = "context_relevance"


@pytest.fixture
def run(tmp_path: Path) -> merilo.Run:
    return judged_run(tmp_path / "run", contexts_rows(60), [METRIC])


def labelled(run: merilo.Run, folder: Path, number: int | None, annotator: str | None = None) -> merilo.Run:
    """Draw whole samples, fill all tasks in, and attach them."""
    path = folder / f"{number}.jsonl"
    label_run(run, path, samples=number, items=None)
    fill_in(path, by_grade, annotator=annotator)
    attach_files([str(run.path)], [str(path)])
    return merilo.Run.open(run.path)


@pytest.mark.parametrize(
    ("contexts", "questions", "items", "unit"), [(3, 40, 120, "whole"), (10, 30, 300, "whole"), (13, 40, 120, "items")]
)
def test_a_draw_has_whole_samples_unless_they_are_long(
    tmp_path: Path, contexts: int, questions: int, items: int, unit: str
) -> None:
    """By default whole samples are drawn, so many that about 240 items are asked; of long samples three items."""
    run = judged_run(tmp_path / "run", contexts_rows(60, contexts=contexts), [METRIC])
    drawn = label_run(run, samples=None, items=None)
    assert (drawn.samples, drawn.to_answer, drawn.unit.value) == (questions, items, unit)


def test_the_price_is_that_of_the_draw_and_writes_nothing(run: merilo.Run) -> None:
    """Questions and items are those that `merilo label` draws; no file appears or changes."""
    before = {path: path.stat().st_mtime_ns for path in run.path.parent.rglob("*")}
    price = labelling_price([run.path], METRIC)
    assert str(price) == "40 questions, 200 items, about 23 min"
    assert price.command == f"merilo label {run.path}"
    assert {path: path.stat().st_mtime_ns for path in run.path.parent.rglob("*")} == before


def test_advice_is_never_what_was_done(run: merilo.Run, tmp_path: Path) -> None:
    """After 40 labelled samples the price is that of the other 20; after all 60 it says that labels cannot help."""
    run = labelled(run, tmp_path, 40)
    price = labelling_price([run], METRIC)
    assert (price.questions, price.items) == (20, 100)
    assert price.command.endswith("--number 60")
    price = labelling_price([labelled(run, tmp_path, 60)], METRIC)
    assert (str(price), price.command) == ("All 60 samples are labelled. Evaluate more questions.", "")


def test_a_larger_draw_asks_only_what_is_new(run: merilo.Run, tmp_path: Path) -> None:
    """The annotator of a smaller draw is not asked again, another one is; all labels count together."""
    run = labelled(run, tmp_path, 24, "ann")
    larger = label_run(run, samples=40, items=None)
    assert without_labelled(larger, labels_of(run), "ann").to_answer == 5 * (40 - 24)
    assert without_labelled(larger, labels_of(run), "ben").to_answer == 5 * 40
    same = label_run(run, samples=24, items=None)
    assert without_labelled(same, labels_of(run), "ann").to_answer == 5 * 24


def test_seconds_are_stored_with_the_labels(run: merilo.Run, tmp_path: Path) -> None:
    """Seconds in a file of labels are attached with them, without pauses, and give the time of further labels."""
    path = tmp_path / "t.jsonl"
    label_run(run, path, samples=24, items=None)
    fill_in(path, by_grade, annotator="ann")
    lines = path.read_text(encoding="utf-8").splitlines()
    timed = [
        line.replace('"seconds": null', f'"seconds": {600 if at % 3 == 0 else 3}') for at, line in enumerate(lines)
    ]
    path.write_text("\n".join(timed), encoding="utf-8")
    attach_files([str(run.path)], [str(path)])
    labels = labels_of(merilo.Run.open(run.path))
    assert {each.seconds for each in labels} == {None, 3.0}
    assert (seconds_of(labels, "ann"), seconds_of(labels, "ben")) == (3.0, ASSUMED_S)
    assert labelling_time(120, 3.0) == "about 6 min"
