"""Runs every benchmark in its own process, prints one line per figure, and fails if a limit is broken.

Limits are promises to users; figures depend on the machine, ratios much less.
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
    "concurrency.py",
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
    "report.py",
)
LONG = ("coverage.py", "diagnose.py", "judged_runs.py", "long_texts.py", "merge.py")
"""Minutes of CPU each: run only if named, as in `make bench ARGS="coverage.py gates"`, or by `ARGS=all`."""


def main() -> int:
    """Run all, or those named on the command line; return 1 if a limit is broken or a benchmark fails."""
    chosen = commands(sys.argv[1:])
    broken = 0
    print(f"{'figure':<58} {'measured':>12} {'limit':>12}")
    for name, *arguments in chosen:
        done = subprocess.run([sys.executable, HERE / name, *arguments], stdout=subprocess.PIPE, text=True, check=False)
        broken += done.returncode != 0
        for line in done.stdout.splitlines():
            figure = json.loads(line)
            broken += not figure["holds"]
            limit = f"{figure['sign']} {figure['limit']:g}" if figure["limit"] is not None else ""
            mark = "" if figure["holds"] else "  BROKEN"
            print(f"{figure['name']:<58} {figure['measured']:>12.4g} {limit:>12}{mark}", flush=True)
    return 1 if broken else 0


def commands(words: list[str]) -> list[list[str]]:
    """Return the scripts to run; words that are not the name of a script are arguments of the script before them."""
    if words in ([], ["all"]):
        return [[name] for name in (*BENCHMARKS, *(LONG if words else ()))]
    found: list[list[str]] = []
    for word in words:
        if word.endswith(".py") or not found:
            found.append([word])
        else:
            found[-1].append(word)
    return found


if __name__ == "__main__":
    sys.exit(main())
