"""Limits of a run: money, requests and seconds end a call cleanly, and a call with a higher limit resumes it."""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from each_case import each_case
from grouping import grouped
from judged_rivers import Evaluate, canonical, rows, verdict_for
from server import Fault, JudgeServer, bare, malformed, rate_limited, truncated

import merilo
from merilo.commands.blocking import run_blocking
from merilo.commands.check.options import CheckOptions
from merilo.commands.check.run import run_check
from merilo.engine.amounts import Settled
from merilo.engine.budget import Budget, BudgetDecision, Reached, Spending
from merilo.errors import RateLimited
from merilo.judges.llm import LLMJudge
from merilo.judging.questions import Question
from merilo.providers.base import Usage
from merilo.providers.openai import OpenAIProvider
from merilo.providers.prices import prices_from
from merilo.runs.ledger import Charge

Counting = Callable[[Mapping[str, Any]], tuple[int, int]]

METRIC = "context_relevance"
NOTHING = Charge(0, 0, 0.0)
REPORTED = Settled(Usage(1, 1), estimated=False, input_estimated=False)
PROVIDER = OpenAIProvider("m", base_url="http://127.0.0.1:1/v1")
PRICES = [{"model": "m", "input": 1_000.0, "output": 1_000.0}]  # a tenth of a cent a token


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer() as running:
        yield running


@pytest.fixture
def options(server: JudgeServer, tmp_path: Path) -> dict[str, Any]:
    return {"judge": "openai:m", "base_url": server.base_url, "metrics": [METRIC], "out": tmp_path / "r"}


def test_so_many_requests_and_no_more(evaluated: Evaluate, server: JudgeServer, options: dict[str, Any]) -> None:
    """A run sends exactly max_requests requests, keeps every reply, and reports what ended it."""
    run = evaluated(rows(30), max_requests=25, **options)
    assert server.count == 25
    assert not run.complete
    assert run.usage["requests"] == 25
    assert run.usage["stopped"].startswith(
        "Limit of 25 requests reached (--max-requests): 25 sent in this run directory so far. "
        "Raise --max-requests to continue."
    )
    assert f" {run.metrics[METRIC].scored} of 30 samples are done." in run.usage["stopped"]


