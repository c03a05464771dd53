"""Prices of requests: the dated price list that ships with merilo, and the user's own price file, which takes
precedence.

Prices are in USD per million tokens. An unknown price is None, never 0. The list applies to the providers' own
endpoints only. The price at any other endpoint is unknown unless a price file has it.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import date, datetime
from fnmatch import fnmatchcase
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, model_validator

from merilo.data.config_files import validated
from merilo.errors import UsageError
from merilo.judging.json_types import as_list, as_object
from merilo.providers.secrets import shown_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from os import PathLike

    from merilo.providers.base import Provider, Usage

VARIABLE = "MERILO_PRICES"
_MAX_BYTES: Final = 2**20
TABLE = "prices.v1.toml"
MAX_AGE_DAYS = 180
"""Age from which a dated price is reported as outdated."""
_MILLION = 1_000_000
_DATED = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8})")
PricesLike: TypeAlias = "str | PathLike[str] | Sequence[Mapping[str, object]] | Prices"
"""Prices that a user may give: the path of a price file, its rows, or prices that were read before."""


Rate = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]


class TokenPrices(BaseModel):
    """USD per million tokens; cached and written input cost as much as other input unless they have their own rates."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: Rate
    output: Rate
    cached_input: Rate
    cache_write: Rate

    @model_validator(mode="before")
    @classmethod
    def _as_other_input(cls, fields: object) -> object:
        given = as_object(fields) or {}
        if "input" not in given:
            return fields
        return {"cached_input": given["input"], "cache_write": given["input"], **given}

    def usd(self, usage: Usage) -> float | None:
        """Return the price of one request with this usage; None if the provider did not report its tokens."""
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        cached, written = usage.cached_tokens or 0, usage.written_tokens or 0
        fresh = max(0, usage.input_tokens - cached - written)
        cost = fresh * self.input + cached * self.cached_input + written * self.cache_write
        return (cost + usage.output_tokens * self.output) / _MILLION

    @property
    def free(self) -> bool:
        """True if nothing is charged."""
        return not (self.input or self.output or self.cached_input or self.cache_write)


class LongPrices(TokenPrices):
    """The prices of requests with more input tokens than `above`."""

    above: int


class Price(TokenPrices):
    """The price of a model at a provider or address: a `[[price]]` table."""

    model: str = Field(min_length=1)
    """The model's name, which also matches with a date appended; or a pattern with `*`."""
    provider: str | None = None
    """The kind of provider; None for any."""
    base_url: Annotated[str | None, AfterValidator(lambda url: None if url is None else _address(url))] = None
    """The address; None for any."""
    long: LongPrices | None = None
    read: Annotated[date | None, PlainValidator(lambda day: day if isinstance(day, date) else None)] = None
    """The date of the price."""
    source: str = ""
    via: str = ""
    batch: Rate = 1.0
    """The price of a request in a batch, as a fraction of the price of the request alone."""

    def usd(self, usage: Usage) -> float | None:
        """Return the price of one request with this usage; None if the provider did not report its tokens."""
        if self.long is not None and (usage.input_tokens or 0) > self.long.above:
            return self.long.usd(usage)
        return super().usd(usage)

    def holds(self, kind: str, base_url: str, model: str) -> bool:
        """Return True if this is the price of this model at this address."""
        if self.provider not in {None, kind} or self.base_url not in {None, _address(base_url)}:
            return False
        if "*" in self.model:
            return fnmatchcase(model, self.model)
        return model == self.model or (
            model.startswith(self.model) and _DATED.fullmatch(model, len(self.model)) is not None
        )


@dataclass(frozen=True)
class Prices:
    """The user's own prices, which take precedence over those of the providers. The first match counts."""

    own: tuple[Price, ...] = ()

    def usd(self, provider: Provider, usage: Usage) -> float | None:
        """Return the price of a request to this provider; None if unknown."""
        own = self._own(provider) if self.own else None
        return provider.price_usd(usage) if own is None else own.usd(usage)

    def batch_usd(self, provider: Provider, usage: Usage) -> float | None:
        """Return the price of a request to this provider in a batch; None if unknown."""
        usd, price = self.usd(provider, usage), self.price(provider)
        return usd if usd is None or price is None else usd * price.batch

    def price(self, provider: Provider) -> Price | None:
        """Return the price that `usd` uses, with date and source; None if unknown, or if it is the provider's own."""
        return self._own(provider) or _listed(*_marks(provider))

    def known(self, providers: Iterable[Provider]) -> tuple[Price, ...]:
        """Return the prices that `usd` uses for these providers, each once."""
        found = (self.price(provider) for provider in providers)
        return tuple(dict.fromkeys(price for price in found if price is not None))

    def _own(self, provider: Provider) -> Price | None:
        return _first(self.own, *_marks(provider))


