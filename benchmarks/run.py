"""Runs every benchmark in a process of its own, prints one line a figure, and fails where a limit is broken.

Limits are those that users were promised; figures depend on the machine, ratios much less.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
BENCHMARKS = (
    "start.py",
    "sentences.py",
    "samples.py",
    "throughput.py",
    "warm_cache.py",
    "memory.py",
    "conclude.py",
    "encoder.py",
    "embedded.py",
    "said_back.py",
    "other_letters.py",
    "tokens.py",
    "faults.py",
    "kills.py",
)
LONG = ("coverage.py",)
"""Minutes of CPU each: only where they are named, `make bench ARGS=coverage.py`, or by `ARGS=all`."""


def main() -> int:
    """Run all, or those named on the command line; 1 when a limit is broken or a benchmark fails."""
    chosen = sys.argv[1:] or BENCHMARKS
    if chosen == ["all"]:
        chosen = (*BENCHMARKS, *LONG)
    broken = 0
    print(f"{'figure':<58} {'measured':>12} {'limit':>12}")
    for name in chosen:
        done = subprocess.run([sys.executable, HERE / name], stdout=subprocess.PIPE, text=True, check=False)
        broken += done.returncode != 0
        for line in done.stdout.splitlines():
            figure = json.loads(line)
            broken += not figure["holds"]
            limit = f"{figure['sign']} {figure['limit']:g}" if figure["limit"] is not None else ""
            mark = "" if figure["holds"] else "  BROKEN"
            print(f"{figure['name']:<58} {figure['measured']:>12.4g} {limit:>12}{mark}", flush=True)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
