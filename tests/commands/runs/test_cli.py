"""`merilo runs`."""

import json
import os
import shutil
import time
from pathlib import Path

import pytest
from command_line import SAMPLES, Here
from server import JudgeServer

from merilo.commands.runs.run import State, list_runs
from merilo.runs.files import RunLock

LIST = """\
2 runs in runs, newest first

run       changed           samples  state      USD
runs/new  2026-03-02 10:00      4/4  finished  0.00
  data, judge scripted:script.jsonl: context_relevance 0.250 and 2 more
runs/old  2026-03-01 10:00      4/4  finished  0.00
  data, judge scripted:script.jsonl: context_relevance 0.250 and 2 more
"""


@pytest.fixture
def runs(run: Here) -> Here:
    """Two copies of a finished run in `runs`, last changed on two days of March 2026."""
    for name, day in (("old", 1), ("new", 2)):
        shutil.copytree(run.path / "out", run.path / "runs" / name)
        _change(run.path / "runs" / name, day)
    return run


def _change(directory: Path, day: int) -> None:
    """Set the time of the last change to a day of March 2026, 10:00 UTC."""
    seconds = 1_772_359_200 + (day - 1) * 86_400
    for path in (directory, *directory.iterdir()):
        os.utime(path, (seconds, seconds))


def _row(here: Here, name: str) -> dict[str, object]:
    rows = {row["run"]: row for row in here.json("runs", "list", "runs")["runs"]}
    found: dict[str, object] = rows[f"runs/{name}"]
    return found


def test_runs_are_listed_newest_first(runs: Here) -> None:
    """Each run has a row with time, samples, state and cost, and a line with data, judge and means that fit."""
    shown = runs.merilo("runs", "list", "runs", env={"TZ": "UTC"})
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout == LIST


def test_the_record_has_all_means(runs: Here) -> None:
    """The JSON object has every mean of the run, unrounded."""
    row = runs.json("runs", "list", "runs")["runs"][0]
    summary = json.loads((runs.path / "out" / "summary.json").read_text())
    assert row["means"] == {each["metric"]: each["mean"] for each in summary["metrics"]}
    assert row["changed"] == "2026-03-02T10:00:00Z"
    assert (row["data"], row["judge"], row["done"], row["samples"]) == ("data", "scripted:script.jsonl", 4, 4)


def test_without_a_directory_the_default_place_is_listed(run: Here) -> None:
    """`merilo runs` lists what `merilo run` stored without --out."""
    assert run.merilo("runs", "list").stdout == "No runs in .merilo/runs.\n"
    run.merilo("run", "data.jsonl", "--judge", "scripted:script.jsonl", "--metrics", "faithfulness", "--quiet")
    assert [row["run"].startswith(".merilo/runs/data-") for row in run.json("runs", "list")["runs"]] == [True]
    assert len(run.json("runs", "list", ".")["runs"]) == 2


def test_a_run_that_is_being_written_is_running(runs: Here) -> None:
    """A run whose lock another process holds is running, and its lock can still be taken afterwards."""
    with RunLock(runs.path / "runs" / "old"):
        assert _row(runs, "old")["state"] == "running"
    with RunLock(runs.path / "runs" / "old"):
        pass
    assert _row(runs, "old")["state"] == "finished"


def test_an_interrupted_run_names_its_reason(here: Here) -> None:
    """A run that reached a limit shows the limit and the samples that are done."""
    data = here.write("data.jsonl", SAMPLES)
    with JudgeServer() as server:
        judge = ("--judge", "openai:test-model", "--base-url", server.base_url)
        stopped = here.merilo("run", data, *judge, "--out", "runs/limited", "--max-requests", "1")
    assert stopped.returncode == 5
    (row,) = here.json("runs", "list", "runs")["runs"]
    assert row["state"] == "interrupted"
    assert row["reason"].startswith("Limit of 1 request")
    assert row["reason"].endswith("of 4 samples are done.")
    assert (row["done"] < row["samples"], row["cost_usd"]) == (True, None)