def test_calls_resume_where_the_last_one_stopped(
    evaluated: Evaluate, server: JudgeServer, options: dict[str, Any], tmp_path: Path
) -> None:
    """A limit counts the whole directory: raised again and again, the run ends with the bytes of an unlimited one."""
    whole = evaluated(rows(12), **{**options, "out": tmp_path / "whole"})
    needed, calls = server.count, 0
    while calls < 20:
        calls += 1
        run = evaluated(rows(12), max_requests=7 * calls, **options)
        assert server.count - needed == min(needed, 7 * calls)
        if run.complete:
            break
        assert not evaluated(rows(12), max_requests=7 * calls, **options).complete
    assert server.count == 2 * needed
    assert calls == -(-needed // 7)
    assert run.usage["stopped"] is None
    assert canonical(run) == canonical(whole)


@pytest.mark.parametrize("fault", [truncated(), malformed()])
@pytest.mark.parametrize("most", [1, 3])
def test_replies_that_ask_for_more_are_kept(evaluated: Evaluate, tmp_path: Path, fault: Fault, most: int) -> None:
    """A question whose reply was cut off or unreadable goes on from there in the next call; nothing is paid twice."""
    counts, runs = [], []
    for limit in (None, most):
        with JudgeServer() as server:
            server.fail(fault, share=0.4, seed=3)
            for call in range(1, 101):
                run = evaluated(
                    rows(6),
                    judge="openai:m",
                    base_url=server.base_url,
                    metrics=[METRIC],
                    out=tmp_path / str(limit),
                    max_requests=None if limit is None else limit * call,
                    prices=PRICES,
                )
                if run.complete:
                    break
            counts.append(server.count)
            runs.append(run)
    assert server.given[fault.name] > 3
    assert counts[0] == counts[1]
    assert (runs[0].path / "summary.json").read_bytes() == (runs[1].path / "summary.json").read_bytes()
    for name in ("requests", "input_tokens", "output_tokens"):
        assert runs[0].usage[name] == runs[1].usage[name]
    assert runs[0].usage["cost_usd"] == pytest.approx(runs[1].usage["cost_usd"])


@pytest.mark.parametrize("most", [1, 2])
def test_requests_side_by_side_are_kept_one_by_one(
    evaluated: Evaluate, server: JudgeServer, options: dict[str, Any], tmp_path: Path, most: int
) -> None:
    """Where a server gives one draw at a time, each that came is kept, and only the others are asked for again."""
    server.refuse("n")
    options = {**options, "metrics": ["ragas-0.4.3:answer_relevancy"]}
    whole = evaluated(rows(2), **{**options, "out": tmp_path / "whole"})
    needed, refused = server.count, server.given["status 400"]
    sent, asked = [], 0
    for call in range(1, 21):
        run = evaluated(rows(2), max_requests=most * call, **options)
        sent.append(run.usage["requests"] - asked)
        asked = run.usage["requests"]
        if run.complete:
            break
    assert run.complete
    assert whole.usage["requests"] == needed
    assert asked == server.count - needed
    assert asked - (server.given["status 400"] - refused) == needed - refused > 4
    assert max(sent) <= most
    assert canonical(run) == canonical(whole)


def test_what_a_stopped_call_paid_is_counted(evaluated: Evaluate, server: JudgeServer, options: dict[str, Any]) -> None:
    """Also replies that cannot be read stand in the usage of a run that is not done."""
    server.fail(truncated())
    run = evaluated(rows(6), max_requests=3, concurrency=1, prices=PRICES, **options)
    assert run.usage["requests"] == server.count == 3
    assert run.usage["cost_usd"] > 0


def characters(body: Mapping[str, Any]) -> tuple[int, int]:
    """A quarter of a token a character, and short replies."""
    return len(texts(body)) // 4, 20


def to_the_brim(body: Mapping[str, Any]) -> tuple[int, int]:
    """A token a byte, something around it, and every reply as long as it may be."""
    return len(texts(body).encode()) + 300, body["max_tokens"]


def past_the_brim(body: Mapping[str, Any]) -> tuple[int, int]:
    """Twice as much as can be."""
    read, written = to_the_brim(body)
    return 2 * read, 2 * written


def surprising(body: Mapping[str, Any]) -> tuple[int, int]:
    """Cheap at first, then a token a byte."""
    return to_the_brim(body) if "River 9" in texts(body) else characters(body)


def texts(body: Mapping[str, Any]) -> str:
    return "".join(message["content"] for message in body["messages"])


@pytest.mark.parametrize("counting", [characters, to_the_brim, surprising])
@pytest.mark.parametrize(("concurrency", "most"), [(1, 10.0), (8, 60.0), (64, 60.0)])
def test_money_is_never_overspent(
    evaluated: Evaluate, server: JudgeServer, options: dict[str, Any], counting: Counting, concurrency: int, most: float
) -> None:
    """A call costs no more than max_cost_usd however a server counts, and leaves less than one request can cost."""
    server.counting = counting
    run = evaluated(rows(200), max_cost_usd=most, prices=PRICES, concurrency=concurrency, **options)
    spent, said = run.usage["cost_usd"], run.usage["stopped"]
    assert not run.complete
    assert spent <= most
    told = re.fullmatch(
        r"Cost limit of \$(\S+) reached \(--max-cost\): \$(\S+) spent in this run directory so far; "
        r"the next request can cost up to \$(\S+)\. Raise --max-cost to at least \$(\S+) to continue\. "
        r"\d+ of 200 samples are done\.",
        said,
    )
    assert told is not None
    limit, so_far, following, needed = map(float, told.groups())
    assert limit == most
    assert so_far == pytest.approx(spent, abs=1e-4)
    assert needed == pytest.approx(spent + following, abs=1e-4)
    assert needed > most


def test_a_server_that_takes_more_than_can_be_is_believed(
    evaluated: Evaluate, server: JudgeServer, options: dict[str, Any]
) -> None:
    """Reports of more tokens than bytes, and of replies over their limit, raise what is reserved from then on."""
    server.counting = past_the_brim
    run = evaluated(rows(40), max_cost_usd=60.0, prices=PRICES, concurrency=1, **options)
    assert not run.complete
    assert 30.0 < run.usage["cost_usd"] <= 60.0


def test_too_little_money_is_told_before_it_is_spent(
    evaluated: Evaluate, server: JudgeServer, options: dict[str, Any]
) -> None:
    """A limit below what the first request can cost sends nothing and says how much that is."""
    prices = [{"model": "m", "input": 0.1, "output": 0.4}]
    run = evaluated(rows(3), max_cost_usd=0.0000001, prices=prices, **options)
    assert server.count == 0
    said = (
        r"Cost limit of \$0\.0000001 reached .*: \$0\.00 spent .*; the next request can cost up to \$0\.00\d+\. Raise"
    )
    assert re.match(said, run.usage["stopped"])


def test_a_price_must_be_known(
    evaluated: Evaluate, server: JudgeServer, options: dict[str, Any], tmp_path: Path
) -> None:
    """A cost limit with a model of unknown price is refused before anything is created or sent."""
    with pytest.raises(merilo.UsageError, match=r"The price of openai:m is unknown, .*--max-cost.*--prices"):
        evaluated(rows(3), max_cost_usd=1.0, **options)
    assert server.count == 0
    assert not (tmp_path / "r").exists()


def test_a_callable_of_unknown_cost_is_refused(evaluated: Evaluate) -> None:
    """So it is for a callable, of which nobody can say what it spends."""

    async def judge(question: Question[Any]) -> dict[str, Any]:
        return verdict_for(question)

    with pytest.raises(merilo.UsageError, match="is unknown"):
        evaluated(rows(3), judge=judge, max_cost_usd=1.0)


def test_time_is_a_limit(evaluated: Evaluate, server: JudgeServer, options: dict[str, Any]) -> None:
    """After max_seconds no request is begun, what is in the air lands, and the run can be resumed."""
    server._delay_s = 0.1
    run = evaluated(rows(200), max_seconds=0.5, concurrency=4, **options)
    assert not run.complete
    assert run.usage["requests"] == server.count
    assert run.usage["stopped"].startswith("Time limit of 0.5 s reached (--max-seconds).")
    server._delay_s = 0.0
    assert evaluated(rows(200), **options).complete


def test_a_pause_does_not_outlast_the_time(evaluated: Evaluate, server: JudgeServer, options: dict[str, Any]) -> None:
    """A run that waits for a paused endpoint ends when its time is up."""
    server.fail(rate_limited("300"))
    began = time.monotonic()
    assert not evaluated(rows(5), max_seconds=0.5, **options).complete
    assert time.monotonic() - began < 250


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_cost_usd": -1},
        {"max_requests": -1},
        {"max_seconds": float("nan")},
        {"max_cost_usd": float("inf")},
        {"max_cost_usd": "5"},
        {"max_cost_usd": 10**400},
        {"max_requests": True},
        {"unanswered": "paid"},
    ],
)
def test_negative_limits_are_refused(evaluated: Evaluate, wrong: dict[str, Any]) -> None:
    """A limit below 0, an infinite one, and one that is not a number are usage errors."""
    with pytest.raises(merilo.UsageError, match=next(iter(wrong))):
        evaluated(rows(1), **wrong)


