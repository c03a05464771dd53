"""What a reply is charged for: the usage that was reported, or an estimate from the texts."""

from dataclasses import replace

import pytest
from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st

from merilo.engine.amounts import charged_tokens_of, max_tokens_of, settled
from merilo.engine.budget import Budget, BudgetDecision, Spending
from merilo.errors import Permanent, ProviderDown, ProviderError, RateLimited, Refused, Temporary, Unreachable
from merilo.providers.base import Finish, Message, Reply, Request, Usage
from merilo.providers.decision_request import AnswerType, DecisionQuestion, DecisionRequest, Option
from merilo.providers.openai import OpenAIProvider, usage_of
from merilo.providers.prices import prices_from
from merilo.runs.ledger import Charge

REQUEST = Request((Message("system", "r" * 10 + " judge the text. " * 20), Message("user", "a sentence or two. " * 21)))
READ = 250  # its 749 bytes / 3
WROTE = 40
TEXT = "so it is, and so on; " * 6  # 126 characters, of which 120 bytes / 3


def replied(read: int | None, wrote: int | None, text: str = TEXT[:120], **more: object) -> Reply:
    return Reply((text,), usage=Usage(read, wrote), **more)  # type: ignore[arg-type]


@each_case(
    ("reply", "usage", "estimated"),
    [
        (replied(190, 30), (190, 30), False),
        (replied(95, 15), (95, 15), False),
        (replied(100_000, 9_000), (100_000, 9_000), False),
        (replied(0, 0), (READ, WROTE), True),
        (replied(1, 1), (READ, WROTE), True),
        (replied(91, 30), (READ, 30), True),
        (replied(190, 14), (190, WROTE), True),
        (replied(None, None), (READ, WROTE), True),
        (replied(None, 30), (READ, 30), True),
        (replied(190, None), (190, WROTE), True),
        (replied(190, 0, ""), (190, 2048), True),
        (replied(190, 0, " "), (190, 2048), True),
        (replied(190, 1, ""), (190, 1), False),
        (replied(190, 0, "We cannot answer that.", finish=Finish.REFUSED), (190, 8), True),
        (replied(190, 0, "", finish=Finish.REFUSED), (190, 2048), True),
        (replied(190, None, "", finish=Finish.REFUSED), (190, 2048), True),
        (replied(190, None, ""), (190, 2048), True),
        (replied(190, 15, TEXT[:100] + " " * 6_000), (190, 2_034), True),
        (replied(190, 15, TEXT[:100] + " " * 8_000), (190, 2_048), True),
        (replied(190, None, "x" * 12_000_000), (190, 2_048), True),
        (replied(190, None, TEXT[:120], reasoning="First I read it, then" * 10), (190, 110), True),
    ],
)
def test_a_reply_is_charged_as_reported_if_that_can_be_true(
    reply: Reply, usage: tuple[int, int], estimated: bool
) -> None:
    """Each count is taken as it is reported; one that is missing, or would make tokens too long, is estimated."""
    found = settled(REQUEST, reply, max_reply_tokens=2048)
    assert charged_tokens_of(REQUEST) == READ
    assert (found.usage.input_tokens, found.usage.output_tokens) == usage
    assert found.estimated is estimated
    assert found.input_estimated is (usage[0] != reply.usage.input_tokens)


def test_blanks_and_lines_may_be_few_tokens() -> None:
    """A table of blanks and rules takes one token for 128 of them, and a server that reports fewer is not believed."""
    table = Request((Message("user", f"name{' ' * 800}value\n{'-' * 800}\n"),))
    assert not settled(table, replied(17, 30)).estimated
    assert settled(table, replied(9, 30)).estimated
    blanks = Request((Message("user", "name" + " " * 80_000),))
    assert settled(blanks, replied(500, 30)).estimated


