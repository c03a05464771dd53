"""Answers that a labelling page sends to a server: what is stored, and what is refused."""

import json
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from labelled_run import STATEMENT_ROWS, contexts_rows, judged_run, read_tasks, says_statements

from merilo.commands.calibrate.human_labels import read_people
from merilo.commands.label import page
from merilo.commands.label.page import MAX_BYTES, answers_file, store_answer
from merilo.commands.label.run import label_run
from merilo.commands.label.task_file import TaskFile
from merilo.errors import RunError, UsageError
from merilo.runs.files import staged


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of tasks with the answers yes and no."""
    folder = tmp_path_factory.mktemp("tasks")
    run = judged_run(folder / "run", STATEMENT_ROWS, ["faithfulness"], says_statements)
    label_run(run, folder / "tasks.jsonl", samples=24)
    return folder / "tasks.jsonl"


@pytest.fixture
def tasks(drawn: Path, tmp_path: Path) -> Path:
    """A fresh copy of the file."""
    path = tmp_path / "tasks.jsonl"
    path.write_bytes(drawn.read_bytes())
    return path


def ids(tasks: Path) -> list[str]:
    """The ids of the tasks that need an answer."""
    return [each["task"] for each in read_tasks(tasks) if each["label"] != "settled"]


def sent(**fields: Any) -> bytes:
    """A request of the page."""
    return json.dumps(fields).encode()


def test_an_answer_is_stored_before_the_reply(tasks: Path) -> None:
    """The annotator's file has the label and the name, the tasks themselves stay as they were."""
    before, (first, second, *_) = tasks.read_bytes(), ids(tasks)
    assert store_answer(tasks, sent(annotator="ann", task=first, label="yes")) == {first: "yes"}
    assert store_answer(tasks, sent(annotator="ann", task=second, label="no")) == {first: "yes", second: "no"}
    stored = {each["task"]: (each["label"], each["annotator"]) for each in read_tasks(answers_file(tasks, "ann"))}
    assert (stored[first], stored[second]) == (("yes", "ann"), ("no", "ann"))
    assert tasks.read_bytes() == before


@pytest.mark.parametrize(("sent_seconds", "kept"), [(4.25, "4.2"), (121, None), (-1, None), ("x", None), (None, None)])
def test_the_seconds_of_an_answer_are_stored_unless_it_was_a_pause(
    tasks: Path, sent_seconds: object, kept: str | None
) -> None:
    """Seconds up to two minutes are in the annotator's file; anything else is no time, and the answer still counts."""
    first = ids(tasks)[0]
    assert store_answer(tasks, sent(annotator="ann", task=first, label="yes", seconds=sent_seconds)) == {first: "yes"}
    assert next(each["seconds"] for each in read_tasks(answers_file(tasks, "ann")) if each["task"] == first) == kept
    store_answer(tasks, sent(annotator="ann", task=first, label=""))
    assert TaskFile(answers_file(tasks, "ann")).tasks[0].seconds is None


def test_undo_and_change(tasks: Path) -> None:
    """A later answer replaces the earlier one; an empty label removes it with its name."""
    first = ids(tasks)[0]
    for label in ("yes", "no"):
        store_answer(tasks, sent(annotator="ann", task=first, label=label))
    assert store_answer(tasks, sent(annotator="ann")) == {first: "no"}
    assert store_answer(tasks, sent(annotator="ann", task=first, label="")) == {}
    record = next(each for each in read_tasks(answers_file(tasks, "ann")) if each["task"] == first)
    assert (record["label"], record["annotator"]) == (None, None)


def test_annotators_do_not_see_each_other(tasks: Path) -> None:
    """Each name has its own file, and labels that the file of tasks already had are in none of them."""
    first, second, *_ = ids(tasks)
    store_answer(tasks, sent(annotator="ann", task=first, label="yes"))
    labelled = answers_file(tasks, "ann")
    assert store_answer(labelled, sent(annotator="ben", task=second, label="no")) == {second: "no"}
    assert "ann" not in json.dumps([each["annotator"] for each in read_tasks(answers_file(labelled, "ben"))])
    assert store_answer(labelled, sent(annotator="eve")) == {}


def test_asking_for_labels_writes_nothing(tasks: Path) -> None:
    """A request without a task creates no file."""
    assert store_answer(tasks, sent(annotator="ann")) == {}
    assert [each.name for each in tasks.parent.iterdir()] == ["tasks.jsonl"]


