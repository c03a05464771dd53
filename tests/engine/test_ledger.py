"""What a run is charged, and that its limit holds against a bill that the server keeps on its own.

The server bills every request that arrives, and every reply that it writes, whether or not anyone reads it.
"""

import json
import random
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import COMMAND, Here
from judged_rivers import Evaluate, rows
from server import Fault, JudgeServer, cut_off, hang, malformed, rate_limited, reset, status, truncated, unusable

import merilo
from merilo.commands.verify.replay import State, verify_run

METRIC = "context_relevance"
PRICES = [{"model": "m", "input": 1_000.0, "output": 1_000.0}]  # a tenth of a cent per token
TOKEN_USD = 0.001


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer() as running:
        yield running


@pytest.fixture
def options(server: JudgeServer, tmp_path: Path) -> dict[str, Any]:
    return {
        "judge": "openai:m",
        "base_url": server.base_url,
        "metrics": [METRIC],
        "out": tmp_path / "r",
        "prices": PRICES,
        "cache": False,
    }


def bill_usd(server: JudgeServer) -> float:
    return server.billed.total() * TOKEN_USD


def entries(run: Path) -> list[list[Any]]:
    """The lines of a ledger."""
    return [json.loads(line) for line in (run / "ledger.jsonl").read_text().splitlines()]


def every_other() -> Callable[[Any], Any]:
    told = iter(range(10_000))
    return lambda usage: usage if next(told) % 2 else None


WRONG_USAGE: dict[str, Callable[[], Callable[[Any], Any]]] = {
    "zero": lambda: lambda _: {"prompt_tokens": 0, "completion_tokens": 0},
    "one": lambda: lambda _: {"prompt_tokens": 1, "completion_tokens": 1},
    "missing": lambda: lambda _: None,
    "empty": lambda: lambda _: {},
    "null": lambda: lambda _: {"prompt_tokens": None, "completion_tokens": None},
    "negative": lambda: lambda _: {"prompt_tokens": -5, "completion_tokens": -1},
    "text": lambda: lambda _: {"prompt_tokens": "812", "completion_tokens": "40"},
    "fractions": lambda: lambda _: {"prompt_tokens": 0.5, "completion_tokens": float("1e300")},
    "too large for any model": lambda: lambda _: {"prompt_tokens": 10**11, "completion_tokens": 10**11},
    "no object": lambda: lambda _: [1, 2],
    "only the input": lambda: lambda usage: {"prompt_tokens": usage["prompt_tokens"]},
    "every other reply": every_other,
}


@pytest.mark.parametrize("usage", WRONG_USAGE)
def test_a_limit_holds_whatever_replies_report(
    evaluated: Evaluate, server: JudgeServer, options: dict[str, Any], usage: str
) -> None:
    """Usage that is missing or cannot be true is estimated from the texts, so the bill stays below the limit."""
    server.reporting = WRONG_USAGE[usage]()
    run = evaluated(rows(60), max_cost_usd=30.0, **options)
    assert not run.complete
    assert 12.0 < bill_usd(server) <= 30.0
    assert bill_usd(server) <= run.usage["cost_usd"] <= 30.0
    assert 0 < run.usage["estimated_usd"] <= run.usage["cost_usd"]
    assert run.usage["input_tokens"] * TOKEN_USD <= run.usage["cost_usd"]


def test_a_silent_server_is_charged_up_to_the_limit(
    evaluated: Evaluate, server: JudgeServer, options: dict[str, Any]
) -> None:
    """Requests that time out may be billed for the longest reply, so they use up the limit of the directory."""
    server.fail(hang(written=256))
    said = ""
    for _ in range(30):
        with suppress(merilo.ProviderDown):
            run = evaluated(rows(40), max_cost_usd=20.0, timeout_s=0.15, concurrency=16, **options)
            said = run.usage["stopped"] or ""
        sent = server.count
        if "--max-cost" in said:
            break
    assert re.search(r"Cost limit of \$20\.00 reached .* spent in this run directory so far and up to \$", said)
    assert 10.0 < bill_usd(server) <= 20.0
    assert not evaluated(rows(40), max_cost_usd=20.0, **options).complete
    assert server.count == sent


LONG = "word " * 204  # 256 tokens of four characters, the longest reply
NOT_READ: dict[str, Fault] = {
    "cut off": cut_off(json.dumps({"choices": [{"message": {"content": LONG}}]}), 256),
    "not JSON": unusable(LONG, 256),
    "no choices": unusable(json.dumps({"choices": [], "text": LONG}), 256),
    "no choices, no text": unusable(json.dumps({"choices": []}), 256),
    "error in a 200": unusable(json.dumps({"error": {"message": "internal error", "code": 500}}), 256),
    "error in a 200, no code": unusable(json.dumps({"error": "internal error"}), 256),
    "error in a 200 about a parameter": unusable(
        json.dumps({"error": {"message": "response_format is not supported", "code": 500}}), 256
    ),
    "another status": unusable("{}", 256, code=201),
    "no bytes": reset(256),
    "no reply in time": hang(written=256),
    "a gateway timeout": unusable("{}", 256, code=504),
    "a refusal": Fault("refusal", refusal=LONG, written=256),
    "a filtered reply": Fault("filtered", rewrite=lambda _: LONG, finish="content_filter"),
    "a withheld reply": Fault("withheld", rewrite=lambda _: "", finish="content_filter", written=256),
}


