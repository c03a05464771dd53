"""Memory is bounded by the window of samples, not by the data."""

import subprocess
import sys

STREAM = """
import resource, sys, tempfile
from pathlib import Path
import merilo

def rows(count):
    for number in range(count):
        yield {"user_input": f"What is {number}?", "retrieved_contexts": [f"The number {number} is a number. " * 20]}

judge = merilo.ScriptedJudge.by(lambda _: {"grade": 2, "evidence": [0]}, version="1")
with tempfile.TemporaryDirectory() as folder:
    merilo.evaluate(
        rows(int(sys.argv[1])), metrics=["context_relevance"], judge=judge,
        out=Path(folder, "run"), storage={"cache": Path(folder, "cache.sqlite")},
    )
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def peak_mb(samples: int) -> int:
    done = subprocess.run([sys.executable, "-c", STREAM, str(samples)], capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_ten_times_the_samples_need_little_more_memory() -> None:
    """From 1,000 to 10,000 samples with 7 MB of text the peak grows by less than 25 MB, bounded caches included."""
    assert peak_mb(10_000) - peak_mb(1_000) < 25
