"""The count of calls that measures the cost of a judged sample (benchmarks/sample_calls.py)."""

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"


def counted() -> float:
    """The calls of a sample, in a process of its own."""
    code = "import sample_calls; print(sample_calls.calls_of_a_sample((6, 18)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=BENCHMARKS, capture_output=True, text=True, check=True)
    return float(done.stdout)


def test_the_calls_of_a_sample_do_not_depend_on_the_load() -> None:
    """They are the same to 1 % beside processes that take every processor."""
    alone = counted()
    with ExitStack() as stack:
        for _ in range(os.cpu_count() or 1):
            busy = stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            stack.callback(busy.kill)
        assert abs(counted() / alone - 1) < 0.01
    assert 5_000 < alone < 15_000