def test_other_scripts_are_charged_by_their_bytes() -> None:
    """Tokenizers make more tokens of a character outside ASCII, and servers that make few are believed."""
    request = Request((Message("user", "河流有多长" * 100),))
    assert charged_tokens_of(request) == 500
    assert not settled(request, replied(300, 30)).estimated


@each_case(
    ("usage", "charged", "estimated"),
    [
        (Usage(120, 0), 120, False),
        (Usage(120, 0, usd=0.5), 120, False),
        (Usage(9, 0), None, True),
        (Usage(0, 0), None, True),
        (Usage(None, 0), None, True),
    ],
)
def test_decisions_have_no_output(usage: Usage, charged: int | None, estimated: bool) -> None:
    """No output tokens are true; without a plausible count of input tokens the request is charged as it was reserved.

    The count may be that of the state alone: the questions are longer here.
    """
    question = DecisionQuestion("q", AnswerType.CHOICE, "x" * 900, (Option("a", "b" * 49),), (("statement", "s" * 41),))
    request = DecisionRequest((Message("user", '"' + "state " * 20 + '"'),), questions=(question,) * 3)
    reserved = max_tokens_of(request)
    assert charged_tokens_of(request) == -(-(122 + 3 * (900 + 51 + 50)) // 3)
    assert reserved == Usage(122 + 3 * (900 + 51 + 50) + 8 * (1 + 3 * 4) + 500, 0, 0)
    found = settled(request, Reply(("[[0.5,0.5]]" * 99,), usage=usage), max_reply_tokens=0)
    assert found.usage == replace(usage, input_tokens=charged or reserved.input_tokens)
    assert (found.estimated, found.input_estimated) == (estimated, estimated)


@given(st.integers(0, 2_000), st.integers(0, 500))
def test_no_report_is_settled_below_what_is_plausible(read: int, wrote: int) -> None:
    """A charge is never below what was reported, or one token for eight characters."""
    usage = settled(REQUEST, replied(read, wrote)).usage
    assert usage.input_tokens is not None
    assert usage.output_tokens is not None
    assert usage.input_tokens >= max(read, 740 // 8)
    assert usage.output_tokens >= max(wrote, 120 // 8)


@each_case(
    ("told", "usage"),
    [
        ({"prompt_tokens": 900, "prompt_tokens_details": {"cached_tokens": 800}}, Usage(900, None, 800)),
        ({"prompt_tokens": 50, "prompt_tokens_details": {"cached_tokens": 800}}, Usage(850, None, 800)),
        ({"prompt_tokens": 50, "prompt_cache_hit_tokens": 800, "completion_tokens": 7}, Usage(850, 7, 800)),
        ({"prompt_tokens": 10**7, "completion_tokens": 10**7 + 1}, Usage(10**7, None)),
        ({"prompt_tokens": -1, "completion_tokens": "7"}, Usage()),
        ({"prompt_tokens": True, "completion_tokens": 7.0}, Usage()),
    ],
)
def test_cached_input_belongs_to_the_input(told: dict[str, object], usage: Usage) -> None:
    """Input that a server counts apart from the rest is added to it, and counts that cannot be are unknown."""
    assert usage_of(told) == usage


PROVIDER = OpenAIProvider("m", base_url="http://127.0.0.1:1/v1")
CACHING = [{"model": "m", "input": 100.0, "output": 0.0, "cached_input": 10.0, "cache_write": 125.0}]


@each_case(
    ("usage", "usd"),
    [
        (Usage(1_000, 0), 0.1),
        (Usage(1_000, 0, 900), 0.019),
        (Usage(1_000, 0, None, 900), 0.1225),
        (Usage(None, 0), READ * 125.0 / 1e6),
        (Usage(3, 0, 2), READ * 125.0 / 1e6),
    ],
)
def test_cached_input_costs_what_it_costs_and_estimates_the_most(usage: Usage, usd: float) -> None:
    """Cached tokens are charged at their own price; estimated input is charged at the highest of its prices."""
    spending = Spending(Budget(max_cost_usd=1.0), prices_from(CACHING).usd)
    entry = spending.begin(0.5, Charge(READ, 0, 0.0, estimated=True))
    found = settled(REQUEST, Reply(("",), usage=usage))
    assert spending.replied(entry, 0.5, PROVIDER, found) == pytest.approx(usd)
    assert spending.cost_usd == pytest.approx(usd)


@each_case(
    ("error", "requests", "charged"),
    [
        (Temporary("no reply in time"), 1, True),
        (Temporary("the connection failed"), 1, True),
        (Temporary("no chat completion in it", status=200), 1, True),
        (Permanent("vectors that do not fit", status=200), 1, True),
        (Permanent("another status for a reply", status=201), 1, True),
        (Temporary("an error with HTTP status 200", status=500, received_bytes=40), 1, True),
        (Temporary("timeout", status=408), 1, True),
        (Temporary("bad gateway", status=502), 1, True),
        (Temporary("gateway timeout", status=504), 1, True),
        (Refused("filtered", status=400), 1, True),
        (Permanent("too long", status=400), 1, False),
        (ProviderDown("wrong key", status=401), 1, False),
        (RateLimited("slow down", status=429), 1, False),
        (RateLimited("slow down"), 1, False),
        (Temporary("internal", status=500), 1, False),
        (Temporary("overloaded", status=529), 1, False),
        (ProviderDown("no server", sent=False), 0, False),
        (Unreachable("no server any more", sent=False), 0, False),
    ],
)
def test_an_error_is_charged_if_a_model_may_have_run(error: ProviderError, requests: int, charged: bool) -> None:
    """A request without a usable reply is charged for its input, unless an error says that no model has run."""
    for unanswered in ("charged", "free"):
        spending = Spending(Budget(max_cost_usd=1.0, unanswered=unanswered), prices_from(CACHING).usd)
        spending.failed(spending.begin(0.5, Charge(READ, 0, 0.25, estimated=True)), 0.5, error)
        assert spending.requests == requests
        assert spending.cost_usd == (0.25 if charged and unanswered == "charged" else 0.0)
        assert spending.check(0.7) is None or charged


def test_the_longest_reply_stays_reserved_for_an_unanswered_request() -> None:
    """A request that brought no usable reply keeps the price of its longest reply reserved, whatever others cost."""
    spending = Spending(Budget(max_cost_usd=1.0), prices_from([{"model": "m", "input": 100.0, "output": 400.0}]).usd)
    charge = Charge(READ, 0, READ * 1e-4, estimated=True, reply_tokens=1_000, reply_usd=0.4)
    spending.replied(spending.begin(0.43, charge), 0.43, PROVIDER, settled(REQUEST, replied(200, 100)))
    assert spending.unanswered_usd == 0.0
    spending.failed(spending.begin(0.43, charge), 0.43, Temporary("no reply in time"))
    assert spending.unanswered_usd == pytest.approx(0.4)
    assert spending.check(0.53) == BudgetDecision.EXPENSIVE
    sentence = spending.cost_reached(0.53).sentence
    assert "and up to $0.40 reserved for replies to 1 unanswered request; the next" in sentence
    assert "or use --unanswered free if your server does not bill unanswered requests." in sentence
    free = Spending(Budget(max_cost_usd=1.0, unanswered="free"), prices_from(CACHING).usd, spending.ledger)
    assert free.unanswered_usd == 0.0


def test_a_filtered_prompt_reserves_no_reply() -> None:
    """A content filter that refuses a prompt has read the input, and no model has written a reply."""
    spending = Spending(Budget(max_cost_usd=1.0), prices_from(CACHING).usd)
    charge = Charge(READ, 0, 0.25, estimated=True, reply_tokens=1_000, reply_usd=0.4)
    spending.failed(spending.begin(0.65, charge), 0.65, Refused("filtered", status=400))
    assert (spending.cost_usd, spending.unanswered_usd) == (0.25, 0.0)