def test_input_that_is_kept_may_cost_more() -> None:
    """A request is taken to be written to the provider's prompt cache where that costs more, and only there."""
    provider = OpenAIProvider("m", base_url="http://127.0.0.1:1/v1")
    for written_usd, most_usd in ((2.0, 3.0), (0.5, 2.0)):
        row = {"model": "m", "input": 1.0, "output": 1.0, "cache_write": written_usd}
        spending = Spending(Budget(max_cost_usd=9.0), prices_from([row]).usd)
        assert spending.max_cost_usd(provider, Usage(1_000_000, 1_000_000, 0)) == pytest.approx(most_usd)


def test_money_set_aside_may_come_back() -> None:
    """A request that does not fit beside those in the air may fit when they turn out cheaper; alone it is too dear."""
    costs = iter((0.3, 0.6))
    spending = Spending(Budget(max_cost_usd=1.0), lambda *_: next(costs))
    assert spending.check(0.6) is None
    entry = spending.begin(0.6, NOTHING)
    assert spending.check(0.6) == BudgetDecision.LATER
    spending.replied(entry, 0.6, PROVIDER, REPORTED)
    assert spending.check(0.6) is None
    entry = spending.begin(0.6, NOTHING)
    spending.replied(entry, 0.6, PROVIDER, REPORTED)
    assert spending.check(0.6) == BudgetDecision.EXPENSIVE
    sentence = spending.cost_reached(0.6).sentence
    assert "$0.90 spent in this run directory so far; the next request can cost up to $0.60." in sentence
    assert "Raise --max-cost to at least $1.50 to continue." in sentence


