"""Runs that find their concurrency, compared with the best fixed one, at servers that refuse or slow down.

    python benchmarks/concurrency.py

The judge is a local server in another process. Each run asks one question per sample. Both kinds of run alternate. The
refused requests are those of the one round that is too wide, and then one for each later try.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

from fault_server import Load
from faults import Case, seen
from figures import report

_ROUNDS = 2
_LATENCY_S = 0.2
_CASES = (
    *(
        (Load(_LATENCY_S, accepted, retry_after_ms=wait_ms), min(accepted, 128))
        for accepted, wait_ms in ((8, 0), (8, 1_000), (32, 0), (32, 1_000), (200, 0), (200, 1_000))
    ),
    (Load(_LATENCY_S, at_full_speed=32), 32),
)
"""Servers, and the best fixed concurrency at each."""


def main() -> None:
    """Report seconds and refusals of each case."""
    for load, best in _CASES:
        kind = f"slower above {load.at_full_speed:g}" if load.at_full_speed < inf else f"{load.at_once:g} accepted"
        title = f"{kind}, Retry-After {load.retry_after_ms} ms"
        case = Case(title, {}, samples=max(1_000, 64 * best), load=load, timeout_s=None)
        fixed, own = [], []
        for _ in range(_ROUNDS):
            fixed.append(seen(replace(case, concurrency=best)))
            own.append(seen(replace(case, concurrency=None)))
        least = min(each.seconds for each in fixed)
        seconds = min(each.seconds for each in own)
        report(f"{title}: wall s with --concurrency {best}", least)
        report(f"{title}: wall s", seconds)
        report(f"{title}: wall / best", seconds / least, at_most=1.2)
        tally = max((each.tally for each in own), key=lambda tally: tally.struck.get("429", 0) / tally.requests)
        report(f"{title}: refused", tally.struck.get("429", 0) / tally.requests, at_most=0.02)


if __name__ == "__main__":
    main()
