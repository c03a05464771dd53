"""Files of tasks that people or their tools filled in, with all that can be wrong with them."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merilo.commands.calibrate.human_labels import read_people
from merilo.commands.label.task_file import TaskFile
from merilo.commands.label.tasks import SETTLED, TaskLine, Ticket, Unit, write_tasks
from merilo.data.source import escaped, plain
from merilo.errors import DataError, RunError

HOSTILE = '=HYPERLINK("http://x")\n"quoted", and; more\t\x1b[31m'


def task(number: int, *, text: str = "A text.", settled: bool = False) -> TaskLine:
    mark = "" if settled else f"{number:032x}"
    one = Ticket("f" * 32, "m", f"s{number}", Unit.ITEMS, mark, 0.5, 40, labels=("no", "yes"))
    return TaskLine(one, "Is it?", (("context", text),), "no; yes", SETTLED if settled else "")


TASKS = [task(number) for number in range(4)]
IDS = [each.ticket.task for each in TASKS]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def rows(tmp_path: Path) -> list[dict[str, Any]]:
    """The tasks as they were written, the first three labelled."""
    write_tasks(tmp_path / "drawn.jsonl", TASKS)
    found = lines(tmp_path / "drawn.jsonl")
    for row in found[:3]:
        row["label"] = "yes"
    return found


@given(st.text())
def test_escaping_a_cell_can_be_undone(text: str) -> None:
    """Whatever a text begins with, reading gives it back, and no escaped cell begins like a formula."""
    assert plain(escaped(text)) == text
    assert escaped(text)[:1] not in {"=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"}


def test_formulas_are_harmless_in_csv_and_come_back(tmp_path: Path) -> None:
    """A context that a spreadsheet would calculate stands behind an apostrophe; the form shows it as it was."""
    write_tasks(tmp_path / "t.csv", [task(0, text=HOSTILE)])
    text = (tmp_path / "t.csv").read_text(encoding="utf-8-sig")
    cell = next(iter(csv.DictReader(io.StringIO(text, newline=""))))["context"]
    assert cell == "'" + HOSTILE
    assert dict(TaskFile(tmp_path / "t.csv").tasks[0].texts)["context"] == HOSTILE


def test_labels_are_read_whatever_else_a_tool_did(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    """Columns may be gone, new or in another order, and labels of another type."""
    kept = [{"label": row["label"], "extra": [1], "ticket": row["ticket"], "task": row["task"]} for row in rows]
    kept[0]["label"], kept[1]["label"] = True, 1
    found = read_people([write(tmp_path / "t.jsonl", kept)])
    assert [each.label for each in found.labels] == ["yes", "1", "yes"]
    assert (found.tasks, found.blank) == (4, 1)


def test_a_label_of_nan_is_blank(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    """A tool that reads the tasks into a frame and writes them as JSON Lines leaves NaN or null."""
    rows[0]["label"], rows[1]["label"], rows[2]["annotator"] = float("nan"), None, float("nan")
    found = read_people([write(tmp_path / "t.jsonl", rows)])
    assert [(each.label, each.annotator) for each in found.labels] == [("yes", "")]
    assert found.blank == 3


def test_tickets_may_stand_in_another_file(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    """A tool that keeps only ids and labels is read beside the file that was drawn."""
    bare = write(tmp_path / "bare.jsonl", [{"task": row["task"], "label": "no"} for row in rows])
    found = read_people([bare, tmp_path / "drawn.jsonl"])
    assert [each.label for each in found.labels] == ["no"] * 4
    alone = read_people([bare])
    assert not alone.labels
    assert "Add the file that merilo label wrote" in alone.problems[0].message


def test_edited_ids_are_told_and_lose_their_own_line_only(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    """An id that is not its ticket's, be it another task's, gives no label to either."""
    rows[0]["task"] = IDS[3]
    rows[1]["ticket"] = "k???"
    found = read_people([write(tmp_path / "t.jsonl", rows)])
    assert [each.ticket.sample for each in found.labels] == ["s2"]
    assert [problem.line for problem in found.problems] == [1, 2]
    assert "does not match the ticket" in found.problems[0].message


def test_a_bad_line_never_loses_the_good_ones(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    """JSON that breaks off, a list, and bytes that are no text are told with their lines; the labels count."""
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    (tmp_path / "t.jsonl").write_bytes(b'{"task": "t1", "lab\n[1]\n\xff\xfe{}\n' + text)
    found = read_people([tmp_path / "t.jsonl"])
    assert len(found.labels) == 3
    assert [problem.line for problem in found.problems] == [1, 2, 3]


def test_a_label_given_twice_counts_once(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    """Alike it is counted as repeated; differently the last line counts, and that is told."""
    again = [dict(rows[0]), dict(rows[1], label="no")]
    found = read_people([write(tmp_path / "t.jsonl", [*rows, *again])])
    assert len(found.labels) == 3
    assert {each.ticket.sample: each.label for each in found.labels}["s1"] == "no"


def test_settled_tasks_need_no_label(tmp_path: Path) -> None:
    """A sample without anything to judge was drawn all the same, whatever its label says, and is no blank task."""
    write_tasks(tmp_path / "t.jsonl", [task(0, settled=True), task(1)])
    found = read_people([tmp_path / "t.jsonl"])
    assert (len(found.labels), found.tasks, found.blank) == (1, 1, 1)
    assert found.labels[0].ticket.settled


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "No task in"),
        ('{"label": "yes"}\n', "No task in"),
        (
            '{"task": "groundedness", "context": "x", "response": "y", "label": 1}\n',
            "labelled records for merilo judge check",
        ),
    ],
)
def test_files_without_tasks_are_refused(tmp_path: Path, text: str, says: str) -> None:
    """An empty file, one without ids, and the other kind of labels each have a sentence."""
    (tmp_path / "t.jsonl").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=says):
        read_people([tmp_path / "t.jsonl"])


@pytest.mark.parametrize("name", ["t.jsonl", "t.csv"])
def test_answers_are_in_the_file_at_once(tmp_path: Path, name: str) -> None:
    """After each answer a new reader finds it, with the name of who gave it, and everything else as it was."""
    write_tasks(tmp_path / name, [task(0, text=HOSTILE), *TASKS[1:]])
    file = TaskFile(tmp_path / name)
    file.answer(1, "no", "ann")
    file.answer(0, "yes")
    found = {each.ticket.sample: (each.label, each.annotator) for each in read_people([tmp_path / name]).labels}
    assert found == {"s0": ("yes", ""), "s1": ("no", "ann")}
    assert [each.label for each in TaskFile(tmp_path / name).tasks] == ["yes", "no", "", ""]
    file.answer(1, "")
    assert TaskFile(tmp_path / name).tasks[1].label == ""
    assert dict(TaskFile(tmp_path / name).tasks[0].texts)["context"] == HOSTILE


def test_lines_that_are_no_tasks_stay_as_they_are(tmp_path: Path) -> None:
    """Damage, other fields and other kinds of white space survive every answer byte by byte."""
    write_tasks(tmp_path / "t.jsonl", TASKS)
    good = (tmp_path / "t.jsonl").read_bytes().splitlines(keepends=True)
    damaged = [b"{broken\r\n", b"\xff\xfe\n", b"\n", b"[1,  2]\n"]
    (tmp_path / "t.jsonl").write_bytes(b"".join([damaged[0], good[0], *damaged[1:], *good[1:]]))
    file = TaskFile(tmp_path / "t.jsonl")
    assert file.unread == 3
    file.answer(3, "yes")
    after = (tmp_path / "t.jsonl").read_bytes().splitlines(keepends=True)
    assert [after[0], *after[2:5]] == damaged
    assert after[1] == good[0]


def test_what_another_program_wrote_is_not_overwritten(tmp_path: Path) -> None:
    """A file that changed after it was opened is left alone, with a sentence."""
    write_tasks(tmp_path / "t.jsonl", TASKS)
    file = TaskFile(tmp_path / "t.jsonl")
    with (tmp_path / "t.jsonl").open("a", encoding="utf-8") as other:
        other.write("\n")
    with pytest.raises(RunError, match="Another program changed"):
        file.answer(0, "yes")
    assert file.tasks[0].label == ""
    assert not read_people([tmp_path / "t.jsonl"]).labels
