"""100,000 samples, one metric, one question each, a scripted judge: time and memory, first and from a warm cache."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from figures import peak_mb, report

import merilo

if TYPE_CHECKING:
    from collections.abc import Iterator

    from merilo.judging.questions import Question

SAMPLES = 100_000


def rows() -> Iterator[dict[str, Any]]:
    """Yield samples that are all different, with one context of five sentences."""
    for number in range(SAMPLES):
        text = f"The number {number} is a number. " * 5
        yield {"id": str(number), "user_input": f"What is {number}?", "retrieved_contexts": [text]}


def judge(question: Question[Any]) -> dict[str, Any]:
    """Answer that every context has its evidence in its first sentence."""
    del question
    return {"grade": 2, "evidence": [0]}


def main() -> None:
    """Print seconds and CPU per sample, and the peak of memory."""
    scripted = merilo.ScriptedJudge.by(judge, version="1")
    with tempfile.TemporaryDirectory() as folder:
        for title, out in (("first run", "a"), ("from a warm cache", "b")):
            began, cpu = time.perf_counter(), time.process_time()
            run = merilo.evaluate(
                rows(),
                metrics=["context_relevance"],
                judge=scripted,
                out=Path(folder, out),
                storage={"cache": Path(folder, "cache.sqlite")},
            )
            if run.metrics["context_relevance"].scored != SAMPLES:
                raise SystemExit("samples are missing")
            report(f"100,000 samples, {title}, wall s", time.perf_counter() - began)
            report(f"100,000 samples, {title}, CPU ms a sample", (time.process_time() - cpu) * 1000 / SAMPLES)
    report("100,000 samples, peak memory, MB", peak_mb(), at_most=300)


if __name__ == "__main__":
    main()
