"""Memory is bounded by the window, not by the data: the peak of 1,000,000 samples compared with that of 10,000.

One metric, one question per sample, a scripted judge; each size in its own process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from figures import peak_mb, report

if TYPE_CHECKING:
    from collections.abc import Iterator

    from merilo.judging.questions import Question

SIZES = (10_000, 1_000_000)


def rows(samples: int) -> Iterator[dict[str, Any]]:
    """Yield samples that are all different, with one context of three sentences."""
    for number in range(samples):
        text = f"Number {number} is a number. It comes before {number + 1}. It is less than {number + 2}."
        yield {"id": str(number), "user_input": f"What is {number}?", "retrieved_contexts": [text]}


def judge(question: Question[Any]) -> dict[str, Any]:
    """Answer that every context has its evidence in its first sentence."""
    del question
    return {"grade": 2, "evidence": [0]}


def evaluate(samples: int, folder: Path) -> None:
    """Evaluate this number of samples in this process; print its peak in MB, and CPU ms per sample."""
    import merilo

    cpu = time.process_time()
    run = merilo.evaluate(
        rows(samples),
        metrics=["context_relevance"],
        judge=merilo.ScriptedJudge.by(judge, version="1"),
        out=folder / "run",
        storage={"cache": folder / "cache.sqlite"},
    )
    spent = time.process_time() - cpu
    if run.metrics["context_relevance"].scored != samples:
        raise SystemExit("samples are missing")
    print(json.dumps([peak_mb(), spent * 1000 / samples]))


def main() -> None:
    """Print the peaks and their ratio."""
    peaks: list[float] = []
    for samples in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, __file__, str(samples), folder]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        peak, cpu_ms = json.loads(done.stdout)
        peaks.append(peak)
        report(f"{samples:,} samples, peak memory, MB", peak)
        report(f"{samples:,} samples, CPU ms a sample", cpu_ms)
    report("peak of 1,000,000 samples / 10,000 samples", peaks[1] / peaks[0], at_most=1.25)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        evaluate(int(sys.argv[1]), Path(sys.argv[2]))
    else:
        main()
