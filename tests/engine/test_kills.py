"""A run over HTTP that is killed three times; benchmarks/kills.py does so fifty times, at random moments."""

import shutil
import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

from command_line import COMMAND, Here
from judged_rivers import canonical
from server import Asked, JudgeServer

import merilo

SAMPLES = 200
CONCURRENCY = 8
UNCOMMITTED = 82
KILLS = 3
BETWEEN = 100
"""Requests from one kill to the next: more than may be lost by one."""


def answer(asked: Asked) -> int:
    """A grade that follows from the question; on each tenth question one that there is not, however often it asks."""
    number = int(asked.about.partition("river ")[2].partition("?")[0])
    return 9 if number % 10 == 3 else number % 3


def start(here: Here, server: JudgeServer, name: str) -> subprocess.Popen[bytes]:
    words = ["--judge", "openai:m", "--base-url", server.base_url, "--metrics", "context_relevance", "--quiet"]
    limits = ["--concurrency", str(CONCURRENCY), "--max-failed", "1", "--no-cache"]
    return subprocess.Popen(
        [COMMAND, "run", "data.jsonl", *words, *limits, "--out", name], cwd=here.path, env=here.environment
    )


def answers(store: Path, copy: Path) -> int:
    """The answers in a copy of a store and its write-ahead log, which must be sound."""
    copy.mkdir()
    for path in store.parent.glob("store.sqlite*"):
        if not path.name.endswith("-shm"):  # it is made anew, as after a loss of power
            shutil.copy(path, copy)
    with closing(sqlite3.connect(copy / store.name)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return int(db.execute("SELECT count(*) FROM answers").fetchone()[0])


def test_kills_lose_nothing_and_pay_for_little_twice(tmp_path: Path) -> None:
    """Killed three times, the same command ends with the bytes of an uninterrupted run, failed questions included.

    Each kill costs no more than what was in the air or not committed; no answer that was kept is ever lost.
    """
    here = Here(tmp_path)
    rows = [
        {"user_input": f"How long is river {n}?", "retrieved_contexts": [f"It is {n} km long.", f"Fish {n} swim."]}
        for n in range(SAMPLES)
    ]
    here.write("data.jsonl", rows)
    with JudgeServer(answer, delay_s=0.005) as server:
        assert start(here, server, "whole").wait() == 0
        needed = sorted(server.sent)
        server.sent.clear()
        twice = kept = 0
        for kill in range(KILLS):
            process = start(here, server, "killed")
            enough = len(server.sent) + BETWEEN
            while len(server.sent) < enough and process.poll() is None:
                time.sleep(0.001)
            process.send_signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL
            before, kept = kept, answers(tmp_path / "killed" / "store.sqlite", tmp_path / f"copy{kill}")
            assert kept >= max(before, 1)
            before, twice = twice, len(server.sent) - len(set(server.sent))
            assert twice - before <= CONCURRENCY + UNCOMMITTED
        assert start(here, server, "killed").wait() == 0
        assert sorted(set(server.sent)) == needed
        assert len(server.sent) - len(needed) <= KILLS * (CONCURRENCY + UNCOMMITTED)
    killed, whole = merilo.Run.open(tmp_path / "killed"), merilo.Run.open(tmp_path / "whole")
    assert canonical(killed) == canonical(whole)
    assert killed.metrics["context_relevance"].failed == SAMPLES // 10
