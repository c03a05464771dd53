"""A run that is killed repeatedly without warning, and resumed by the same command each time.

    python benchmarks/kills.py

The judge is a local server in another process, which survives the kills. It identifies each request by its bytes, and
so counts requests that are paid twice; some questions never get a readable answer. One process in five is killed
while it starts, the others after a random number of requests or seconds. After each kill a copy of the run's store is
checked (with its write-ahead log, so that the run itself must recover). In the end the run must equal an
uninterrupted one.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fault_server import Load, fault_server, tally_of
from figures import report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Wait = Callable[[subprocess.Popen[bytes]], None]
    """Returns at the moment to kill the process, or when it has ended."""

CONCURRENCY = 16
UNCOMMITTED = 82
LATENCY_S = 0.02
STUBBORN = 0.03
SEED = 1
FILES = ("outcomes.jsonl", "manifest.json", "summary.json", "seal.json")
_STARTING = 0.2


@dataclass
class Killed:
    """Observations over the kills of one run."""

    kills: int = 0
    damaged: int = 0
    """Stores and caches that were damaged after a kill."""
    forgotten: int = 0
    """Answers that a store had after a kill and no longer had after the next one."""
    answers: list[int] = field(default_factory=list)
    """Answers in the store, after each kill."""
    twice: list[int] = field(default_factory=list)
    """Requests that had been sent before, in each life except the first."""


class Bench:
    """One data set, one command, and a directory for everything."""

    def __init__(self, folder: Path, samples: int, words: list[str], *, cache: bool) -> None:
        self.folder = folder
        self.data = folder / "data.jsonl"
        self.data.write_text("".join(json.dumps(_row(number)) + "\n" for number in range(samples)), encoding="utf-8")
        self.cache = folder / "cache.sqlite"
        self._words = [*words, "--max-failed", "1", "--quiet", *([] if cache else ["--no-cache"])]

    def start(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        """Start the command in its own process, writing the run of this name."""
        command = [sys.executable, "-m", "merilo", "run", str(self.data), *self._words, *words]
        return subprocess.Popen(
            [*command, "--out", str(self.folder / name)],
            env={**os.environ, "MERILO_CACHE": str(self.cache)},
            stdout=subprocess.DEVNULL,
        )

    def whole(self, name: str, *words: str) -> float:
        """Run until it finishes; return the seconds."""
        began = time.perf_counter()
        if self.start(name, *words).wait() != 0:
            raise SystemExit("the run did not come to its end")
        return time.perf_counter() - began

    def check(self, name: str, seen: Killed) -> None:
        """Inspect copies of the files that the kill left."""
        for path in (self.folder / name / "store.sqlite", self.cache):
            if not path.exists():
                continue
            with tempfile.TemporaryDirectory() as folder:
                for suffix in ("", "-wal"):
                    if (part := path.with_name(path.name + suffix)).exists():
                        shutil.copy(part, folder)
                with closing(sqlite3.connect(Path(folder, path.name))) as db:
                    seen.damaged += db.execute("PRAGMA integrity_check").fetchone() != ("ok",)
                    if path != self.cache:
                        seen.answers.append(_answers(db))
        before = max(seen.answers[:-1], default=0)
        seen.forgotten += max(0, before - seen.answers[-1]) if seen.answers else 0

    def live_and_die(self, name: str, kills: int, moments: Iterator[Wait], paid_twice: Callable[[], int]) -> Killed:
        """Start, kill and check, up to `kills` times, then let the run finish."""
        seen, before = Killed(), 0
        while seen.kills < kills:
            process = self.start(name)
            next(moments)(process)
            if process.poll() is not None:
                break
            process.send_signal(signal.SIGKILL)
            process.wait()
            seen.kills += 1
            self.check(name, seen)
            before, already = paid_twice(), before
            seen.twice.append(before - already)
        self.whole(name)
        seen.twice.append(paid_twice() - before)
        del seen.twice[0]
        return seen

    def differing(self, one: str, other: str) -> int:
        """Return the number of files that differ and must not."""
        pairs = ((self.folder / one / name, self.folder / other / name) for name in FILES)
        return sum(left.read_bytes() != right.read_bytes() for left, right in pairs)

    def failed(self, name: str) -> int:
        """Return the outcomes that failed."""
        told = json.loads((self.folder / name / "summary.json").read_text(encoding="utf-8"))
        return sum(metric["failed"] for metric in told["metrics"])


def _row(number: int) -> dict[str, object]:
    length = f"River {number} is {number % 700 + 12} km long."
    return {
        "id": str(number),
        "user_input": f"How long is river {number}?",
        "retrieved_contexts": [f"{length} Its banks are steep.", f"The town of mills lies on river {number}."],
        "response": f"{length} It is blue.",
        "reference": length,
    }


def _answers(db: sqlite3.Connection) -> int:
    try:
        return int(db.execute("SELECT count(*) FROM answers").fetchone()[0])
    except sqlite3.OperationalError:  # killed before its tables were made
        return 0


def _waiting(process: subprocess.Popen[bytes], pause_s: float, enough: Callable[[], bool]) -> None:
    while process.poll() is None and not enough():
        time.sleep(pause_s)


def after_seconds(start_s: float, mean_s: float, chance: random.Random) -> Iterator[Wait]:
    """Yield moments by the clock: some within the start, the others an exponential time after it."""
    while True:
        starting = chance.random() < _STARTING
        until = chance.uniform(0, start_s) if starting else start_s + chance.expovariate(1 / mean_s)

        def wait(process: subprocess.Popen[bytes], until: float = until) -> None:
            end = time.perf_counter() + until
            _waiting(process, 0.001, lambda: time.perf_counter() > end)

        yield wait


def after_requests(address: str, start_s: float, mean: float, chance: random.Random) -> Iterator[Wait]:
    """Yield moments by requests: some within the start, the others after an exponential number and up to 20 ms."""
    by_clock = after_seconds(start_s, 0.01, chance)
    while True:
        starting = chance.random() < _STARTING
        count, more_s = chance.expovariate(1 / mean), chance.uniform(0, 0.02)

        def wait(process: subprocess.Popen[bytes], count: float = count, more_s: float = more_s) -> None:
            enough = tally_of(address).requests + count
            _waiting(process, 0.005, lambda: tally_of(address).requests > enough)
            time.sleep(more_s)

        yield next(by_clock) if starting else wait


def over_http(kills: int, samples: int, *, cache: bool) -> None:
    """Test a judge behind an address, with failures."""
    title = f"{kills} kills, {'with' if cache else 'without'} cache"
    metrics = ["--metrics", "context_relevance,context_recall", "--concurrency", str(CONCURRENCY)]
    with tempfile.TemporaryDirectory() as name:
        with fault_server(stubborn=STUBBORN, load=Load(LATENCY_S)) as address:
            words = [*metrics, "--judge", "openai:bench", "--base-url", address]
            bench = Bench(Path(name), samples, words, cache=cache)
            start_s = bench.whole("start", "--limit", "1", "--no-cache")
            before = tally_of(address).requests
            bench.whole("whole")
            needed = tally_of(address)
        bench.cache.unlink(missing_ok=True)
        port = urlsplit(address).port or 0
        with fault_server(stubborn=STUBBORN, load=Load(LATENCY_S), port=port) as address:

            def paid_twice() -> int:
                told = tally_of(address)
                return told.requests - told.distinct

            moments = after_requests(address, start_s, needed.distinct / (1.3 * kills), random.Random(SEED))
            seen = bench.live_and_die("killed", kills, moments, paid_twice)
            asked = tally_of(address)
        if needed.requests - before != needed.distinct or not bench.failed("whole"):
            raise SystemExit("the uninterrupted run asked something twice, or nothing of it failed")
        _report(title, bench, seen, kills)
        bound = CONCURRENCY + UNCOMMITTED
        report(f"{title}: failed outcomes", bench.failed("killed"))
        report(f"{title}: requests not asked in one go", asked.distinct - needed.distinct, at_most=0)
        report(f"{title}: paid twice, most for a kill", max(seen.twice, default=0), at_most=bound)
        report(f"{title}: paid twice, mean of a kill", sum(seen.twice) / max(seen.kills, 1), at_most=bound)


def embedded(kills: int, samples: int) -> None:
    """Test the judge that runs in the process itself."""
    metrics = ["--metrics", "context_relevance,faithfulness,context_recall"]
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name), samples, metrics, cache=False)
        start_s = bench.whole("start", "--limit", "1")
        takes_s = bench.whole("whole") - start_s
        # Closer together than the run alone would need: the clock of the machine may rise behind the whole run.
        moments = after_seconds(start_s, takes_s / (2 * kills), random.Random(SEED))
        seen = bench.live_and_die("killed", kills, moments, lambda: 0)
        _report(f"{kills} kills, embedded judge", bench, seen, kills)


def _report(title: str, bench: Bench, seen: Killed, kills: int) -> None:
    report(f"{title}: survived", seen.kills, at_least=kills)
    report(f"{title}: answers kept at the last kill", seen.answers[-1])
    report(f"{title}: files that differ in the end", bench.differing("whole", "killed"), at_most=0)
    report(f"{title}: damaged files", seen.damaged, at_most=0)
    report(f"{title}: answers forgotten", seen.forgotten, at_most=0)


def main() -> None:
    """Run all three."""
    over_http(50, 2_500, cache=False)
    over_http(10, 800, cache=True)
    embedded(10, 600)


if __name__ == "__main__":
    main()
