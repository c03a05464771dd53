"""Packing: which questions about one sample share a prompt of a chat model, and the requests of a run."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import Here
from grouping import grouped
from server import JudgeServer

import merilo


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer() as running:
        yield running


METRICS = ("context_relevance", "context_precision", "context_recall", "faithfulness")


def rows(count: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"s{n}",
            "user_input": f"How long is river {n}?",
            "retrieved_contexts": [f"River {n} is {n} km long. Fish live in it.", f"Town {n} has a market."],
            "response": f"River {n} is {n} km long. It flows through town {n}.",
            "reference": f"It is {n} km long. Town {n} lies at its end.",
        }
        for n in range(count)
    ]


def evaluated(server: JudgeServer, judged: str | None, **more: Any) -> merilo.Run:
    given = {"metrics": METRICS, "judge": "openai:test-model", "base_url": server.base_url, "cache": False}
    return merilo.evaluate(rows(6), **grouped(**given | {"judged": judged} | more))


@pytest.mark.parametrize(("judged", "requests"), [(None, 7), ("context", 7), ("together", 6), ("each", 9)])
def test_packing_decides_the_requests_and_no_verdict_of_an_independent_judge(
    server: JudgeServer, judged: str | None, requests: int, tmp_path: Path
) -> None:
    """Four metrics cost these requests per sample, planned and sent; scores are equal, and replies are read again."""
    run = evaluated(server, judged, out=tmp_path / "run")
    assert server.count == 6 * requests
    alone = evaluated(server, "each")
    assert [dict(each.outcomes) for each in run.samples] == [dict(each.outcomes) for each in alone.samples]
    found = Here(tmp_path).json("runs", "verify", "run", "--reread")["replay"]["reread"]
    assert (found["different"], found["unread"]) == (0, 0)
    assert found["read"] == 6 * 9


def test_draws_and_metrics_alone_share_answers(server: JudgeServer, tmp_path: Path) -> None:
    """Draws have separate prompts. Verdicts of a run with other metrics are used."""
    evaluated(server, None, draws=2)
    kinds = Counter(each.kind for each in server.asked)
    assert kinds == {"statements": 24, "noncommittal": 12, "support": 24, "relevance": 24}
    cache = tmp_path / "cache.sqlite"
    evaluated(server, None, cache=cache)
    before = server.count
    evaluated(server, None, metrics=("faithfulness",), cache=cache)
    evaluated(server, None, metrics=("context_recall",), cache=cache)
    assert server.count == before
