"""CPU of one judge request in total, and how close a run comes to the limit of its judge.

1,000 samples of ten contexts, one relevance question each, through the OpenAI-compatible provider to a local server
in another process. The floor sends as many requests of the same size by aiohttp alone. They run in turn, and the
medians are compared.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from figures import report
from judge_server import judge_server

import merilo
from merilo.data.sample import Sample
from merilo.judging.kinds.relevance import Relevance
from merilo.judging.reply_parsing import schema_for
from merilo.judging.rubric import render

CONTEXTS = 10
CASES = ((0.05, 64), (0.5, 256))
_WORDS = "the river was long and its banks were steep where it turned towards the old town of mills".split()


def rows(samples: int) -> list[dict[str, Any]]:
    """Return samples that are all different, with ten contexts of 40 words, all different."""
    return [
        {
            "id": str(number),
            "user_input": f"How long is river {number}?",
            "retrieved_contexts": [_context(number, place) for place in range(CONTEXTS)],
        }
        for number in range(samples)
    ]


def _context(number: int, place: int) -> str:
    words = [_WORDS[(number + place + at) % len(_WORDS)] for at in range(32)]
    return f"River {number} has a source {place} km away. {' '.join(words[:16])}. {' '.join(words[16:])}."


def _floor(address: str, bodies: list[bytes], concurrency: int) -> float:
    """Return the seconds for posting these bodies by aiohttp alone."""
    import aiohttp

    async def main() -> float:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            waiting = iter(bodies)

            async def work() -> None:
                for body in waiting:
                    async with session.post(f"{address}/chat/completions", data=body) as response:
                        json.loads(await response.read())

            began = time.perf_counter()
            await asyncio.gather(*(work() for _ in range(concurrency)))
            return time.perf_counter() - began

    return asyncio.run(main())


def _bodies(samples: int) -> list[bytes]:
    found = []
    for row in rows(samples):
        sample = Sample(**row)
        for context in sample.contexts:
            text = render(Relevance(row["user_input"], context.sentences))
            messages = [{"role": "system", "content": text.system}, {"role": "user", "content": text.user}]
            form = {"type": "json_schema", "json_schema": {"name": "relevance", "schema": schema_for("relevance")}}
            found.append(json.dumps({"model": "m", "messages": messages, "response_format": form}).encode())
    return found


def main() -> None:
    """Print the CPU per request, and wall time compared with the floor and the ideal."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    data, bodies = rows(chosen.samples), _bodies(chosen.samples)
    requests = len(bodies)
    for latency_s, concurrency in CASES:
        ours, floors, cpus, floor_cpus = [], [], [], []
        with judge_server(latency_s) as address, tempfile.TemporaryDirectory() as folder:
            for turn in range(chosen.rounds):
                cpu = time.process_time()
                floors.append(_floor(address, bodies, concurrency))
                floor_cpus.append(time.process_time() - cpu)
                began, cpu = time.perf_counter(), time.process_time()
                run = merilo.evaluate(
                    data,
                    metrics=["context_relevance"],
                    judge={"spec": "openai:bench", "base_url": address},
                    limits={"concurrency": concurrency},
                    out=Path(folder, str(turn)),
                    storage={"cache": Path(folder, f"{turn}.sqlite")},
                )
                ours.append(time.perf_counter() - began)
                cpus.append(time.process_time() - cpu)
                if run.metrics["context_relevance"].mean != 1.0 or run.usage["requests"] != requests:
                    raise SystemExit("requests are missing")
        ideal = requests * latency_s / concurrency
        title = f"{requests:,} requests, {latency_s * 1000:.0f} ms x {concurrency}"
        report(f"{title}, CPU ms a request", min(cpus) * 1000 / requests, at_most=0.5)
        report(f"{title}, CPU ms a request of aiohttp alone", min(floor_cpus) * 1000 / requests)
        report(f"{title}, wall s", statistics.median(ours))
        report(f"{title}, wall / aiohttp alone", statistics.median(ours) / statistics.median(floors), at_most=1.05)
        report(f"{title}, wall / ideal", statistics.median(ours) / ideal, at_most=1.15)


if __name__ == "__main__":
    main()
