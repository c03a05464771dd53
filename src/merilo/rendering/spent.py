"""The usage of a run in one line: requests, tokens, money and time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from merilo.rendering.wording import count

if TYPE_CHECKING:
    from collections.abc import Mapping


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
        parts.append(f"{given:,} tokens in, {made:,} out")
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
