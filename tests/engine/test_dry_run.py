"""What `merilo.plan` says before anything is asked, held against what a run then really sends."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from each_case import each_case
from grouping import grouped
from server import Asked, JudgeServer, wrong_schema

import merilo
from merilo.commands.blocking import run_blocking
from merilo.commands.evaluate.options import Limits, Options
from merilo.commands.plan.run import _seconds, run_estimate
from merilo.engine.amounts import Amount
from merilo.judging.kinds.contexts import Mentions, Relevance, Sufficiency, Support, Usefulness
from merilo.judging.kinds.responses import (
    Addresses,
    Answered,
    Choice,
    Entities,
    Noncommittal,
    Parts,
    PassageQuestion,
    Statements,
)
from merilo.judging.questions import Question
from merilo.judging.reply_parsing import AskedForm, likely_reply, read_reply

METRICS = (
    "context_relevance",
    "context_precision",
    "context_precision(against=reference)",
    "context_recall",
    "context_sufficiency",
    "faithfulness",
    "noise_sensitivity",
    "answer_correctness",
)


def rows(number: int) -> list[dict[str, Any]]:
    """Samples that differ, but for one context that all share; every third has fewer contexts."""
    return [
        {
            "id": str(n),
            "user_input": f"How long is river {n}, and where does it rise?",
            "retrieved_contexts": [
                f"River {n} is {n} km long. It rises in the hills.",
                f"River {n} flows north. It is cold.",
                "Rivers flow.",
            ][: 3 - (n % 3 == 0)],
            "response": f"River {n} is {n} km long. It rises in the hills. It flows north.",
            "reference": f"It is {n} km long. River {n} rises in the hills.",
        }
        for n in range(number)
    ]


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer() as found:
        yield found


def arguments(server: JudgeServer, *metrics: str, **more: Any) -> dict[str, Any]:
    """What both verbs are given."""
    judge = {"judge": "openai:test-model", "base_url": server.base_url, "cache": False}
    return {"metrics": metrics or METRICS, **judge, **more}


def sent_tokens(server: JudgeServer) -> int:
    """Characters / 4, rounded up for each request, of messages and schema as the server got them."""
    found = 0
    for asked in server.asked:
        texts = [message["content"] for message in asked.body["messages"]]
        schema = json.dumps(asked.body["response_format"]["json_schema"]["schema"], separators=(",", ":"))
        found += -(-sum(map(len, [*texts, schema])) // 4)
    return found


@pytest.mark.parametrize("judged", ["together", "context", "each"])
def test_the_requests_are_those_of_the_run(server: JudgeServer, tmp_path: Path, judged: str) -> None:
    """Where verdicts are as guessed, the run sends the requests that were planned, and the tokens too."""
    given = arguments(server, judged=judged)
    planned = merilo.plan(rows(9), **grouped(**given))
    assert server.count == 0
    run = merilo.evaluate(rows(9), **grouped(out=tmp_path / "run", **given))
    assert not any(metric.failed for metric in run.metrics.values())
    assert planned.typical.requests == server.count == run.usage["requests"]
    assert planned.typical.input_tokens == sent_tokens(server)
    assert planned.samples == planned.looked_at == 9


def test_replies_are_about_as_long_as_planned(tmp_path: Path) -> None:
    """Output tokens are those of replies that give a reason of one sentence, as models write it."""
    reason = "The first sentence says how long the river is."

    def answer(asked: Asked) -> dict[str, Any] | None:
        decisions = {"relevance": {"grade": 1}, "support": {"label": "supported"}, "usefulness": {"useful": True}}
        if asked.kind not in decisions:
            return None
        return {"reason": reason, **decisions[asked.kind], "sentences" if asked.kind == "support" else "evidence": [1]}

    with JudgeServer(answer) as server:
        metrics = ("context_relevance", *METRICS[2:4])
        planned = merilo.plan(rows(5), **grouped(**arguments(server, *metrics)))
        usage = merilo.evaluate(rows(5), **grouped(out=tmp_path / "run", **arguments(server, *metrics))).usage
    assert planned.typical.output_tokens == pytest.approx(usage["output_tokens"], rel=0.1)


def test_shared_questions_count_once(server: JudgeServer) -> None:
    """What two metrics both ask is charged to the first; alone, each costs what a plan of it alone says."""
    names = ("context_relevance", "context_precision", "faithfulness")
    planned = merilo.plan(rows(6), **grouped(**arguments(server, *names)))
    first, second, third = planned.metrics
    assert second.added == Amount()
    assert second.alone == first.alone == first.added
    assert first.alone.requests == len({context for row in rows(6) for context in _asked(row)})
    assert third.alone.requests == third.added.requests > 0
    assert planned.typical.requests == first.added.requests + third.added.requests
    for each in planned.metrics:
        assert each.alone == merilo.plan(rows(6), **grouped(**arguments(server, each.metric))).typical


def _asked(row: dict[str, Any]) -> list[tuple[str, str]]:
    return [(row["user_input"], context) for context in row["retrieved_contexts"]]


def test_what_the_cache_holds_is_not_counted(server: JudgeServer, tmp_path: Path) -> None:
    """Another run's verdicts leave the count; the rest is what is really sent then."""
    given = arguments(server, cache=tmp_path / "cache.sqlite")
    merilo.evaluate(rows(4), **grouped(out=tmp_path / "a", **given))
    before = server.count
    planned = merilo.plan(rows(9), **grouped(**given))
    without = merilo.plan(rows(9), **grouped(**{**given, "cache": False}))
    assert server.count == before
    assert sum(each.held for each in planned.metrics) > 0
    assert sum(each.held for each in without.metrics) == 0
    merilo.evaluate(rows(9), **grouped(out=tmp_path / "b", **given))
    assert planned.typical.requests == server.count - before
    assert without.typical.requests > planned.typical.requests


