"""Traffic without a judge, whose scores are known: id_recall is 1 or 0."""

import json
import random
import shutil
import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from command_line import Here

SETTINGS = ("--metrics", "id_recall", "--rate", "1", "--learn", "200", "--once")


def row(number: int, *, hit: bool, **more: object) -> dict[str, Any]:
    ids = {"retrieved_context_ids": ["a" if hit else "b"], "reference_context_ids": ["a"]}
    return {"id": f"r{number}", "question": f"What is {number % 10}?", **ids, **more}


def write(path: Path, first: int, count: int, good: float = 0.9, **more: object) -> None:
    """Append rows of which a fraction has the right context."""
    source = random.Random(first)
    with path.open("a", encoding="utf-8") as file:
        for number in range(first, first + count):
            print(json.dumps(row(number, hit=source.random() < good, **more)), file=file)


def look(here: Here, day: int, *more: str, source: str = "traffic.jsonl") -> tuple[int, dict[str, Any]]:
    """Look once at 6 o'clock of a day of November; the exit code and the JSON."""
    words = ["watch", source, "--state", "prod", *SETTINGS, "--now", f"2026-11-{day:02}T06:00", "--json", *more]
    done = here.merilo(*words)
    assert done.returncode in {0, 1, 3, 4, 5, 7}, done.stderr
    return done.returncode, json.loads(done.stdout)


def refused(here: Here, *more: str, day: int = 9, source: str = "traffic.jsonl") -> str:
    """Return the message of a look that is refused."""
    words = ["watch", source, "--state", "prod", *SETTINGS, "--now", f"2026-11-{day:02}T06:00", *more]
    done = here.merilo(*words)
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    return done.stderr.strip()


def learned(here: Here) -> None:
    """Traffic of a day, all of it the reference."""
    shutil.copytree(_learned().name, here.path, dirs_exist_ok=True)


@cache
def _learned() -> "TemporaryDirectory[str]":
    folder = TemporaryDirectory()
    here = Here(Path(folder.name))
    write(here.path / "traffic.jsonl", 0, 200)
    code, found = look(here, 1)
    assert (code, found["reference_units"]) == (0, 200), found
    return folder


def content(state: Path) -> tuple[dict[str, Any], list[Any]]:
    """Return the facts, without how the files of the source are known, and the journal."""
    with closing(sqlite3.connect(state / "watch.sqlite")) as db:
        facts = json.loads(db.execute("SELECT facts FROM facts").fetchone()[0])
        looks = db.execute("SELECT * FROM looks ORDER BY number").fetchall()
        waiting = db.execute("SELECT id, look FROM waiting ORDER BY row").fetchall()
    del facts["positions"], facts["salt"]
    return facts, [*looks, waiting]


def runs(state: Path) -> dict[str, bytes]:
    """Return the files of all runs of the looks that equal input makes equal."""
    names = ("manifest.json", "outcomes.jsonl", "summary.json")
    return {str(path.relative_to(state)): path.read_bytes() for path in state.rglob("*") if path.name in names}
