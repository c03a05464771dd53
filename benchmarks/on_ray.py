"""A run on a local Ray cluster compared with a run in one process: results, killed workers, limits, memory and time.

    python benchmarks/on_ray.py --samples 2000 --judge server --workers 1 2 --kill 2
    python benchmarks/on_ray.py --samples 5000 --judge embedded --workers 1 2 --kill 2
    python benchmarks/on_ray.py --samples 4000 --judge server --workers 2 --rpm 2400
    python benchmarks/on_ray.py --samples 4000 --judge server --workers 2 --max-cost 0.05

Workers are killed (SIGKILL) at random times of the run with the most workers. The judge server counts requests and
tokens, and the largest number of them in any minute. Needs the extra `ray`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from figures import report
from judge_server import completion, framed, serve, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

_WORDS = "the river was long and its banks were steep where it turned towards the old town of mills".split()
_REPLY = json.dumps({"reason": "It answers in its first sentence.", "grade": 2, "evidence": [1]})
_PRICES = '[[price]]\nmodel = "bench"\ninput = 0.1\noutput = 0.4\n'
_WORKER = b"ray::MapWorker"
_TOLERANCE = 0.02


@dataclass
class Server:
    """Requests that the judge server answered: times and tokens."""

    times: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)

    def respond(self, request: bytes, transport: asyncio.Transport) -> None:
        """Answer a question; a GET with the counts, which start again."""
        if not request:
            body = {"requests": len(self.times), **self._rates(), "tokens": sum(self.tokens)}
            self.times, self.tokens = [], []
            transport.write(framed(json.dumps(body).encode()))
            return
        tokens_in = len(request) // 4
        self.times.append(time.monotonic())
        self.tokens.append(tokens_in + len(_REPLY) // 4)
        transport.write(framed(completion(_REPLY, tokens_in=tokens_in)))

    def _rates(self) -> dict[str, float]:
        """Return the largest numbers in any minute, and the mean rates per minute of the middle half of the run."""
        most = most_tokens = tokens = first = 0
        for last, at in enumerate(self.times):
            tokens += self.tokens[last]
            while self.times[first] <= at - 60:
                tokens -= self.tokens[first]
                first += 1
            most, most_tokens = max(most, last - first + 1), max(most_tokens, tokens)
        middle = slice(len(self.times) // 4, 3 * len(self.times) // 4)
        times, spent = self.times[middle], self.tokens[middle]
        minutes = (times[-1] - times[0]) / 60 if len(times) > 1 else 1.0
        mean, mean_tokens = len(times) / minutes, sum(spent) / minutes
        return {"most": most, "most_tokens": most_tokens, "mean": mean, "mean_tokens": mean_tokens}


@dataclass
class Watched:
    """What was seen of the workers of a run, from another thread."""

    driver: int
    kills: list[float]
    """Seconds after the first worker was seen."""
    killed: int = 0
    resident: dict[int, list[float]] = field(default_factory=dict)
    """Resident MB by process, once per second."""
    cpu_s: dict[int, float] = field(default_factory=dict)
    """CPU seconds by process, the last time that it was seen: the command (`driver`) and the workers."""
    over: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> None:
        """Sample the workers until the run is over; kill some."""
        began = None
        while not self.over.wait(1.0):
            found = {pid: mb for pid, mb in _workers() if self.driver in _parents(pid)}
            for pid in (self.driver, *found):
                self.cpu_s[pid] = max(_cpu_s(pid), self.cpu_s.get(pid, 0.0))
            for pid, mb in found.items():
                self.resident.setdefault(pid, []).append(mb)
            if found and began is None:
                began = time.monotonic()
            if found and self.kills and began is not None and time.monotonic() - began >= self.kills[0]:
                del self.kills[0]
                with contextlib.suppress(ProcessLookupError):
                    os.kill(random.choice([*found]), signal.SIGKILL)
                    self.killed += 1


def _workers() -> Iterator[tuple[int, float]]:
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            if (path / "cmdline").read_bytes().startswith(_WORKER):
                pages = int((path / "statm").read_text().split()[1])
                yield int(path.name), pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _cpu_s(pid: int) -> float:
    try:
        times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    except OSError:
        return 0.0
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def _parents(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        while pid > 1:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            found.append(pid)
    return found


def write_rows(path: Path, samples: int) -> None:
    """Write samples that are all different, each with one context of two sentences."""
    with path.open("w") as file:
        for number in range(samples):
            words = " ".join(_WORDS[(number + at) % len(_WORDS)] for at in range(24))
            text = f"River {number} has a source {number % 97} km away. {words[:1].upper()}{words[1:]}."
            row = {"id": str(number), "user_input": f"How long is river {number}?", "retrieved_contexts": [text]}
            file.write(json.dumps({**row, "response": f"River {number} is {number % 97} km long."}) + "\n")


def evaluate(command: list[str], out: Path, kills: list[float], *more: str) -> tuple[float, Watched, int]:
    """Run a command; return its seconds, what was seen of its workers, and its exit code."""
    began = time.monotonic()
    log = out.with_suffix(".log")
    with log.open("w") as file:
        process = subprocess.Popen(
            [*command, "--out", str(out), *more], stdout=file, stderr=file, env={**os.environ, "OPENAI_API_KEY": "x"}
        )
        watched = Watched(process.pid, kills)
        thread = threading.Thread(target=watched.watch)
        thread.start()
        code = process.wait()
    watched.over.set()
    thread.join()
    if code not in {0, 5}:
        raise RuntimeError(log.read_text()[-2000:])
    return time.monotonic() - began, watched, code


def growth_mb(resident: list[float]) -> float:
    """Return how much the second half of these sizes exceeds the second quarter, by their medians."""
    quarter = len(resident) // 4
    return statistics.median(resident[2 * quarter :]) - statistics.median(resident[quarter : 2 * quarter])


def counts(address: str | None) -> dict[str, Any]:
    """Return the counts of the server since the last call."""
    if address is None:
        return {}
    with urllib.request.urlopen(f"{address}/counts", timeout=60) as reply:  # noqa: S310  our own server
        found: dict[str, Any] = json.loads(reply.read())
    return found


def measure(chosen: argparse.Namespace, folder: Path, address: str | None) -> None:
    """Run in one process and on Ray, and print the figures."""
    data, prices = folder / "data.jsonl", folder / "prices.toml"
    write_rows(data, chosen.samples)
    prices.write_text(_PRICES)
    judge = ["embedded"] if address is None else ["openai:bench", "--base-url", address, "--prices", str(prices)]
    command = [sys.executable, "-m", "merilo", "run", str(data), "--metrics", "context_relevance", "--no-cache"]
    command += ["--quiet", "--judge", *judge]
    limits = [*(["--rpm", str(chosen.rpm)] if chosen.rpm else []), *(["--tpm", str(chosen.tpm)] if chosen.tpm else [])]
    limits += ["--max-cost", str(chosen.max_cost)] if chosen.max_cost else []
    limits += ["--max-requests", str(chosen.max_requests)] if chosen.max_requests else []
    name, one = f"{chosen.judge}, {chosen.samples:,} samples", folder / "one"
    alone_s = 0.0
    if not limits:
        alone_s, seen, _ = evaluate(command, one, [])
        counts(address)
        report(f"{name}: one process, s", round(alone_s, 1))
        report(f"{name}: one process, CPU s", round(sum(seen.cpu_s.values()), 1))
    for workers in chosen.workers:
        kills = chosen.kill if workers == max(chosen.workers) else 0
        expected = max(20.0, alone_s / workers)
        times = sorted(random.uniform(0.1, 0.8) * expected for _ in range(kills))
        out = folder / f"ray{workers}"
        more = ["--runner", "ray", "--workers", str(workers), *limits]
        seconds, seen, code = evaluate(command, out, times, *more)
        name = f"{chosen.judge}, {chosen.samples:,} samples, {workers} on Ray"
        report(f"{name}: s", round(seconds, 1))
        driver_s = seen.cpu_s.pop(seen.driver, 0.0)
        report(f"{name}: CPU s of the driver", round(driver_s, 1))
        report(f"{name}: CPU s of all workers", round(sum(seen.cpu_s.values()), 1))
        for pid, resident in seen.resident.items():
            if len(resident) >= 8:
                report(f"{name}: resident MB of worker {pid}, median", round(statistics.median(resident), 1))
                report(f"{name}: growth of its second half, MB", round(growth_mb(resident), 1))
        if kills:
            report(f"{name}: workers killed", seen.killed, at_least=kills)
        found = counts(address)
        if found and not limits:
            report(f"{name}: requests sent twice", found["requests"] - chosen.samples, at_most=(16 + 50) * seen.killed)
        if code == 0 and one.exists():
            for file in ("outcomes.jsonl", "summary.json"):
                same = (one / file).read_bytes() == (out / file).read_bytes()
                report(f"{name}: {file} equals that of one process", float(same), at_least=1.0)
        if limits:
            _report_limits(name, chosen, found)


def _report_limits(name: str, chosen: argparse.Namespace, found: dict[str, Any]) -> None:
    for limit, most, mean in (("rpm", "most", "mean"), ("tpm", "most_tokens", "mean_tokens")):
        value: float | None = getattr(chosen, limit)
        if value:
            report(f"{name}: largest minute / --{limit}", found[most] / value, at_most=1 + _TOLERANCE)
            report(f"{name}: mean / --{limit}", found[mean] / value, at_least=1 - _TOLERANCE)
    if chosen.max_requests:
        share = found["requests"] / chosen.max_requests
        report(f"{name}: requests / --max-requests", share, at_most=1.0)
        report(f"{name}: requests / --max-requests", share, at_least=1 - _TOLERANCE)
    if chosen.max_cost:
        tokens_out = found["requests"] * (len(_REPLY) // 4)
        spent = ((found["tokens"] - tokens_out) * 0.1 + tokens_out * 0.4) / 1e6
        report(f"{name}: spent / --max-cost", spent / chosen.max_cost, at_most=1.0)
        report(f"{name}: spent / --max-cost", spent / chosen.max_cost, at_least=1 - _TOLERANCE)


def main() -> None:
    """Read the arguments; serve, or measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=2_000)
    parser.add_argument("--judge", choices=("server", "embedded"), default="server")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--kill", type=int, default=0, help="workers to kill")
    parser.add_argument("--latency", type=float, default=0.02)
    for name, kind in (("rpm", float), ("tpm", float), ("max-cost", float), ("max-requests", int)):
        parser.add_argument(f"--{name}", type=kind)
    parser.add_argument("--serve", action="store_true", help="be the judge server")
    chosen = parser.parse_args()
    if chosen.serve:
        asyncio.run(serve(Server().respond, chosen.latency))
        return
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        address = None
        if chosen.judge == "server":
            address = stack.enter_context(serving("on_ray.py", ["--serve", "--latency", str(chosen.latency)]))
        measure(chosen, folder, address)


if __name__ == "__main__":
    main()
