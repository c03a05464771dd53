"""The cost of a cached answer: verdicts per second from a warm cache, in a whole evaluation on one core."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from figures import report

if TYPE_CHECKING:
    from merilo.judging.questions import Question

SAMPLES = 3_000
CONTEXTS = 10
ROUNDS = 3
_WORDS = "the river was long and its banks were steep where it turned towards the old town of mills".split()


def rows() -> list[dict[str, Any]]:
    """Return samples that are all different, with ten contexts of 40 words, all different."""
    return [
        {
            "id": f"s{number}",
            "user_input": f"How long is river {number}?",
            "retrieved_contexts": [_context(number, place) for place in range(CONTEXTS)],
        }
        for number in range(SAMPLES)
    ]


def judge(question: Question[Any]) -> dict[str, Any]:
    """Answer that every context has its evidence in its first sentence."""
    del question
    return {"grade": 2, "evidence": [0], "reason": "It answers in its first sentence."}


def evaluate(out: Path, cache: Path) -> None:
    """Evaluate once, after a sample of another kind that triggers late imports; print CPU seconds and answers."""
    import merilo

    data, scripted = rows(), merilo.ScriptedJudge.by(judge, version="1")
    first = [{"user_input": "Who?", "retrieved_contexts": ["Nobody was there. Not one."]}]
    merilo.evaluate(
        first, metrics=["context_relevance"], judge=scripted, out=out.with_suffix(".first"), storage={"cache": False}
    )
    cpu = time.process_time()
    run = merilo.evaluate(data, metrics=["context_relevance"], judge=scripted, out=out, storage={"cache": cache})
    spent = time.process_time() - cpu
    if run.metrics["context_relevance"].mean != 1.0:
        raise SystemExit("verdicts are missing")
    print(json.dumps([spent, run.usage["cached"]]))


def main() -> None:
    """Print verdicts per CPU second, the best of several processes after the one that fills the cache."""
    verdicts = SAMPLES * CONTEXTS
    seconds: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(ROUNDS + 1):
            command = [sys.executable, __file__, str(Path(folder, str(turn))), str(Path(folder, "cache.sqlite"))]
            spent, cached = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
            if cached != (verdicts if turn else 0):
                raise SystemExit("verdicts are missing from the cache")
            seconds.append(spent)
    report("a cold cache filled, verdicts a CPU s", verdicts / seconds[0])
    report("a warm cache, verdicts a CPU s", verdicts / min(seconds[1:]), at_least=10_000)


def _context(number: int, place: int) -> str:
    words = [_WORDS[(number + place + at) % len(_WORDS)] for at in range(32)]
    return f"River {number} has a source {place} km away. {' '.join(words[:16])}. {' '.join(words[16:])}."


if __name__ == "__main__":
    if len(sys.argv) > 1:
        evaluate(Path(sys.argv[1]), Path(sys.argv[2]))
    else:
        main()