DAMAGES = {
    "no_manifest": ("interrupted", "Stopped before the first question."),
    "half_manifest": ("unreadable", "is damaged"),
    "list_manifest": ("unreadable", "wrong form"),
    "newer": ("unreadable", "Use the merilo that wrote it"),
    "no_summary": ("interrupted", "Killed before its results were written."),
    "half_summary": ("unreadable", "is damaged"),
    "odd_summary": ("unreadable", "metrics"),
    "pipe": ("unreadable", "not a regular file"),
    "pipe_lock": ("unreadable", "not a regular file"),
    "huge_manifest": ("unreadable", "it has 17,179,869,184 bytes"),
    "huge_summary": ("unreadable", "it has 17,179,869,184 bytes"),
    "no_usage": ("finished", "None"),
    "half_usage": ("finished", "None"),
    "bad_lock": ("finished", "None"),
}


def _damage(run: Path, how: str) -> None:
    manifest, summary, usage = run / "manifest.json", run / "summary.json", run / "usage.json"
    match how:
        case "no_manifest":
            manifest.unlink()
        case "half_manifest" | "half_summary" | "half_usage":
            path = {"half_manifest": manifest, "half_summary": summary, "half_usage": usage}[how]
            path.write_bytes(path.read_bytes()[:40])
        case "list_manifest":
            manifest.write_text("[]")
        case "newer":
            manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "format": 999}))
        case "no_summary":
            summary.unlink()
            usage.unlink()
        case "odd_summary":
            summary.write_text('{"complete": true, "samples": 1, "metrics": [{"mean": "high"}]}')
        case "pipe" | "pipe_lock":
            path = summary if how == "pipe" else run / ".lock"
            path.unlink()
            os.mkfifo(path)
        case "huge_manifest" | "huge_summary":
            os.truncate({"huge_manifest": manifest, "huge_summary": summary}[how], 2**34)  # a hole takes no space
        case "no_usage":
            usage.unlink()
        case _:
            (run / ".lock").write_bytes(b"not a database, but long enough to be read as one" * 20)


def test_a_damaged_run_has_a_row_and_hides_no_other(runs: Here) -> None:
    """Each run with a missing or damaged file is listed with its reason; the others are listed as before."""
    sound = _row(runs, "new")
    for how in DAMAGES:
        shutil.copytree(runs.path / "runs" / "old", runs.path / "runs" / how)
        _damage(runs.path / "runs" / how, how)
    done = runs.merilo("runs", "list", "runs", "--json")
    assert done.returncode == 0
    rows = {Path(row["run"]).name: row for row in json.loads(done.stdout)["runs"]}
    assert rows["new"] == sound
    for how, (state, reason) in DAMAGES.items():
        assert (rows[how]["state"], reason in str(rows[how]["reason"])) == (state, True), how


def test_directories_of_other_programs_are_skipped(runs: Here) -> None:
    """A manifest of another program, an unreadable directory and a file are not runs."""
    (runs.path / "runs" / "site").mkdir()
    (runs.path / "runs" / "site" / "manifest.json").write_text('{"name": "app"}')
    (runs.path / "runs" / "odd").mkdir()
    (runs.path / "runs" / "odd" / "manifest.json").write_text("[1")
    (runs.path / "runs" / "notes.txt").write_text("notes")
    (runs.path / "runs" / ".hidden").mkdir()
    (runs.path / "runs" / "loop").symlink_to(runs.path / "runs")
    paths = {row["run"].rpartition("/")[2] for row in runs.json("runs", "list", "runs")["runs"]}
    assert paths == {"old", "new"}


def test_a_thousand_runs_are_listed_in_seconds(runs: Here) -> None:
    """Outcomes and replies are not read, so a thousand runs take a few seconds."""
    old = runs.path / "runs" / "old"
    many = runs.path / "many"
    for place in range(1000):
        (many / str(place)).mkdir(parents=True)
        for name in ("manifest.json", "summary.json", "usage.json", "seal.json"):
            (many / str(place) / name).hardlink_to(old / name)
        (many / str(place) / "outcomes.jsonl").write_bytes(b"not read")
    began = time.process_time()
    found = list_runs(many)
    assert {each.state for each in found.runs} == {State.FINISHED}
    assert len(found.runs) == 1000
    assert time.process_time() - began < 10