@pytest.mark.parametrize("seed", range(4))
def test_no_mixture_of_faults_passes_a_limit(
    evaluated: Evaluate, server: JudgeServer, options: dict[str, Any], seed: int
) -> None:
    """Over several calls, some with another limit, the bill stays below it, and what was recorded is verified."""
    luck = random.Random(seed)
    for fault in luck.sample([*NOT_READ.values(), status(500), rate_limited(), malformed(), truncated()], 6):
        server.fail(fault, share=luck.choice([0.03, 0.1, 0.3]), seed=seed)
    server.reporting = lambda usage: luck.choice([usage, usage, None, {"prompt_tokens": 0, "completion_tokens": 0}])
    dollars, requests = luck.choice([12.0, 30.0, 80.0]), luck.choice([9, 40, 200])
    for _ in range(3):
        with suppress(merilo.ProviderDown):
            evaluated(
                rows(40),
                max_cost_usd=dollars,
                max_requests=requests,
                timeout_s=0.5,
                max_seconds=1.5,
                concurrency=luck.choice([1, 8, 64]),
                **options,
            )
        assert server.count > 0
        assert bill_usd(server) <= dollars
        assert server.count <= requests
        assert verify_run(options["out"]).state is State.VERIFIED
        dollars, requests = dollars + luck.choice([0.0, 10.0]), requests + luck.choice([0, 5])


def test_what_was_received_is_charged(evaluated: Evaluate, server: JudgeServer, options: dict[str, Any]) -> None:
    """A body that cannot be used is charged for its bytes in addition to the input, at most for the longest reply."""
    server.fail_next(unusable("word " * 6_000, 256))
    run = evaluated(rows(2), **options)
    assert run.usage["unanswered"] == 1
    assert 256 < run.usage["output_tokens"] < 512
    assert run.usage["unanswered_usd"] == 0.0
    assert [each[2:] for each in entries(run.path) if each[0] == "lost"] == [[256, 0]]


def test_retries_count_as_requests(evaluated: Evaluate, server: JudgeServer, options: dict[str, Any]) -> None:
    """The limit of requests counts every request of the directory that arrived, retries and re-asks included."""
    for fault in (reset(), rate_limited(), malformed(), status(500)):
        server.fail(fault, share=0.2, seed=4)
    for most in (7, 19, 40):
        run = evaluated(rows(40), max_requests=most, **options)
        assert not run.complete
        assert server.count == run.usage["requests"] == most


def test_requests_refused_for_a_parameter_count(
    evaluated: Evaluate, server: JudgeServer, options: dict[str, Any]
) -> None:
    """A request that is sent again without a parameter that was refused is two requests, one of them free."""
    server.refuse("response_format", "seed", "temperature")
    run = evaluated(rows(40), max_requests=30, **options)
    assert server.count == run.usage["requests"] == 30
    assert run.usage["unanswered"] == 0
    assert run.usage["estimated_usd"] == 0.0
    whole = evaluated(rows(40), **options)
    assert whole.complete
    assert server.count == whole.usage["requests"]


def test_a_larger_retry_reserves_its_own_cost(
    evaluated: Evaluate, server: JudgeServer, options: dict[str, Any]
) -> None:
    """A reply that was cut off in its reasoning is asked for with more room only if that fits the limit too."""
    server.fail(replace(truncated(), rewrite=lambda _: "<think>Well"))
    run = evaluated(rows(1), max_cost_usd=3.0, concurrency=1, **options)
    assert all(body["max_tokens"] == 256 for body in map(json.loads, server.sent))
    told = re.search(r"the next request can cost up to \$(\S+)\.", run.usage["stopped"])
    assert told is not None
    assert float(told[1]) > 4 * 256 * TOKEN_USD


def test_a_price_that_comes_later_leaves_what_was_sent_unknown(
    evaluated: Evaluate, server: JudgeServer, options: dict[str, Any]
) -> None:
    """A limit in dollars is refused once requests were sent without a price; one in requests is not."""
    first = evaluated(rows(12), max_requests=9, **{**options, "prices": None})
    assert first.usage["cost_usd"] is None
    with pytest.raises(merilo.UsageError, match="requests of unknown price"):
        evaluated(rows(12), max_cost_usd=1.0, **options)
    assert server.count == 9
    assert evaluated(rows(12), max_requests=9, **options).usage["cost_usd"] is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text.replace('"sent",2,', '"sent",7,'),
        lambda text: "".join(text.splitlines(keepends=True)[:-4]),
        lambda _: "",
        lambda _: "\0" * 4_096 + "\n",
        lambda _: "not a ledger\n",
        None,
    ],
)
def test_a_damaged_ledger_is_an_error(
    evaluated: Evaluate, server: JudgeServer, options: dict[str, Any], damage: Callable[[str], str] | None
) -> None:
    """A changed, truncated, emptied or missing ledger ends the next call before anything is sent."""
    run = evaluated(rows(12), max_requests=9, **options)
    path = run.path / "ledger.jsonl"
    if damage is None:
        path.unlink()
    else:
        path.write_text(damage(path.read_text()))
    with pytest.raises(merilo.RunError, match=r"ledger\.jsonl is damaged \(.*\), so the run's spending is unknown"):
        evaluated(rows(12), **options)
    assert server.count == 9


