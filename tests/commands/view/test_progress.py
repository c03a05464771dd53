"""The progress of a run that another process, or another thread, is writing."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asgi import ask
from going_run import Going
from starlette.types import ASGIApp

from merilo.commands.view.app import create_app
from merilo.commands.view.catalog import LiveProgress, PartReader


@pytest.fixture
def going(tmp_path: Path) -> Iterator[Going]:
    """A run in progress; no sample is released yet."""
    run = Going(tmp_path / "going")
    try:
        yield run
    finally:
        run.finish()


def until(app: ASGIApp, done: int) -> dict[str, Any]:
    """The progress once so many samples are done."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        runs = ask(app, "/progress").json["runs"]
        if runs and (found := next(iter(runs.values())))["done"] >= done and found["samples"]:
            return dict(found)
        time.sleep(0.02)
    raise AssertionError("no such progress")


def test_progress_of_a_run_being_written(going: Going, tmp_path: Path) -> None:
    """The list and the page of a run show how many samples are done, and its page becomes the report at the end."""
    app = create_app(tmp_path, "token", 8642)
    assert until(app, 0)["text"].startswith("0 of 8 samples (0%)")
    version = ask(app, "/progress").json["version"]
    going.released = 1
    found = until(app, 1)
    assert (found["done"], found["samples"], found["failed"]) == (1, 8, 0)
    assert found["requests"] >= 1
    page = ask(app, "/").text
    assert '<tr class="running">' in page
    assert "1 of 8 samples (12%)" in page
    assert ask(app, "/progress").json["version"] == version
    address = re.search(r'href="(runs/\w+)"', page)
    assert address is not None
    own = ask(app, address[1])
    assert (own.status, "The report appears when the run is finished." in own.text) == (200, True)
    assert '<progress max="8" value="1"' in own.text
    going.finish()
    assert ask(app, "/progress").json["runs"] == {}
    assert ask(app, "/progress").json["version"] != version
    assert 'id="samples"' in ask(app, address[1]).text


def line(outcome: str, text: str = "") -> bytes:
    """A line of outcomes."""
    return json.dumps({"sample": text, "outcome": outcome}).encode() + b"\n"


def test_only_new_lines_are_read(tmp_path: Path) -> None:
    """Lines are counted once, half a line when it is whole, and from the first if the file was begun again."""
    path = tmp_path / "outcomes.jsonl.part"
    reader = PartReader()
    reader.read(path)
    assert (reader.lines, reader.failed) == (0, 0)
    half = line("failed")
    path.write_bytes(line("score", '"outcome": "failed"') + half[:9])
    for _ in range(2):
        reader.read(path)
        assert (reader.lines, reader.failed) == (1, 0)
    with path.open("ab") as file:
        file.write(half[9:] + b"no JSON\n[]\n")
    reader.read(path)
    assert (reader.lines, reader.failed) == (4, 1)
    path.write_bytes(line("undefined"))
    reader.read(path)
    assert (reader.lines, reader.failed) == (1, 0)


def test_words_of_a_progress() -> None:
    """The words leave out what is unknown, zero or over."""
    assert LiveProgress(0, 0, 0).text == "starting"
    assert LiveProgress(0, 8, 0).text == "0 of 8 samples (0%)"
    whole = LiveProgress(1, 8, 2, requests=1, cost_usd=0.5, seconds_left=300.0)
    assert whole.text == "1 of 8 samples (12%), 2 failed, 1 request, $0.50 so far, 5 min left"
    assert LiveProgress(8, 8, 0, cost_usd=0.0, seconds_left=0.0).text == "8 of 8 samples (100%)"