@pytest.mark.parametrize(
    "names",
    [("ann", "Ann", "ann b", "ann-b", "ann  b"), ("安娜", "アンナ"), ("../../etc/passwd", "..", "a/b", "CON:", "*")],
)
def test_names_have_separate_files_next_to_the_tasks(tmp_path: Path, names: tuple[str, ...]) -> None:
    """Different names have different files, also without regard to case; no name leads out of the directory."""
    tasks = tmp_path / "tasks.jsonl"
    found = [answers_file(tasks, name) for name in names]
    assert len({each.name.casefold() for each in found}) == len(names)
    assert {each.parent for each in found} == {tmp_path}
    assert all(each.name.isascii() and each.suffix == ".jsonl" and each != tasks for each in found)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"x" * (MAX_BYTES + 1), "too long"),
        (b"not json", "not valid JSON"),
        (b"\xff\xfe", "not valid JSON"),
        (b"[" * MAX_BYTES, "not valid JSON"),
        (b"[]", "not a JSON object"),
        (sent(annotator="ann", task="t0", label="yes"), "the task is unknown"),
        (sent(annotator="ann", task="TASK", label="maybe"), "Expected one of these answers: no; yes"),
        (sent(annotator="ann", task="TASK", label="YES"), "Expected one of these answers"),
        (sent(annotator="ann", task="TASK", label="settled"), "Expected one of these answers"),
        (sent(annotator="ann", task="TASK", label=1), "both texts"),
        (sent(annotator="ann", label="yes"), "both texts"),
        (sent(annotator="ann", task=["TASK"], label="yes"), "both texts"),
        (sent(annotator="", task="TASK", label="yes"), "1 to 60 characters"),
        (sent(annotator="a" * 61, task="TASK", label="yes"), "1 to 60 characters"),
        (sent(annotator="a\nb", task="TASK", label="yes"), "one line"),
        (sent(annotator="a\u202eb", task="TASK", label="yes"), "one line"),
        (sent(annotator="\ud800", task="TASK", label="yes"), "one line"),
        (sent(annotator=7, task="TASK", label="yes"), "annotator's name"),
        (sent(task="TASK", label="yes"), "annotator's name"),
        (sent(annotator="ann", task="TASK", label="yes", path="/etc"), "unknown field: 'path'"),
    ],
)
def test_wrong_answers_are_refused(tasks: Path, body: bytes, says: str) -> None:
    """Anything but a known task with a possible label by a named annotator is an error, and changes no label."""
    with pytest.raises(UsageError, match=says):
        store_answer(tasks, body.replace(b"TASK", ids(tasks)[0].encode()))
    assert not any(each["label"] in {"yes", "no"} for path in tasks.parent.iterdir() for each in read_tasks(path))


@pytest.mark.parametrize("label", ["0.5", "0,25", "1"])
def test_numbers_in_the_range_are_stored(tmp_path: Path, label: str) -> None:
    """A task that asks for a value accepts a number in its range, and no other text."""
    run = judged_run(tmp_path / "run", contexts_rows(4), ["context_relevance(unit=sentence)"])
    tasks = tmp_path / "tasks.csv"
    label_run(run, tasks, samples=2)
    first = read_people_tasks(tasks)[0]
    assert store_answer(tasks, sent(annotator="ann", task=first, label=label)) == {first: label}
    for wrong in ("2", "nan", "inf", "1e999", "-0.1", "much", "１", "0x1", "1" * 30, "=1"):
        with pytest.raises(UsageError, match="a number from 0 to 1"):
            store_answer(tasks, sent(annotator="ann", task=first, label=wrong))
    (stored,) = read_people([answers_file(tasks, "ann")]).labels
    assert (stored.label, stored.annotator) == (label, "ann")


def read_people_tasks(path: Path) -> list[str]:
    """The ids of the tasks of a CSV file."""
    import csv

    with path.open(encoding="utf-8-sig", newline="") as file:
        return [row["task"] for row in csv.DictReader(file)]


def test_two_servers_lose_no_answer(tasks: Path) -> None:
    """An answer that waits while another process writes the file is refused, and may be sent again."""
    first, second, *_ = ids(tasks)
    store_answer(tasks, sent(annotator="ann", task=first, label="yes"))
    path = answers_file(tasks, "ann")
    here, there = TaskFile(path), TaskFile(path)
    with ThreadPoolExecutor(1) as pool:
        with staged(path) as out:  # the other process writes, and this one waits
            waiting = pool.submit(here.answer, 0, "no", "ann")
            time.sleep(0.1)
            out.write(path.read_bytes().replace(b'"label": null', b'"label": "no"', 1))
        with pytest.raises(RunError, match="Another program changed"):
            waiting.result()
    assert [each.label for each in TaskFile(path).tasks] != [each.label for each in there.tasks]
    assert set(store_answer(tasks, sent(annotator="ann", task=second, label="yes"))) >= {first, second}


def test_a_file_of_answers_is_created_once(tasks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If another process creates the annotator's file at the same time, its answers stay."""
    first, second, *_ = ids(tasks)

    def meanwhile(file: TaskFile, path: Path) -> None:
        monkeypatch.undo()
        store_answer(tasks, sent(annotator="ann", task=first, label="yes"))
        with pytest.raises(FileExistsError):
            file.copy(path)
        raise FileExistsError(path)

    monkeypatch.setattr(TaskFile, "copy", meanwhile)
    # Each process has its own lock; this one plays two.
    monkeypatch.setattr(page, "_WRITING", nullcontext())
    assert store_answer(tasks, sent(annotator="ann", task=second, label="no")) == {first: "yes", second: "no"}


def test_answers_to_earlier_tasks_are_left_alone(tasks: Path) -> None:
    """If tasks of the same name were drawn anew, the error names the annotator's file, which is not changed."""
    first, second, *_ = ids(tasks)
    store_answer(tasks, sent(annotator="ann", task=first, label="yes"))
    path = answers_file(tasks, "ann")
    before = path.read_bytes()
    tasks.write_bytes(before.split(b"\n", 1)[1])
    path.write_bytes(before := before.split(b"\n", 1)[0] + b"\n")
    with pytest.raises(UsageError, match=r"tasks\.ann\.jsonl has the answers to other tasks\. Move it elsewhere"):
        store_answer(tasks, sent(annotator="ann", task=second, label="yes"))
    assert path.read_bytes() == before


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes, and links need a permission")
@pytest.mark.parametrize(
    "made", [Path.mkdir, getattr(os, "mkfifo", Path.mkdir), lambda path: path.symlink_to(path.with_name("elsewhere"))]
)
def test_only_regular_files_hold_answers(made: Callable[[Path], None], tasks: Path) -> None:
    """A pipe of the annotator's name does not block the server, and a link to nothing leads no answer elsewhere."""
    path = answers_file(tasks, "ann")
    made(path)
    with pytest.raises(UsageError, match=r"tasks\.ann\.jsonl is not a regular file"):
        store_answer(tasks, sent(annotator="ann", task=ids(tasks)[0], label="yes"))
    assert not path.with_name("elsewhere").exists()
