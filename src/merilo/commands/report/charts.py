"""Small drawings of a report as SVG: histograms, and intervals on a line. Positions are attributes, not styles."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Final

from merilo.rendering.markup import Markup, el
from merilo.results.faults import judged_metrics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.commands.report.result import Card

_WIDTH, _HEIGHT, _TALL = 72, 36, 24
_FOREST: Final = 400


def histogram(card: Card) -> Markup | None:
    """Return the distribution of a metric's scores with its mean and interval below; None for an infinite range."""
    low, high = card.scale.span
    if not card.bins or not isfinite(high - low):
        return None
    top, wide = max(card.bins), _WIDTH / len(card.bins)
    bars = [
        el(
            "rect",
            cls=f"bar {_end(card, place)}".strip(),
            x=_number(place * wide + 0.5),
            width=_number(wide - 1),
            y=_number(_TALL - _TALL * amount / top),
            height=_number(_TALL * amount / top),
        )
        for place, amount in enumerate(card.bins)
        if amount
    ]
    below = [el("line", cls="ax", x1=0, x2=_WIDTH, y1=_TALL, y2=_TALL)]
    interval, mean = card.aggregate.interval, card.aggregate.mean

    def at(value: float) -> str:
        return _number((min(max(value, low), high) - low) / (high - low) * _WIDTH)

    if interval is not None:
        below.append(el("line", cls="ci", x1=at(interval[0]), x2=at(interval[1]), y1=31, y2=31))
    if mean is not None:
        below.append(el("circle", cls="pt", cx=at(mean), cy=31, r=2.5))
    parts = ", ".join(f"{amount:,}" for amount in card.bins)
    label = f"Samples in ten equal parts of the range: {parts}"
    return el(
        "svg",
        bars,
        below,
        width=_WIDTH,
        height=_HEIGHT,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        aria_label=label,
    )


def forest_row(
    value: float | None, interval: tuple[float, float] | None, reach: float, tone: str, label: str
) -> Markup | None:
    """Return a difference and its interval on a line from -reach to reach, with a dotted line at 0."""
    if value is None:
        return None

    def at(number: float) -> str:
        return _number((min(max(number, -reach), reach) / reach + 1) / 2 * (_FOREST - 12) + 6)

    drawn = [el("line", cls="zero", x1=_FOREST // 2, x2=_FOREST // 2, y1=0, y2=28)]
    if interval is not None:
        drawn.append(el("line", cls=f"reach {tone}".strip(), x1=at(interval[0]), x2=at(interval[1]), y1=14, y2=14))
    drawn.append(el("line", cls="mid", x1=at(value), x2=at(value), y1=7, y2=21))
    return el("svg", drawn, viewBox=f"0 0 {_FOREST} 28", preserveAspectRatio="none", role="img", aria_label=label)


def reach_of(intervals: Sequence[tuple[float, float] | None], values: Sequence[float | None]) -> float:
    """Return the largest distance from 0 among these numbers; at least a small one."""
    found = [abs(end) for pair in intervals for end in pair or ()] + [abs(each) for each in values if each is not None]
    return max([*found, 1e-6])


def _end(card: Card, place: int) -> str:
    """Return the class of a bar: the worse half of a verdict is bad; other scores are neither good nor bad.

    An average of probabilities is not a verdict: the judge's thresholds are not at its middle.
    """
    if card.aggregate.averaged or not judged_metrics([card.metric]):
        return "other"
    low_half = place < len(card.bins) / 2
    return "lo" if low_half == card.scale.higher_is_better else ""


def _number(value: float) -> str:
    return f"{value:.1f}"
