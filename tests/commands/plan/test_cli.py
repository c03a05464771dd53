"""`merilo run --plan`, and how a run tells what it cost."""

import shlex

import pytest
from command_line import Here
from each_case import each_case
from server import JudgeServer

from merilo.commands.plan.run import rounded
from merilo.numbers import money

DATA = [
    {
        "id": str(n),
        "user_input": f"How long is river {n}?",
        "retrieved_contexts": [f"River {n} is {n} km long.", "Rivers flow."],
        "response": f"It is {n} km long.",
    }
    for n in range(4)
]
PAGE = """\
data: 4 samples, to be judged by openai:gpt-4.1-mini
Nothing was sent. All amounts are estimates.

metric             requests  tokens in  out     USD  USD alone
context_relevance         8 """
METRICS = "context_relevance,context_precision"


def test_a_plan_is_a_page(here: Here) -> None:
    """Without a key: a table of the metrics, what it is in all, the dated price, and the command of the run."""
    here.write("data.jsonl", DATA)
    words = ["data.jsonl", "--judge", "openai:gpt-4.1-mini", "--metrics", METRICS]
    done = here.merilo("run", "--plan", *words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(PAGE)
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert any(line.startswith("expected 8 requests, ") and line.endswith(" USD") for line in lines)
    assert any(line.startswith("price gpt-4.1-mini: 0.4 USD per million tokens in, 1.6 out") for line in lines)
    assert "read on 2026-" in " ".join(done.stdout.split())
    assert lines[-1] == shlex.join(["merilo", "run", *words])
    assert max(len(line) for line in done.stdout.splitlines()[:-1]) <= 80
    assert not (here.path / ".merilo").exists()


def test_a_plan_as_json(here: Here) -> None:
    """One object: amounts of each metric, and of all; a price that is not known is null."""
    here.write("data.jsonl", DATA)
    words = ["data.jsonl", "--judge", "openai:m", "--base-url", "http://127.0.0.1:9/v1", "--metrics", METRICS]
    found = here.json("run", "--plan", *words)
    assert found["samples"] == found["looked_at"] == 4
    assert list(found["metrics"]) == METRICS.split(",")
    assert found["metrics"]["context_relevance"]["added"]["requests"] == found["typical"]["requests"] == 8
    assert found["metrics"]["context_precision"]["added"]["requests"] == 0
    assert found["typical"]["usd"] is None
    assert found["unpriced"] == ["m at http://127.0.0.1:9/v1"]


@each_case(
    ("amount", "said"),
    [
        (0.0, "0"),
        (7.4, "7"),
        (999.0, "999"),
        (999.9, "1.00 k"),
        (18_236, "18.2 k"),
        (274_292, "274 k"),
        (999_999, "1.00 M"),
        (583_188_480, "583 M"),
        (1_577_447_424, "1,580 M"),
    ],
)
def test_large_amounts_have_three_digits_and_a_unit(amount: float, said: str) -> None:
    """No more digits than an estimate supports."""
    assert rounded(amount) == said


def test_outdated_prices_are_reported_once_on_standard_error(here: Here) -> None:
    """A plan and a run warn once if the price that they use is old; the standard output stays as it is."""
    here.write("data.jsonl", DATA)
    for name, day in (("old", "read = 2020-01-01\n"), ("new", "read = 2999-01-01\n"), ("undated", "")):
        text = (
            f'{day}[[price]]\nmodel = "m"\ninput = 1\noutput = 2\n[[price]]\nmodel = "other"\ninput = 1\noutput = 2\n'
        )
        (here.path / f"{name}.toml").write_text(text, encoding="utf-8")
    warning = (
        "The price of m is from 2020-01-01, so reported costs and --max-cost may be wrong. Give current prices "
        "(--prices FILE).\n"
    )
    with JudgeServer() as server:
        words = ["data.jsonl", "--judge", "openai:m", "--base-url", server.base_url, "--metrics", "context_relevance"]
        for name, expected in (("old", 1), ("new", 0), ("undated", 0)):
            for more in (["--plan"], []):
                done = here.merilo("run", *more, *words, "--prices", f"{name}.toml", "--no-cache")
                assert done.returncode == 0
                assert done.stderr.count(warning) == expected
                assert done.stderr.count("(--prices FILE)") == expected
        quiet = here.merilo("run", *words, "--prices", "old.toml", "--quiet")
    assert quiet.stderr == ""


def test_an_unknown_price_is_said_once_with_what_to_do(here: Here) -> None:
    """A plan and a run tell it once; a price file makes it known in both."""
    here.write("data.jsonl", DATA)
    text = '[[price]]\nmodel = "m"\ninput = 1\noutput = 2\nread = 2026-11-01\n'
    (here.path / "prices.toml").write_text(text, encoding="utf-8")
    with JudgeServer() as server:
        words = ["data.jsonl", "--judge", "openai:m", "--base-url", server.base_url, "--metrics", "context_relevance"]
        planned = here.merilo("run", "--plan", *words)
        run = here.merilo("run", *words, "--out", "a")
        assert " ".join(planned.stdout.split()).count("--prices FILE") == run.stdout.count("--prices FILE") == 1
        assert "price unknown" in run.stdout
        priced = here.json("run", "--plan", *words, "--no-cache", "--prices", "prices.toml")
        done = here.merilo("run", *words, "--no-cache", "--out", "b", "--prices", "prices.toml")
        named = here.merilo("show", "b", env={"MERILO_PRICES": "prices.toml"})
    assert "--prices FILE" not in done.stdout + named.stdout
    assert " USD, " in done.stdout
    usage = here.json("show", "b")
    assert usage["cost_usd"] == pytest.approx((usage["input_tokens"] + 2 * usage["output_tokens"]) / 1e6)
    assert priced["typical"]["requests"] == usage["requests"] == 8


def test_a_finished_run_costs_nothing_more(here: Here) -> None:
    """With the run as --out nothing is left to ask, and the page says how much is answered."""
    here.write("data.jsonl", DATA)
    with JudgeServer() as server:
        words = ["data.jsonl", "--judge", "openai:m", "--base-url", server.base_url, "--metrics", METRICS]
        here.merilo("run", *words, "--out", "a", "--no-cache")
        done = here.merilo("run", "--plan", *words, "--out", "a", "--no-cache")
    assert "no request, nothing to pay" in done.stdout
    assert "16 of 16 questions are answered in the run or the cache" in done.stdout


@each_case(
    ("usd", "said"),
    [
        (None, "unknown"),
        (0.0, "0.00"),
        (1204.0, "1,204.00"),
        (0.1, "0.10"),
        (0.0996, "0.100"),
        (0.0424, "0.042"),
        (0.00042, "0.00042"),
        (3.2e-7, "0.00000032"),
    ],
)
def test_money_keeps_two_digits_that_count(usd: float | None, said: str) -> None:
    """Cents from a dime on; below that as many digits as it takes to tell two amounts apart."""
    assert money(usd) == said
