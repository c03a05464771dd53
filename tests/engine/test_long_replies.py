"""Replies far longer than is read: stored up to the limit, and read from the store as when they arrived."""

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from server import JudgeServer, says

import merilo
from merilo.commands.verify.replay import replay_run
from merilo.judging.json_extraction import MAX_REPLY_CHARACTERS
from merilo.runs.store import Store

LONG = "x" * 1_000_000
ROWS = [{"user_input": "Which city?", "retrieved_contexts": ["Paris is a city."], "response": "Paris."}]


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer() as running:
        yield running


def run_with(server: JudgeServer, metric: str, out: Path) -> merilo.Run:
    """A run that asks the server, whose replies are not cached."""
    return merilo.evaluate(
        ROWS,
        judge={"spec": "openai:m", "base_url": server.base_url},
        metrics=[metric],
        out=out,
        storage={"cache": False},
    )


def test_a_store_holds_no_more_of_a_reply_than_is_read(server: JudgeServer, tmp_path: Path) -> None:
    """Of three replies of 1,000,000 characters the run stores 400,000 each, with the length and digest of the whole."""
    server.fail_next(*[says(LONG)] * 3)
    run = run_with(server, "context_relevance", tmp_path / "run")
    assert (run.path / "store.sqlite").stat().st_size < 4 * MAX_REPLY_CHARACTERS
    store = Store.read(run.path / "store.sqlite")
    (key,) = store.keys()
    asked = store.asked(key)
    store.close()
    assert asked is not None
    whole = {"index": 0, "characters": len(LONG), "sha256": sha256(LONG.encode()).hexdigest()}
    assert [(len(reply["texts"][0]), reply["truncated"]) for reply in asked.replies] == [
        (MAX_REPLY_CHARACTERS, [whole])
    ] * 3
    (failure,) = [record["error"] for record in run.records()]
    assert "far too long" in failure["message"]


def test_a_long_reply_is_not_read_in_part(server: JudgeServer, tmp_path: Path) -> None:
    """A verdict at the beginning of a reply that is too long does not count; the re-ask gets one that does."""
    server.fail_next(says(lambda text: text + " " * 10 + LONG))
    run = run_with(server, "context_relevance", tmp_path / "run")
    assert server.count == 2
    assert [record["outcome"] for record in run.records()] == ["score"]


def test_stored_parts_of_long_replies_replay(server: JudgeServer, tmp_path: Path) -> None:
    """A run gives the same outcomes when a reply that was stored in part is read again."""
    server.fail_next(says(lambda text: text + LONG))
    judge = merilo.Model("openai:m", base_url=server.base_url)
    metrics, cache = ["context_relevance"], merilo.Storage(cache=False)
    run = merilo.evaluate(ROWS, metrics, judge=judge, out=tmp_path / "run", storage=cache)
    assert (run.path / "store.sqlite").stat().st_size < 2 * MAX_REPLY_CHARACTERS
    replayed = replay_run(run.path, reread=True)
    assert list(replayed.run.records()) == list(run.records())
    assert replayed.reread is not None
    assert (replayed.reread.read, replayed.reread.different) == (1, 0)


def test_a_completion_that_is_too_long_fails(server: JudgeServer, tmp_path: Path) -> None:
    """A published metric is not given the beginning of a reply as if it were the whole."""
    server.fail(says(LONG), share=1.0, seed=1)
    run = run_with(server, "nvidia:context_relevance", tmp_path / "run")
    (record,) = run.records()
    assert record["outcome"] == "failed"
    assert "1,000,000 characters; at most 400,000 are read" in json.dumps(record)
