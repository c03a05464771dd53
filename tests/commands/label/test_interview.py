"""The terminal form: what is next to the prompt."""

import io
import sys
from pathlib import Path

import pytest
from labelled_run import STATEMENT_ROWS, judged_run, says_statements

from merilo.commands.label import task_file
from merilo.commands.label.run import label_run
from merilo.commands.label.task_file import TaskFile, ask_tasks


def shown(folder: Path, context: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines of the first task, whose context this is."""
    rows = [{**row, "retrieved_contexts": [context]} for row in STATEMENT_ROWS[:3]]
    run = judged_run(folder / "run", rows, ["faithfulness"], says_statements)
    label_run(run, folder / "tasks.jsonl")
    monkeypatch.setattr(sys, "stdin", io.StringIO("q\n"))
    capsys.readouterr()
    ask_tasks(TaskFile(folder / "tasks.jsonl"))
    return capsys.readouterr().out.splitlines()


def test_each_answer_has_its_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The form stores the time of each answer, but not that of a pause, and says how long the others take."""
    run = judged_run(tmp_path / "run", STATEMENT_ROWS, ["faithfulness"], says_statements)
    label_run(run, tmp_path / "t.jsonl", samples=24)
    file = TaskFile(tmp_path / "t.jsonl")
    clock = iter([0, 300, *[0, 24] * 12])
    monkeypatch.setattr(task_file, "monotonic", lambda: next(clock))
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n" * 12 + "q\n"))
    ask_tasks(file)
    known = [task.seconds for task in file.tasks if task.label]
    assert (len(known), known.count(None), known.count(24.0)) == (12, 1, 11)
    assert file.time_left == f"about {round(24 * (len(file.tasks) - 12) / 60)} min"


@pytest.mark.parametrize("columns", [40, 100])
@pytest.mark.parametrize("context", ["A short context.", "A long context in some words. " * 200])
def test_statement_is_next_to_the_prompt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, context: str, columns: int
) -> None:
    """Each text is shown once; question and statement come after the contexts, next to the prompt."""
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = shown(tmp_path, context, capsys, monkeypatch)
    names = [line for line in lines if line in {"question", "statement", "contexts"}]
    assert names == ["contexts", "question", "statement"]
    prompt = next(at for at, line in enumerate(lines) if line.startswith(">"))
    assert prompt - lines.index("question") <= 13
    assert max(map(len, lines[:prompt])) <= columns
