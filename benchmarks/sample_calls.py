"""Calls of Python and C functions that one judged sample takes, counted by cProfile: a measure of CPU without a clock.

The samples, metrics and provider are those of `throughput.py`: ten requests a sample. The count is that of a run of 60
samples minus that of a run of 20, divided by 40, so that the start and the end of a run do not count. A count depends a
little on how many replies arrive together, so it is repeated until the two smallest differ by less than 0.5 %; the
smallest is printed. The load of the machine has no other effect.
"""

from __future__ import annotations

import asyncio
import cProfile
import pstats
import tempfile

from judge_server import judge_server
from throughput import options, rows

from merilo.commands.evaluate.distributed import run_anywhere
from merilo.commands.evaluate.options import Options
from merilo.commands.keywords import keyword_options

_CONCURRENCY = 32
_SIZES = (20, 60)
_MOST_TRIES = 6
_SAME = 1.005


def _counted(samples: int, address: str) -> int:
    """Return the calls of one run."""
    data = rows(samples)
    with tempfile.TemporaryDirectory() as folder:
        chosen = keyword_options(Options, options(address, folder, "run", _CONCURRENCY))
        profile = cProfile.Profile()
        profile.enable()
        try:  # without the loop that `merilo.evaluate` starts in another thread, which cProfile does not see
            run = asyncio.run(run_anywhere(data, chosen))
        finally:
            profile.disable()
        if any(each.scored != samples for each in run.metrics.values()):
            raise SystemExit("scores are missing")
        return pstats.Stats(profile).total_calls


def calls_of_a_sample(sizes: tuple[int, int] = _SIZES) -> float:
    """Return the calls that one more sample takes. `sizes`: the samples of the two runs that are compared."""
    found: list[float] = []
    few, many = sizes
    with judge_server(0.005) as address:
        _counted(3, address)  # imports and caches
        while len(found) < _MOST_TRIES and (len(found) < 2 or sorted(found)[1] > _SAME * min(found)):
            found.append((_counted(many, address) - _counted(few, address)) / (many - few))
    return min(found)


if __name__ == "__main__":
    print(round(calls_of_a_sample()))
