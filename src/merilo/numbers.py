"""Numbers, counts, sizes, durations and costs as text, the same in every output."""

from __future__ import annotations

from math import floor, log10
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

NONE = "-"
"""Shown in place of a number that is unknown or undefined."""
_DIME = 0.1
_MINUTE, _HOUR = 60, 3_600


def number(value: float | None) -> str:
    """Return a score with three decimals."""
    return NONE if value is None else f"{value:.3f}"


def span(ends: tuple[float | None, float | None] | None) -> str:
    """Return an interval, such as `0.361 - 0.463`; `any` at an end without a limit."""
    return NONE if ends is None else " - ".join("any" if end is None else f"{end:.3f}" for end in ends)


def measured(value: float | None, ends: tuple[float, float] | None, digits: int = 3) -> str:
    """Return a number with its interval, such as `0.690 (0.511 - 0.869)`."""
    if value is None:
        return NONE
    interval = "" if ends is None else f" ({ends[0]:.{digits}f} - {ends[1]:.{digits}f})"
    return f"{value:.{digits}f}{interval}"


def count(amount: int, thing: str, plural: str = "") -> str:
    """Return a number of things: `1 sample`, `1,200 samples`."""
    return f"{amount:,} {thing if amount == 1 else plural or thing + 's'}"


def about(amount: int) -> str:
    """Return a number rounded to two significant digits, such as `1,200` for 1,234."""
    return f"{round(amount, 2 - len(str(amount))) if amount > 99 else amount:,}"


def percent(share: float) -> str:
    """Return a fraction, such as a confidence level, as a percentage: `95 %`, `97.5 %`."""
    return f"{100 * share:.3g} %"


def money(usd: float | None) -> str:
    """Return USD with two decimals, or two significant digits below 0.10: `1.20`, `0.0042`; `unknown` for None."""
    if usd is None:
        return "unknown"
    if usd == 0 or usd >= _DIME:
        return f"{usd:,.2f}"
    return f"{usd:.{1 - floor(log10(usd))}f}"


def size_text(size: int) -> str:
    """Return a number of bytes in a readable unit."""
    for unit, least in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= least:
            return f"{size / least:.3g} {unit}"
    return f"{size:,} bytes"


def duration(seconds: float) -> str:
    """Return a duration in a suitable unit: `40 s`, `12 min`, `3.5 h`."""
    if seconds < 2 * _MINUTE:
        return f"{seconds:.0f} s"
    return f"{seconds / _MINUTE:.0f} min" if seconds < 2 * _HOUR else f"{seconds / _HOUR:.1f} h"


def spent_so_far(usage: Mapping[str, Any]) -> str:  # Any: numbers and nulls
    """Return a sentence for a run that was stopped; empty if it has sent no request."""
    return f"Spent so far: {spent_text(usage)}." if usage.get("requests") else ""


def spent_text(usage: Mapping[str, Any]) -> str:  # Any: numbers and nulls
    """Return requests, cached answers, tokens, money and time in one line."""
    unanswered = usage.get("unanswered")
    parts = [count(usage.get("requests") or 0, "request") + (f" ({unanswered:,} unanswered)" if unanswered else "")]
    if cached := usage.get("cached"):
        parts.append(f"{count(cached, 'answer')} from the cache")
    given, made = usage.get("input_tokens"), usage.get("output_tokens")
    if given is None or made is None:
        parts.append("tokens unknown")
    elif given or made:
        stored = f" ({saved:,} from the provider's cache)" if (saved := usage.get("cached_tokens")) else ""
        parts.append(f"{given:,} tokens in{stored}, {made:,} out")
    cost = usage.get("cost_usd")
    if cached and not usage.get("requests"):
        return ", ".join([*parts, "nothing spent now", f"{usage.get('seconds') or 0:.1f} s"])
    parts.append("price unknown" if cost is None else cost_text(cost, usage) if cost else "free of charge")
    parts.append(f"{usage.get('seconds') or 0:.1f} s")
    return ", ".join(parts)


def cost_text(cost: float, usage: Mapping[str, Any]) -> str:  # Any: numbers and nulls
    """Return a cost with its estimated part, and with what replies that were not received may cost in addition."""
    estimated, more = usage.get("estimated_usd"), usage.get("unanswered_usd")
    parts = [f"{cost:.4f} USD", f", of which {estimated:.4f} USD estimated" if estimated else ""]
    return "".join(parts) + (f" (up to {more:.4f} USD more for unanswered requests)" if more else "")


def signed(value: float | None) -> str:
    """Return a difference with its sign and three decimals."""
    return NONE if value is None else f"{value:+.3f}"


def between(ends: tuple[float, float] | None) -> str:
    """Return the interval of a difference."""
    return "no interval" if ends is None else f"{signed(ends[0])} to {signed(ends[1])}"