def test_a_ledger_holds_numbers_only(
    evaluated: Evaluate, server: JudgeServer, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No key, no address and no text goes into the ledger."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-this-test")
    server.fail(reset(), share=0.3, seed=1)
    run = evaluated(rows(4), **options)
    text = (run.path / "ledger.jsonl").read_text()
    words = set(re.findall(r"[A-Za-z_]{3,}", re.sub(r'"[0-9a-f]{8}"\]', "", text)))
    fields = set(re.findall(r"[a-z_]{3,}", text.splitlines()[0]))
    assert words - fields <= {"sent", "reply", "unbilled", "unsent", "null"}
    assert "127.0.0.1" not in text


def start(here: Here, server: JudgeServer, *more: str) -> subprocess.Popen[bytes]:
    words = ["run", "data.jsonl", "--judge", "openai:m", "--base-url", server.base_url, "--metrics", METRIC]
    words += ["--prices", "prices.toml", "--no-cache", "--out", "r", "--quiet"]
    with (here.path / "said").open("wb") as said:
        return subprocess.Popen([COMMAND, *words, *more], cwd=here.path, env=here.environment, stderr=said)


def stderr(here: Here) -> str:
    """What the last command has said."""
    return (here.path / "said").read_text()


@pytest.fixture
def here(tmp_path: Path) -> Here:
    found = Here(tmp_path)
    found.write("data.jsonl", rows(40))
    prices = '[[price]]\nmodel = "m"\ninput = 1000.0\noutput = 1000.0\n'
    (tmp_path / "prices.toml").write_text(f"read = 2026-01-01\n{prices}")
    return found


def test_what_was_in_flight_at_a_kill_is_charged(here: Here, server: JudgeServer) -> None:
    """Sixteen requests in flight at a kill -9 are charged for their input when the run is resumed."""
    server.fail(hang())
    process = start(here, server)
    while server.count < 16 and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    server.behave()
    assert start(here, server).wait() == 0
    run = merilo.Run.open(here.path / "r")
    assert run.usage["unanswered"] == 16
    assert run.usage["requests"] == server.count
    assert bill_usd(server) <= run.usage["cost_usd"]
    assert start(here, server, "--unanswered", "free").wait() == 0
    assert run.usage["estimated_usd"] == 0.0


def test_replies_written_after_a_kill_never_exceed_the_limit(here: Here, server: JudgeServer) -> None:
    """Replies that a server writes for killed calls are covered by what stays reserved for their requests."""
    server.fail(hang(written=256))
    for _ in range(6):
        process = start(here, server, "--max-cost", "4", "--timeout", "2")
        enough = server.count + 2
        while server.count < enough and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
        if "Cost limit" in stderr(here):
            break
    assert process.wait() == 5
    assert 0.0 < bill_usd(server) <= 4.0


def test_a_resumed_run_names_what_was_spent_and_the_limit_to_raise(here: Here, server: JudgeServer) -> None:
    """The message says what the directory has cost and to what the limit must be raised, which suffices."""
    assert start(here, server, "--max-cost", "9").wait() == 5
    sent = server.count
    assert start(here, server, "--max-cost", "9").wait() == 5
    said = stderr(here)
    assert server.count == sent
    told = re.search(
        r"\$(\S+) spent in this run directory so far; .* Raise --max-cost to at least \$(\S+) to continue", said
    )
    assert told is not None
    assert float(told[1]) == pytest.approx(merilo.Run.open(here.path / "r").usage["cost_usd"], abs=1e-4)
    assert "To resume with a higher limit: merilo run data.jsonl" in said
    pasted = re.search(r"--max-cost (\d\S*)", said.rpartition("To resume with a higher limit")[2])
    assert pasted is not None
    assert float(pasted[1]) >= float(told[2]) - 1e-4
    start(here, server, "--max-cost", told[2]).wait()
    assert server.count > sent


def test_the_summary_tells_what_was_estimated(here: Here, server: JudgeServer) -> None:
    """Text and JSON give the part of the cost that no server reported, and the requests without an answer."""
    server.reporting = lambda _: None
    server.fail_next(reset())
    words = ["--judge", "openai:m", "--base-url", server.base_url, "--metrics", METRIC, "--prices", "prices.toml"]
    done = here.merilo("run", "data.jsonl", *words, "--limit", "2", "--out", "r")
    shown = " ".join(done.stdout.split())
    assert re.search(
        r"\d requests \(1 unanswered\), [\d,]+ tokens in, [\d,]+ out, (\S+) USD, of which \1 USD estimated", shown
    )
    found = here.json("run", "data.jsonl", *words, "--limit", "2", "--out", "r")
    assert found["unanswered"] == 1
    assert found["estimated_usd"] == found["cost_usd"] > 0
