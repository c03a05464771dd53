"""The output format of benchmarks: one JSON line per figure, with its limit."""

from __future__ import annotations

import json
import resource
import subprocess
import sys


def report(name: str, measured: float, *, at_most: float | None = None, at_least: float | None = None) -> None:
    """Print one figure; it passes if it meets its limit, or has none."""
    holds = (at_most is None or measured <= at_most) and (at_least is None or measured >= at_least)
    limit = at_most if at_most is not None else at_least
    sign = "<=" if at_most is not None else ">="
    print(json.dumps({"name": name, "measured": measured, "limit": limit, "sign": sign, "holds": holds}), flush=True)


def cpu_s(command: list[str], *, runs: int = 5) -> float:
    """Return the median CPU time of a command, in seconds, over several runs after one that is not counted."""
    times = sorted(_cpu_once(command) for _ in range(runs + 1))
    return times[len(times) // 2]


def python(code: str) -> list[str]:
    """Return the command that runs this code."""
    return [sys.executable, "-c", code]


def peak_mb() -> float:
    """Return the largest resident size of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _cpu_once(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