def outdated(prices: Iterable[Price], on: date) -> str:
    """Return a warning that names the models whose price is older than `MAX_AGE_DAYS`; empty if there are none.

    A price without a date and a price of 0 never count as outdated.
    """
    dated = (
        (each.model, each.read.date() if isinstance(each.read, datetime) else each.read)  # TOML has both
        for each in prices
        if each.read is not None and not (each.free and (each.long is None or each.long.free))
    )
    old = {model: day for model, day in dated if (on - day).days > MAX_AGE_DAYS}
    if not old:
        return ""
    oldest = min(old.values())
    which, verb = ("The price", "is") if len(old) == 1 else ("The prices", "are")
    since = f"from {oldest.isoformat()}" if len(set(old.values())) == 1 else f"up to {(on - oldest).days} days old"
    return (
        f"{which} of {', '.join(old)} {verb} {since}, so reported costs and --max-cost may be wrong. "
        "Give current prices (--prices FILE)."
    )


def list_price_usd(kind: str, base_url: str, model: str, usage: Usage) -> float | None:
    """Return the price of a request by merilo's price list; None for a model or an address that is not listed."""
    price = _listed(kind, base_url, model)
    return None if price is None else price.usd(usage)


def prices_from(given: PricesLike | None = None) -> Prices:
    """Return the user's prices: those given, or in the file that MERILO_PRICES names, or none. Raises UsageError."""
    if isinstance(given, Prices):
        return given
    if given is None:
        named = os.environ.get(VARIABLE)
        return _from_file(Path(named)) if named else Prices()
    if isinstance(given, (str, os.PathLike)):
        return _from_file(Path(given))
    return Prices(_rows(given, "prices", None))


def _from_file(path: Path) -> Prices:
    import tomllib

    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)  # a link may lead to a device without an end
        if len(content) > _MAX_BYTES:
            raise UsageError(f"The price file {path} must be at most {_MAX_BYTES:,} bytes long.")
        table = tomllib.loads(content.decode("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"The price file {path} cannot be read ({error}). Expected TOML [[price]] tables.") from None
    rows = as_list(table.get("price"))
    if rows is None or set(table) - {"price", "read"}:
        raise UsageError(f"The price file {path} may only contain [[price]] tables and, optionally, `read = DATE`.")
    return Prices(_rows(rows, str(path), table.get("read")))


def _rows(rows: Iterable[object], where: str, read: object) -> tuple[Price, ...]:
    return tuple(
        validated(Price, {"read": read, **(as_object(row) or {})}, f"{where}, price {number}")
        for number, row in enumerate(rows, start=1)
    )


def _address(url: str) -> str:
    """Return the address without secrets, and without the suffix `/v1`, which may be omitted."""
    return shown_url(url).rstrip("/").removesuffix("/v1")


def _marks(provider: Provider) -> tuple[str, str, str]:
    marks = provider.fingerprint()
    return str(marks.get("provider", "")), str(marks.get("base_url", "")), str(marks.get("model", ""))


def _first(prices: Iterable[Price], kind: str, base_url: str, model: str) -> Price | None:
    return next((price for price in prices if price.holds(kind, base_url, model)), None)


@lru_cache(maxsize=256)
def _listed(kind: str, base_url: str, model: str) -> Price | None:
    return _first(_list().own, "openai" if kind == "openai-embeddings" else kind, base_url, model)


@lru_cache(maxsize=1)
def _list() -> Prices:
    import tomllib

    table = tomllib.loads(files("merilo").joinpath("providers", TABLE).read_text(encoding="utf-8"))
    return Prices(_rows(table["price"], TABLE, table["read"]))