def test_nothing_is_aside_when_nothing_is_in_the_air() -> None:
    """However sums are rounded, a run never waits for money that nobody holds."""
    spending = Spending(Budget(max_cost_usd=1e12), lambda *_: 1.0)
    amounts = [1e11 / 3 + number / 7 for number in range(64)]
    entries = [spending.begin(amount, NOTHING) for amount in amounts]
    for entry, amount in zip(reversed(entries), reversed(amounts), strict=True):
        spending.failed(entry, amount, RateLimited("slow down", status=429))
    assert spending.check(1e12) is None


def test_what_is_cost_reached_is_passed_over(
    evaluated: Evaluate, server: JudgeServer, options: dict[str, Any], tmp_path: Path
) -> None:
    """A question that alone could pass the limit is left for later; all others are asked, and the run says why."""
    data = rows(12)
    data[1] = {**data[1], "retrieved_contexts": ["The river is long. " * 2_000]}
    whole = evaluated(data, **{**options, "out": tmp_path / "whole"})
    asked = server.count
    run = evaluated(data, max_cost_usd=40.0, prices=PRICES, cache=False, **options)
    assert server.count - asked == asked - 1
    assert not run.complete
    assert re.search(r"the next request can cost up to \$5\d\.", run.usage["stopped"])
    run = evaluated(data, max_cost_usd=run.usage["cost_usd"] + 60.0, prices=PRICES, cache=False, **options)
    assert server.count == 2 * asked
    assert canonical(run) == canonical(whole)


def test_a_judge_that_is_checked_keeps_one_limit(server: JudgeServer, tmp_path: Path) -> None:
    """One limit counts over all tasks and sources of a check, and over all calls on its directory."""
    verdict = json.dumps({"reason": "", "grade": 0, "evidence": []})
    server.fail(bare(json.dumps({"choices": [{"message": {"content": verdict}}]})))
    judge = LLMJudge(OpenAIProvider("m", base_url=server.base_url))
    arguments: dict[str, Any] = {"judge": judge, "prices": PRICES, "cache": False, "number": 1, "out": tmp_path / "c"}
    options = CheckOptions(**grouped(**arguments, max_cost_usd=12.0))
    check = run_blocking(run_check(options))
    asked = server.count
    spent = check.usage["cost_usd"]
    assert check.stopped is not None
    assert asked > 3
    assert 6.0 < spent <= 12.0
    assert "spent" in check.stopped
    assert run_blocking(run_check(options)).stopped == check.stopped
    assert server.count == asked


@each_case(
    ("reached", "done", "limits"),
    [
        (Reached("", "max_cost_usd", used=2.0, next=0.5), 0.25, {"max_cost_usd": 8.5}),
        (Reached("", "max_cost_usd", used=0.00012341, next=0.0), 1.0, {"max_cost_usd": 0.00013}),
        (Reached("", "max_requests", used=5, next=1), 0.0, {"max_requests": 6}),
        (Reached("", "max_requests", used=10, next=1), 0.3, {"max_requests": 35}),
        (Reached("Time limit of 3 s reached."), 0.5, None),
    ],
)
def test_the_limit_to_continue_with_is_a_number(reached: Reached, done: float, limits: dict[str, float] | None) -> None:
    """It covers the next request and the remaining samples at the cost of those that are done."""
    assert reached.raise_to(done) == limits
