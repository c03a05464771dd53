"""The losses and costs of a run whose judge fails: each kind of fault alone, the first time only, and all at once.

    python benchmarks/faults.py            one line per figure, with its limit
    python benchmarks/faults.py --table    the same as a table

The judge is a local server in another process. Each attempt has its fault sampled independently, so the server knows
the questions that no judge could have answered: those with as many bad replies in a row as there are attempts. Any
other failure is merilo's error, and so is any score that a fault changes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import math
import statistics
import sys
import tempfile
import time
import zlib
from dataclasses import dataclass, field, replace
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fault_server import ENLARGEMENTS, FAULTS, REASKS, TRANSPORT, Load, Tally, fault_server, tally_of
from figures import report
from throughput import bodies_of

import merilo
from merilo.engine.event_loop import loop_factory

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

SAMPLES = 4_000
SHARE = 0.05
OFTEN = 0.2
TOGETHER = 0.01
CONCURRENCY = 64
TIMEOUT_S = 2.0
SURE = 0.999
"""Probability with which chance alone may break a limit: once in a thousand."""
ONE = "context_relevance"
"""One question per sample."""
PACKED = "context_recall"
"""A list of statements and a pack of three questions per sample, in two requests."""
REPLIES = tuple(name for name in FAULTS if name not in {*TRANSPORT, "damaged", "refusal"})
"""Faults after which the judge is re-asked, in the same conversation or with a larger limit."""
TITLES = {
    "500": "status 500",
    "429": "status 429 with Retry-After",
    "reset": "connection reset",
    "hang": "hang",
    "damaged": "JSON that can be repaired",
    "malformed": "no JSON that can be read",
    "truncated": "reply cut off by length",
    "schema": "JSON of another schema",
    "missing": "pack with a verdict missing",
    "contradiction": "verdict that contradicts itself",
    "refusal": "refusal",
}


@dataclass(frozen=True)
class Case:
    """One run against a judge with these faults."""

    title: str
    faults: Mapping[str, float]
    metric: str = ONE
    first_only: bool = False
    most_requests: float | None = 1.10
    """The limit of requests / needed requests."""
    samples: int = SAMPLES
    concurrency: int | None = CONCURRENCY
    timeout_s: float | None = TIMEOUT_S
    load: Load = field(default=Load())

    @property
    def seed(self) -> int:
        """The seed; it follows from the title, so cases differ and none is chosen."""
        return zlib.crc32(self.title.encode())

    @property
    def lost_share(self) -> float:
        """The probability that a conversation fails.

        It fails after bad replies to all its turns, or if one turn of a list is truncated whatever its limit. A
        decision that contradicts its evidence counts if nothing better comes.
        """
        bad = {name: share for name, share in self.faults.items() if name in REPLIES and name != "contradiction"}
        if self.metric == ONE:
            return sum(bad.values()) ** (1 + REASKS)
        cut = bad.pop("truncated", 0.0)
        unreadable = sum(bad.values())
        enlarged = sum(cut**n for n in range(1 + ENLARGEMENTS))
        turns = [(unreadable * enlarged) ** n for n in range(2 + REASKS)]
        return turns[-1] + sum(turns[:-1]) * cut ** (1 + ENLARGEMENTS)

    @property
    def conversations(self) -> int:
        """The number of conversations that may be struck."""
        return 2 * SAMPLES if self.metric == PACKED and self.faults.keys() != {"missing"} else SAMPLES


@dataclass(frozen=True)
class Seen:
    """The results of a run."""

    values: Mapping[str, float]
    """The values of the samples that were scored."""
    failed: Mapping[str, str]
    """The kinds of failure of the samples that failed."""
    tally: Tally
    seconds: float


def cases() -> list[Case]:
    """Return all cases."""
    every = [name for name in FAULTS if name != "refusal"]
    useless = ("malformed", "schema", "contradiction")
    once = {"damaged", "refusal"}  # asked once, whatever comes
    return [
        *(
            Case(TITLES[name], {name: SHARE}, _metric(name), most_requests=1 if name in once else 1.10)
            for name in FAULTS
        ),
        *(
            Case(f"{TITLES[name]}, once", {name: SHARE}, _metric(name), first_only=True)
            for name in FAULTS
            if name not in once
        ),
        Case("all at 1 %", dict.fromkeys(every, TOGETHER), most_requests=1.15),
        Case("all at 1 %, packs", dict.fromkeys(every, TOGETHER), PACKED, most_requests=1.15),
        Case("replies of no use, 20 %", dict.fromkeys(useless, OFTEN / len(useless)), most_requests=None),
        Case("reply cut off by length, 20 %", {"truncated": OFTEN}, most_requests=None),
    ]


def _metric(fault: str) -> str:
    return PACKED if fault == "missing" else ONE


def rows(samples: int) -> list[dict[str, Any]]:
    """Return samples that are all different."""
    return [
        {
            "id": str(number),
            "user_input": f"How long is river {number}?",
            "retrieved_contexts": [f"River {number} is {number % 700 + 12} km long. Its banks are steep."],
            "reference": f"River {number} is {number % 700 + 12} km long.",
        }
        for number in range(samples)
    ]


def _server(case: Case) -> AbstractContextManager[str]:
    return fault_server(case.faults, seed=case.seed, first_only=case.first_only, load=case.load)


def _options(case: Case, address: str, folder: str) -> dict[str, Any]:
    return {
        "metrics": [case.metric],
        "judge": {"spec": "openai:bench", "base_url": address},
        "limits": {"concurrency": case.concurrency, "timeout_s": case.timeout_s},
        "out": Path(folder, "run"),
        "storage": {"cache": False},
    }


def seen(case: Case) -> Seen:
    """Return the results of one run."""
    with _server(case) as address, tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        run = merilo.evaluate(rows(case.samples), **_options(case, address, folder))
        seconds = time.perf_counter() - began
        records = list(run.records())
        values = {each["sample"]: each["value"] for each in records if each["outcome"] == "score"}
        failed = {each["sample"]: each["error"]["kind"] for each in records if each["outcome"] == "failed"}
        if len(records) != case.samples or len(values) + len(failed) != case.samples:
            raise SystemExit(f"{case.title}: samples without a score or a failure")
        return Seen(values, failed, tally_of(address), seconds)


@cache
def undisturbed(metric: str) -> Seen:
    """Return the results of the run without faults."""
    found = seen(Case("no fault", {}, metric))
    if found.failed or len(set(found.values.values())) < 3:
        raise SystemExit("the run without faults has failures, or scores that are too much alike to tell anything")
    return found


def at_random(share: float, trials: int) -> tuple[int, int]:
    """Return the range of a binomial count with a two-sided probability of `SURE` outside it."""
    total, low = 0.0, -1
    for count in range(trials + 1):
        logarithm = math.lgamma(trials + 1) - math.lgamma(count + 1) - math.lgamma(trials - count + 1)
        total += math.exp(logarithm + count * math.log(share) + (trials - count) * math.log1p(-share))
        if low < 0 and total > (1 - SURE) / 2:
            low = count
        if total >= (1 + SURE) / 2:
            return low, count
    return max(low, 0), trials


def judge_case(case: Case, found: Seen) -> tuple[int, int]:
    """Report the figures of one case; return the failures that chance does not explain, and the changed scores."""
    plain = undisturbed(case.metric)
    requests = found.tally.requests / plain.tally.requests
    report(f"{case.title}: requests / needed", requests, at_most=case.most_requests)
    if "refusal" in case.faults:
        other = sum(kind != "refused" for kind in found.failed.values())
        other += abs(len(found.failed) - found.tally.struck["refusal"]) + found.tally.requests - plain.tally.requests
        report(f"{case.title}: failed as refused", len(found.failed) - other, at_least=found.tally.lost)
    elif case.first_only or not case.lost_share:
        report(f"{case.title}: scored", len(found.values) / SAMPLES, at_least=1.0)
    else:
        low, high = at_random(case.lost_share, case.conversations)
        report(f"{case.title}: failed", len(found.failed), at_most=high)
        if low:
            report(f"{case.title}: failed, at the least", len(found.failed), at_least=low)
    report(f"{case.title}: wall s", found.seconds)
    differ = sum(value != plain.values[sample] for sample, value in found.values.items())
    return abs(len(found.failed) - found.tally.lost), differ


_REFUSING = Case("429", {}, samples=600, concurrency=32, timeout_s=None, load=Load(0.05, retry_after_ms=1_000))
WAITS = (
    (replace(_REFUSING, title="5 % of 429", faults={"429": SHARE}), 32),
    (replace(_REFUSING, title="16 of 32 at once", samples=320, load=replace(_REFUSING.load, at_once=16)), 16),
)
"""Servers that refuse, and the number of requests at once of the best client."""
LIMITED = (
    replace(_REFUSING, title="50 % of 429", faults={"429": 0.5}, samples=200, most_requests=2.2),
    replace(
        _REFUSING, title="10 a second", samples=100, most_requests=1.8, load=replace(_REFUSING.load, per_second=10)
    ),
)
LOST = replace(_REFUSING, title="1 % hang, once", faults={"hang": 0.01}, samples=400, first_only=True)


def _alone(address: str, bodies: list[bytes], at_once: int) -> None:
    """Post these bodies by aiohttp alone; a refused one again after the wait that its own answer names."""
    import aiohttp

    async def main() -> None:
        free = asyncio.Semaphore(at_once)

        async def post(body: bytes) -> None:
            while True:
                async with free, session.post(f"{address}/chat/completions", data=body) as response:
                    json.loads(await response.read())
                    if response.status == HTTPStatus.OK:
                        return
                await asyncio.sleep(int(response.headers["retry-after-ms"]) / 1000)

        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            await asyncio.gather(*map(post, bodies))

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(main())


def measure_waits(rounds: int = 3) -> None:
    """Report wall times at servers that refuse or hang, in turn with those of aiohttp alone, and the requests sent."""
    for case, at_once in WAITS:
        with fault_server() as address, tempfile.TemporaryDirectory() as folder:
            bodies = bodies_of(rows(case.samples), _options(case, address, folder))
        ours: list[float] = []
        alone: list[float] = []
        for _ in range(rounds):
            ours.append(seen(case).seconds)
            with _server(case) as address:
                began = time.perf_counter()
                _alone(address, bodies, at_once)
                alone.append(time.perf_counter() - began)
        wall, least = statistics.median(ours), statistics.median(alone)
        report(f"{case.title}: wall s", wall)
        report(f"{case.title}: wall s of aiohttp alone, {at_once} at once", least)
        report(f"{case.title}: wall / aiohttp alone", wall / least, at_most=1.5)
    for case in LIMITED:
        found = seen(case)
        report(f"{case.title}: wall s", found.seconds)
        report(f"{case.title}: requests / needed", found.tally.requests / case.samples, at_most=case.most_requests)
    found = seen(LOST)
    report(f"{LOST.title}: wall s", found.seconds, at_most=14)
    report(f"{LOST.title}: requests / needed", found.tally.requests / LOST.samples, at_most=1.03)


def main() -> None:
    """Run all cases."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", action="store_true", help="a table in Markdown in the place of figures")
    parser.add_argument("--waits", action="store_true", help="only the wall times at servers that refuse or hang")
    parser.add_argument("--only", help="cases whose title has this text")
    chosen = parser.parse_args()
    logging.getLogger("merilo").addHandler(logging.NullHandler())
    if chosen.waits:
        measure_waits()
        return
    wanted = [case for case in cases() if chosen.only is None or chosen.only in case.title]
    if chosen.table:
        _table(wanted)
        return
    unlucky, differ, early = 0, 0, 0
    for case in wanted:
        found = seen(case)
        more, moved = judge_case(case, found)
        unlucky, differ, early = unlucky + more, differ + moved, early + found.tally.too_early
    if chosen.only is None:
        measure_waits()
    report("faults: failures that luck does not explain", unlucky, at_most=0)
    report("faults: scores that differ from the undisturbed run", differ, at_most=0)
    report("faults: requests before the time that a 429 named", early, at_most=0)


def _table(wanted: list[Case]) -> None:
    print("| fault | requests / needed | scored | failed | luck alone |\n| --- | --- | --- | --- | --- |")
    for case in wanted:
        found, plain = seen(case), undisturbed(case.metric)
        share, luck = len(found.values) / SAMPLES, found.tally.lost
        requests = found.tally.requests / plain.tally.requests
        print(f"| {case.title} | {requests:.3f} | {share:.2%} | {len(found.failed)} | {luck} |")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
