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
from typing import Final

from merilo.judges.embedded import EmbeddedJudge
from merilo.version import version

ROOT: Final = Path(__file__).resolve().parents[1]
RESULTS: Final = ROOT / "benchmarks" / "results" / "embedded"
PAIRS: Final = "benchmarks/labels/minimal_pairs"
STEPS: Final = {
    "blind": ["python", "benchmarks/minimal_pairs.py", f"{PAIRS}/blind.jsonl"],
    "copied": ["python", "benchmarks/copied_sentences.py"],
    "stuffed": ["python", "benchmarks/stuffed_texts.py", "--seed", "2"],
    "speed": ["python", "benchmarks/embedded.py"],
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
        [sys.executable, *command[1:]],
        cwd=ROOT,
        env={**os.environ, "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"The step {step} failed with status {done.returncode}: {' '.join(command)}")
    seconds = time.monotonic() - began
    stored = {
        "command": " ".join(command),
        "seconds": round(seconds),
        "merilo": version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "model": dict(EmbeddedJudge().fingerprint()),
        "record": [json.loads(line) for line in done.stdout.splitlines()],
    }
    file.write_text(json.dumps(stored, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print(f"{step}: {seconds:,.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
