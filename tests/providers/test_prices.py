"""Prices: the dated list that comes with merilo, and a user's own before it."""

import tomllib
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from each_case import each_case

from merilo.errors import UsageError
from merilo.providers.base import Usage
from merilo.providers.openai import OpenAIProvider
from merilo.providers.prices import Price, Prices, list_price_usd, outdated, prices_from

OPENAI = "https://api.openai.com/v1"
HOSTS = {
    OPENAI,
    "https://api.anthropic.com",
    "https://generativelanguage.googleapis.com",
    "https://api.typesafe.ai",
}
MILLION = Usage(1_000_000, 1_000_000)


@dataclass(frozen=True)
class Endpoint:
    """A provider with nothing but its marks, which says that a request costs 7 USD."""

    model: str = "m"
    base_url: str = "http://localhost:8000/v1"

    def fingerprint(self) -> dict[str, object]:
        return {"provider": "openai", "base_url": self.base_url, "model": self.model}

    def price_usd(self, usage: Usage) -> float | None:
        del usage
        return 7.0


def rows() -> list[dict[str, Any]]:
    """The list as it stands in the wheel."""
    text = files("merilo").joinpath("providers/prices.v1.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["price"]


def test_every_listed_price_is_whole() -> None:
    """Each row names a hosted endpoint, a model, its prices and the page they stand on; no model stands twice."""
    table = rows()
    names = [(row["provider"], row["model"]) for row in table]
    assert len(set(names)) == len(names) > 30
    for row in table:
        assert row["source"].startswith("https://")
        assert row["base_url"] in HOSTS
        usd = list_price_usd(row["provider"], row["base_url"], row["model"], MILLION)
        long = row.get("long", row)
        assert usd == pytest.approx(long["input"] + long["output"])
        assert row.get("cached_input", 0) <= row["input"] <= row.get("cache_write", row["input"])


@each_case(
    ("kind", "base_url", "model", "known"),
    [
        ("openai", OPENAI, "gpt-4.1-mini", True),
        ("openai", OPENAI + "/", "gpt-4.1-mini", True),
        ("openai", OPENAI, "gpt-4.1-mini-2025-04-14", True),
        ("openai", OPENAI, "gpt-4.1-mini-audio", False),
        ("openai", OPENAI, "gpt-99", False),
        ("openai-embeddings", OPENAI, "text-embedding-3-small", True),
        ("openai", "http://localhost:8000/v1", "gpt-4.1-mini", False),
        ("openai", "https://eu.api.openai.com/v1", "gpt-4.1-mini", False),
        ("azure", OPENAI, "gpt-4.1-mini", False),
        ("anthropic", "https://api.anthropic.com", "claude-haiku-4-5", True),
        ("anthropic", "https://api.anthropic.com", "claude-haiku-4-5-20251001", True),
        ("anthropic", "https://api.anthropic.com/v1", "claude-sonnet-5", True),
    ],
)
def test_only_what_is_listed_has_a_price(kind: str, base_url: str, model: str, known: bool) -> None:
    """A model of the list at its maker's endpoint, also with a date after its name; anything else is unknown."""
    assert (list_price_usd(kind, base_url, model, MILLION) is not None) is known


@each_case(
    ("usage", "usd"),
    [
        (Usage(1_000_000, 0), 2.0),
        (Usage(0, 1_000_000), 8.0),
        (Usage(1_000_000, 0, cached_tokens=1_000_000), 0.5),
        (Usage(1_000_000, 0, cached_tokens=500_000), 1.25),
        (Usage(1_000_000, 0, written_tokens=1_000_000), 2.5),
        (Usage(1_000_000, 0, cached_tokens=500_000, written_tokens=500_000), 1.5),
        (Usage(2_000_001, 0), 8.000004),
        (Usage(0, 0), 0.0),
        (Usage(None, 10), None),
        (Usage(10, None), None),
    ],
)
def test_what_a_request_costs(usage: Usage, usd: float | None) -> None:
    """Cached and written tokens are parts of the input with prices of their own; a long request has other prices.

    A request whose tokens nobody counted has no known price.
    """
    row = {"model": "m", "input": 2.0, "output": 8.0, "cached_input": 0.5, "cache_write": 2.5}
    prices = prices_from([{**row, "long": {"above": 2_000_000, "input": 4, "output": 16}}])
    assert prices.usd(Endpoint(), usage) == (None if usd is None else pytest.approx(usd))


def test_a_batch_has_its_own_price() -> None:
    """A listed model costs half in a batch; an own price costs what its `batch` states, by default the same."""
    usage, listed = Usage(1_000, 1_000), OpenAIProvider("gpt-4.1-mini", base_url="https://api.openai.com/v1")
    usd = Prices().usd(listed, usage)
    assert usd is not None
    assert Prices().batch_usd(listed, usage) == usd / 2
    own = {"model": "gpt-4.1-mini", "input": 1, "output": 2}
    assert prices_from([own]).batch_usd(listed, usage) == 0.003
    assert prices_from([{**own, "batch": 0.25}]).batch_usd(listed, usage) == 0.00075
    assert Prices().batch_usd(OpenAIProvider("unknown", base_url="http://127.0.0.1:9/v1"), usage) is None
    with pytest.raises(UsageError, match="batch: Input should be a valid number"):
        prices_from([{**own, "batch": "half"}])


def test_an_own_price_may_name_where_it_holds() -> None:
    """A row with an address or a kind of provider holds there only, a pattern for all names that it fits."""
    here = {"model": "q*", "base_url": "http://localhost:8000/v1/", "provider": "openai", "input": 0, "output": 0}
    prices = prices_from([here])
    assert prices.usd(Endpoint("qwen3"), MILLION) == 0.0
    assert prices.usd(Endpoint("qwen3", "http://localhost:9000/v1"), MILLION) == 7.0
    assert prices.usd(Endpoint("llama"), MILLION) == 7.0
    assert prices_from([{**here, "provider": "azure"}]).usd(Endpoint("qwen3"), MILLION) == 7.0


def test_a_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A price file is given as a path, or named by MERILO_PRICES; what is given goes first."""
    for name, price in (("given", 1), ("named", 2)):
        text = f'read = 2026-11-01\n[[price]]\nmodel = "m"\ninput = {price}\noutput = 0\n'
        (tmp_path / f"{name}.toml").write_text(text, encoding="utf-8")
    monkeypatch.setenv("MERILO_PRICES", str(tmp_path / "named.toml"))
    assert prices_from().usd(Endpoint(), MILLION) == 2.0
    assert prices_from(tmp_path / "given.toml").usd(Endpoint(), MILLION) == 1.0
    (price,) = prices_from(str(tmp_path / "given.toml")).own
    assert price.read == date(2026, 11, 1)
    monkeypatch.delenv("MERILO_PRICES")
    assert prices_from() == Prices()


@each_case(
    ("text", "message"),
    [
        ("[[price]\n", "cannot be read"),
        ("prices = 1\n", r"only contain \[\[price\]\] tables"),
        ("[[price]]\ninput = 1\noutput = 1\n", "price 1: model: Field required"),
        ('[[price]]\nmodel = "m"\noutput = 1\n', "input: Field required"),
        (
            '[[price]]\nmodel = "m"\ninput = -1\noutput = 1\n',
            "input: Input should be greater than or equal to 0",
        ),
        ('[[price]]\nmodel = "m"\ninput = nan\noutput = 1\n', "input: Input should be a finite number"),
        ('[[price]]\nmodel = "m"\ninput = true\noutput = 1\n', "input: Input should be a valid number"),
        ('[[price]]\nmodel = "m"\ninput = 1\noutput = 1\noutpt = 2\n', "outpt: no such key"),
        ('[[price]]\nmodel = "m"\ninput = 1\noutput = 1\nlong = 5\n', "long: Input should be a valid dictionary"),
        ("[[price]]\nmodel = 5\ninput = 1\noutput = 1\n", "model: Input should be a valid string"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """What is wrong with a price file is said with its place; nothing is guessed."""
    path = tmp_path / "prices.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=message) as caught:
        prices_from(path)
    assert str(path) in str(caught.value)


def priced(model: str, **fields: Any) -> Price:
    """A price of 1 and 2 USD."""
    return Price.model_validate({"model": model, "input": 1, "output": 2, **fields})


def aged(model: str, days: int, **fields: Any) -> Price:
    """A price of this age on 30 June 2026."""
    return priced(model, read=date(2026, 6, 30) - timedelta(days), **fields)


@each_case(
    ("prices", "warning"),
    [
        ([], ""),
        ([aged("a", 180)], ""),
        ([aged("a", 181)], "The price of a is from 2025-12-31, so"),
        ([aged("a", 181), aged("b", 181), aged("c", 3)], "The prices of a, b are from 2025-12-31, so"),
        ([aged("a", 181), aged("b", 300)], "The prices of a, b are up to 300 days old, so"),
        ([priced("a")], ""),
        ([priced("a", input=0, output=0, read=date(2000, 1, 1))], ""),
        ([priced("a", read=datetime(2026, 6, 1, tzinfo=UTC))], ""),
    ],
)
def test_a_price_is_outdated_after_180_days(prices: list[Price], warning: str) -> None:
    """Dated prices that cost something are reported from the 181st day on; prices without a date are not."""
    found = outdated(prices, date(2026, 6, 30))
    assert found.startswith(warning)
    assert bool(found) == bool(warning)


def test_the_list_of_merilo_becomes_outdated() -> None:
    """The list that ships is dated, so that it is reported 181 days later and not before."""
    price = prices_from().price(Endpoint("gpt-4.1-mini", OPENAI))
    assert price is not None
    assert price.read is not None
    assert not outdated([price], price.read + timedelta(180))
    assert "The price of gpt-4.1-mini is from" in outdated([price], price.read + timedelta(181))