def test_what_the_run_holds_is_not_counted(server: JudgeServer, tmp_path: Path) -> None:
    """A finished run costs nothing more; it is not touched."""
    given = arguments(server, out=tmp_path / "run")
    merilo.evaluate(rows(4), **grouped(**given))
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    planned = merilo.plan(rows(4), **grouped(**given))
    assert planned.typical == Amount()
    assert planned.seconds == 0.0
    assert all(each.held == each.questions > 0 for each in planned.metrics)
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before


def test_failures_count_when_they_are_asked_again(server: JudgeServer, tmp_path: Path) -> None:
    """A failure that the run holds stands, and costs only with retry_failed."""
    server.fail(wrong_schema(), share=0.6, seed=3)
    given = arguments(server, "context_relevance", out=tmp_path / "run")
    run = merilo.evaluate(rows(20), **grouped(**given))
    failed = run.metrics["context_relevance"].failed
    assert failed
    assert merilo.plan(rows(20), **grouped(**given)).typical.requests == 0
    again = merilo.plan(rows(20), **grouped(**given, retry_failed=True)).typical.requests
    assert failed <= again <= 3 * failed


def test_the_price_is_that_of_the_tokens(server: JudgeServer) -> None:
    """Price = tokens x price; a part without a known price makes the whole unknown, never 0."""
    prices = [{"model": "test-model", "input": 1.0, "output": 10.0}]
    priced = merilo.plan(rows(3), **grouped(prices=prices, **arguments(server))).typical
    assert priced.usd == pytest.approx((priced.input_tokens + 10 * priced.output_tokens) / 1e6)
    unknown = merilo.plan(rows(3), **grouped(**arguments(server)))
    assert unknown.typical.usd is None
    assert unknown.unpriced == (f"test-model at {server.base_url}",)


def test_no_key_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hosted model is planned without its key, at its list price."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    found = merilo.plan(rows(2), metrics=["faithfulness"], judge="openai:gpt-4.1-mini", storage={"cache": False})
    assert found.typical.usd is not None
    assert 0 < found.typical.usd < 0.01
    assert [price.model for price in found.prices] == ["gpt-4.1-mini"]
    assert found.unpriced == ()


