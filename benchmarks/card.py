"""Measure the figures on the card of the embedded judge: python benchmarks/card.py [--only STEP ...]

Each step is one command. Its output is stored as benchmarks/results/embedded/STEP.json with the command, its seconds
and the fingerprint of the judge. `tools/card.py` makes the page from these files and from the model file, which
contains the agreement with human labels (`training/encoder/unseen.py` measures it).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from merilo.judges.embedded import EmbeddedJudge
from merilo.version import version

ROOT: Final = Path(__file__).resolve().parents[1]
RESULTS: Final = ROOT / "benchmarks" / "results" / "embedded"
LABELS: Final = "benchmarks/labels/dev"
PAIRS: Final = "benchmarks/labels/minimal_pairs"
MERILO: Final = "merilo"
NOT_SHOWN: Final = frozenset(
    {"accuracy", "ac1", "alpha", "annotators", "confusion", "grades", "systems_tau_b", "usage", "items"}
)
"""Figures of a check that the card does not use."""
STEPS: Final = {
    "blind": ["python", "benchmarks/minimal_pairs.py", f"{PAIRS}/blind.jsonl"],
    "controls": ["python", "benchmarks/minimal_pairs.py", f"{PAIRS}/controls.jsonl"],
    "pairs": ["python", "benchmarks/minimal_pairs.py", f"{PAIRS}/dev.jsonl"],
    "copied": ["python", "benchmarks/copied_sentences.py"],
    "stuffed": ["python", "benchmarks/stuffed_texts.py", "--seed", "2"],
    "languages": ["python", "benchmarks/languages.py"],
    "probe": [MERILO, "judge", "check", "--labels", LABELS, "--task", "edits", "--number", "400"],
    "speed": ["python", "benchmarks/embedded.py"],
    "encoder": ["python", "benchmarks/encoder.py"],
}
"""The command of each step."""


def main() -> None:
    """Run the steps and write their output."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[], metavar="STEP", choices=STEPS)
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="DIR")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    for step, command in STEPS.items():
        if not chosen.only or step in chosen.only:
            measure(step, command, chosen.out / f"{step}.json")


def measure(step: str, command: list[str], file: Path) -> None:
    """Run the command of a step and store its output. Raise SystemExit if it fails."""
    began = time.monotonic()
    done = subprocess.run(
        _runnable(command),
        cwd=ROOT,
        env={**os.environ, "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode not in _STATUSES.get(command[0], {0}):
        raise SystemExit(f"The step {step} failed with status {done.returncode}: {' '.join(command)}")
    seconds = time.monotonic() - began
    stored = {
        "command": " ".join(command),
        "seconds": round(seconds),
        "merilo": version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "model": dict(EmbeddedJudge().fingerprint()),
        "record": _shown(json.loads(done.stdout)) if command[0] == MERILO else _figures(done.stdout),
    }
    file.write_text(json.dumps(stored, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print(f"{step}: {seconds:,.0f} s", file=sys.stderr, flush=True)


_STATUSES: Final = {MERILO: {0, 1, 3}}
"""The exit codes of a command that printed its figures; a probe that fails is a result."""


def _runnable(command: list[str]) -> list[str]:
    program, *arguments = command
    if program != MERILO:
        return [sys.executable, *arguments]
    labels = [str(path) for path in sorted((ROOT / LABELS).glob("*.jsonl.gz")) if ".more." not in path.name]
    named = [word for path in labels for word in ("--labels", path)][1:]
    expanded = [each for argument in arguments for each in (named if argument == LABELS else [argument])]
    return [sys.executable, "-m", "merilo", *expanded, "--json", "--quiet"]


def _figures(printed: str) -> list[Any]:  # Any: parsed JSON
    """Return the output of a benchmark, one figure per line."""
    return [json.loads(line) for line in printed.splitlines()]


def _shown(value: Any) -> Any:  # Any: JSON in, JSON out
    if isinstance(value, dict):
        return {name: _shown(each) for name, each in value.items() if name not in NOT_SHOWN}
    return [*map(_shown, value)] if isinstance(value, list) else value


if __name__ == "__main__":
    main()
