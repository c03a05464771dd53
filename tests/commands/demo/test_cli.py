"""`merilo demo`: one story in at most 20 lines, from recorded verdicts, the same each time."""

import json
import re
import shlex
import shutil
from pathlib import Path

from command_line import Here
from demo_runs import Demo

from merilo.runs.run import Run


def test_the_story(demo: Demo) -> None:
    """Answers are judged, a worse retriever is found only after labels, and the build stops."""
    text = " ".join(demo.text.split())
    assert "30 answers: 3 right, 2 not supported, 25 cannot tell." in text
    assert "An annotator agrees on the support of 5 of 5." in text
    assert "annotator not supported" in text
    assert "cannot tell: no one has checked the judge" in text
    assert "40 labelled 0.208 to 0.143 -0.065 (-0.107 to -0.023) worse" in text
    assert "fail: id_recall is worse: 0.917 to 0.733" in text
    assert len(demo.text.splitlines()) <= 20
    assert demo.written == ["a place"]


def test_recorded_verdicts_are_those_of_the_judge(demo: Demo, tmp_path: Path) -> None:
    """No verdict on the retrievers is computed: the record covers all, so the judge has not changed since."""
    demo.copied(tmp_path / "demo")
    for name in ("bm25", "overlap"):
        run = Run(tmp_path / "demo" / name)
        asked = {key for record in run.records() for key in record.get("trail", ())}
        assert run.usage["cached"] == len(asked) > 200


def test_the_commands_that_it_names_work(demo: Demo, here: Here) -> None:
    """The commands of the last lines work as typed, on the data of the demo."""
    demo.copied(here.path / "a place")
    commands = re.findall(r"merilo report .*|merilo run answers.csv", demo.text)
    assert len(commands) == 2
    report = shlex.split(commands[0])
    assert here.merilo(*report[1:]).returncode == 0


def test_a_second_time_gives_the_same_text(demo: Demo, here: Here) -> None:
    """Runs and labels that are there are used; a broken run is made again; another directory's files stay."""
    demo.copied(here.path / "a place")
    assert here.merilo("demo", "--out", "a place").stdout == demo.text
    (here.path / "a place" / "answers" / "outcomes.jsonl").write_text("broken\n", encoding="utf-8")
    assert here.merilo("demo", "--out", "a place").stdout == demo.text
    shutil.rmtree(here.path / "a place" / "bm25")
    (here.path / "a place" / "bm25").mkdir()
    (here.path / "a place" / "bm25" / "mine.txt").write_text("mine", encoding="utf-8")
    refused = here.merilo("demo", "--out", "a place")
    assert refused.returncode != 0
    assert (here.path / "a place" / "bm25" / "mine.txt").read_text(encoding="utf-8") == "mine"


def test_its_data_can_be_evaluated_as_shown(demo: Demo, tmp_path: Path) -> None:
    """The data lie beside the runs: thirty answers, and sixty questions for each retriever."""
    demo.copied(tmp_path / "demo")
    data = tmp_path / "demo" / "data"
    lines = {name: (data / f"{name}.jsonl").read_text(encoding="utf-8").splitlines() for name in ("answers", "bm25")}
    assert {name: len(rows) for name, rows in lines.items()} == {"answers": 30, "bm25": 60}
    assert json.loads(lines["bm25"][0])["reference_context_ids"]
