"""CPU of one judge request in total, and how close a run comes to the limit of its judge.

1,000 samples of five contexts of 200 words, judged by four metrics through the OpenAI-compatible provider on a local
server in another process: ten requests a sample. The floor sends the same bodies by aiohttp alone, on the same kind of
event loop. Both run in turn; the smallest CPU times and the median wall times are compared.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from figures import report
from judge_server import judge_server

import merilo
from merilo.engine.event_loop import loop_factory
from merilo.providers.endpoint import Wire

if TYPE_CHECKING:
    from collections.abc import Coroutine

METRICS = ("context_relevance", "context_sufficiency", "faithfulness", "answer_relevancy")
CONTEXTS = 5
LATENCY_S, CONCURRENCY = 0.05, 64
_WORDS = "the river was long and its banks were steep where it turned towards the old town of mills and people".split()


def rows(samples: int) -> list[dict[str, Any]]:
    """Return samples that are all different, with contexts of ten sentences each."""
    return [
        {
            "id": str(number),
            "user_input": f"How long is river {number}?",
            "retrieved_contexts": [_context(number, place) for place in range(CONTEXTS)],
            "response": f"River {number} is long. It has {number} banks. The town is old.",
        }
        for number in range(samples)
    ]


def _context(number: int, place: int) -> str:
    starts = [number + place + 7 * sentence for sentence in range(10)]
    texts = [" ".join(_WORDS[(start + at) % len(_WORDS)] for at in range(15)) for start in starts]
    return " ".join(f"{text.capitalize()} of river {number} at mile {at} here." for at, text in enumerate(texts))


def options(address: str, folder: str, name: str, concurrency: int = CONCURRENCY) -> dict[str, Any]:
    """Return the options of an evaluation whose run and cache are new files in this folder."""
    return {
        "metrics": list(METRICS),
        "judge": {"spec": "openai:bench", "base_url": address},
        "limits": {"concurrency": concurrency},
        "out": Path(folder, name),
        "storage": {"cache": Path(folder, f"{name}.sqlite")},
    }


def _floor(address: str, bodies: list[bytes]) -> None:
    """Post these bodies by aiohttp alone."""
    import aiohttp

    async def main() -> None:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            waiting = iter(bodies)

            async def work() -> None:
                for body in waiting:
                    async with session.post(f"{address}/chat/completions", data=body) as response:
                        json.loads(await response.read())

            await asyncio.gather(*(work() for _ in range(CONCURRENCY)))

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(main())


def bodies_of(data: list[dict[str, Any]], chosen: dict[str, Any]) -> list[bytes]:
    """Return the bodies that a run with these options sends."""
    found: list[bytes] = []
    post = Wire.post

    def noted(self: Wire, path: str, body: bytes, **given: Any) -> Coroutine[Any, Any, Any]:
        found.append(body)
        return post(self, path, body, **given)

    with patch.object(Wire, "post", noted):
        merilo.evaluate(data, **chosen)
    return found


def main() -> None:
    """Print the CPU per request, and wall time compared with the floor and the ideal."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    data = rows(chosen.samples)
    ours: list[tuple[float, float]] = []
    floors: list[tuple[float, float]] = []
    with judge_server(LATENCY_S) as address, tempfile.TemporaryDirectory() as folder:
        bodies = bodies_of(data, options(address, folder, "noted"))
        for turn in range(chosen.rounds):
            began, cpu = time.perf_counter(), time.process_time()
            _floor(address, bodies)
            floors.append((time.perf_counter() - began, time.process_time() - cpu))
            began, cpu = time.perf_counter(), time.process_time()
            run = merilo.evaluate(data, **options(address, folder, str(turn)))
            ours.append((time.perf_counter() - began, time.process_time() - cpu))
            if any(each.scored != chosen.samples for each in run.metrics.values()):
                raise SystemExit("scores are missing")
            if run.usage["requests"] != len(bodies):
                raise SystemExit("requests are missing")
    requests = len(bodies)
    wall, floor_wall = (statistics.median(each for each, _ in times) for times in (ours, floors))
    cpu, floor_cpu = (min(each for _, each in times) for times in (ours, floors))
    title = f"{requests:,} requests, {LATENCY_S * 1000:.0f} ms x {CONCURRENCY}"
    report(f"{title}, CPU ms a request", cpu * 1000 / requests, at_most=0.5)
    report(f"{title}, CPU ms a request of aiohttp alone", floor_cpu * 1000 / requests)
    report(f"{title}, CPU / aiohttp alone", cpu / floor_cpu, at_most=2.5)
    report(f"{title}, wall s", wall)
    report(f"{title}, wall / aiohttp alone", wall / floor_wall, at_most=1.05)
    report(f"{title}, wall / ideal", wall / (requests * LATENCY_S / CONCURRENCY), at_most=1.15)


if __name__ == "__main__":
    main()