def test_a_large_data_set_is_sampled(server: JudgeServer) -> None:
    """Every so many samples are looked at, and the amounts scaled up to all of them."""
    given = arguments(server, "context_sufficiency")
    whole = merilo.plan(rows(30), **grouped(**given))
    part = run_blocking(run_estimate(rows(30), Options(**grouped(**given)), sample=6))
    assert (part.samples, part.looked_at) == (30, 6)
    assert part.typical.requests == whole.typical.requests == 30
    assert part.typical.input_tokens == pytest.approx(whole.typical.input_tokens, rel=0.05)


def test_a_run_that_has_begun_measures_itself(server: JudgeServer, tmp_path: Path) -> None:
    """Tokens, re-asks and seconds of the questions to come are the means of those the run has asked."""
    given = arguments(server, "context_sufficiency", out=tmp_path / "run")
    server.fail(wrong_schema(), share=0.5, seed=5, first_attempt_only=True)
    usage = merilo.evaluate(rows(12), **grouped(**given)).usage
    planned = merilo.plan(rows(30), **grouped(concurrency=2, **given))
    assert planned.measured
    assert usage["requests"] > 12
    assert planned.typical.requests == pytest.approx(18 * usage["requests"] / 12)
    assert planned.typical.input_tokens == pytest.approx(18 * usage["input_tokens"] / 12)
    assert planned.typical.output_tokens == pytest.approx(18 * usage["output_tokens"] / 12)
    assert planned.typical.seconds is not None
    assert planned.seconds == pytest.approx(planned.typical.seconds / 2)
    assert not merilo.plan(rows(30), **grouped(**{**given, "out": None})).measured


def test_time_is_that_of_the_replies() -> None:
    """Time is that of all replies / concurrency, or what the rates allow; before the first reply nobody knows it."""
    typical = Amount(10, 4_000, 1_000, None, seconds=20.0)
    for limits, seconds in (
        (Limits(concurrency=4), 5.0),
        (Limits(concurrency=4, requests_per_minute=20), 30.0),
        (Limits(concurrency=4, tokens_per_minute=1_000), 300.0),
    ):
        assert _seconds(typical, Options(limits=limits)) == pytest.approx(seconds)
    assert _seconds(replace(typical, seconds=None), Options()) is None


def test_nothing_is_left_behind(server: JudgeServer, tmp_path: Path) -> None:
    """Neither a run nor a cache is made."""
    given = arguments(server, out=tmp_path / "run", cache=tmp_path / "cache.sqlite")
    merilo.plan(rows(2), **grouped(**given))
    assert list(tmp_path.iterdir()) == []


ASKED = (
    Relevance("Who?", ("One.", "Two.")),
    Usefulness("Who?", "Anna.", ("One.", "Two.")),
    Statements(("One.", "Two."), "Who?"),
    Support("Anna did.", ("One.", "Two.")),
    Sufficiency("Who?", ("One.", "Two.")),
    Addresses("Anna did.", "Who?"),
    Noncommittal("Who?", "No idea."),
    Parts("Who, and when?"),
    PassageQuestion("Anna did.", "Deeds"),
    Answered("Who was it?", ("One.", "Two."), "Who, and when?"),
    Entities(("One.", "Two.")),
    Mentions("Anna the First", ("One.", "Two.")),
    Choice("How warm is it?", ("icy", "mild"), ("below 0", ""), ("forecast",), ("It snows.",)),
)


@each_case("question", ASKED)
def test_likely_replies_can_be_read(question: Question[Any]) -> None:
    """The likely reply to a question that is asked in words reads as its guess."""
    form = AskedForm(sentences=tuple((text,) for text in getattr(question, "contexts", ())))
    assert read_reply(likely_reply(question), question, form).verdicts == (question.guess(),)
