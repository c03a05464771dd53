"""The count of calls that measures the cost of a judge request (benchmarks/request_calls.py)."""

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"


def counted() -> float:
    """The calls of a request, in a process of its own."""
    code = "import request_calls; print(request_calls.calls_of_a_request((6, 18)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=BENCHMARKS, capture_output=True, text=True, check=True)
    return float(done.stdout)


def test_the_calls_of_a_request_do_not_depend_on_the_load() -> None:
    """They are the same to 1 % beside processes that take every processor."""
    alone = counted()
    with ExitStack() as stack:
        for _ in range(os.cpu_count() or 1):
            busy = stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            stack.callback(busy.kill)
        assert abs(counted() / alone - 1) < 0.01
    assert 500 < alone < 1_500
