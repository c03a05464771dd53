"""The means of a run with their intervals as one SVG drawing, without a plotting library."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Final

from merilo.renderers import Drawing
from merilo.rendering.aggregate import interval_heading
from merilo.rendering.html import rendered
from merilo.rendering.wording import number, span
from merilo.runs.scales import NO_SCALE, recorded_scale

if TYPE_CHECKING:
    from merilo.runs.manifest import Aggregate
    from merilo.runs.run import Run

_LEFT: Final = 270
"""Where the scale begins, after the names, and the end of the scale before it."""
_WIDTH: Final = 300
_ROW: Final = 26
_TOP: Final = 34
_NAME_CHARS: Final = 32


@dataclass(frozen=True, slots=True)
class _Bar:
    """One metric; x coordinates are None if there is no such value."""

    name: str
    text: str
    y: int
    low: str
    high: str
    """The ends of the scale as text."""
    value: str | None
    start: str | None
    end: str | None


def run_plot(run: Run) -> Drawing:
    """Return the drawing, one row per metric in the run's order, everything in it escaped."""
    aggregates = tuple(run.metrics.values())
    bars = [_bar(run, each, _TOP + _ROW * at + _ROW // 2) for at, each in enumerate(aggregates)]
    svg = rendered(
        "intervals",
        title=f"Means of {run.manifest.data}, {interval_heading(aggregates)}",
        bars=bars,
        left=_LEFT,
        right=_LEFT + _WIDTH,
        width=_LEFT + _WIDTH + 230,
        height=_TOP + _ROW * len(bars) + 8,
    )
    return Drawing(svg)


def _bar(run: Run, found: Aggregate, y: int) -> _Bar:
    low, high = _ends(run, found)
    start, end = found.interval or (None, None)
    interval = "" if found.interval is None else f" ({span(found.interval)})"
    name = found.metric if len(found.metric) <= _NAME_CHARS else f"{found.metric[: _NAME_CHARS - 3]}..."

    def place(value: float | None) -> str | None:
        if value is None:
            return None
        part = (min(max(value, low), high) - low) / (high - low) if high > low else 0.5
        return f"{_LEFT + _WIDTH * part:.1f}"

    return _Bar(
        name=name,
        text=f"{number(found.mean)}{interval}",
        y=y,
        low=f"{low:.3g}",
        high=f"{high:.3g}",
        value=place(found.mean),
        start=place(start),
        end=place(end),
    )


def _ends(run: Run, found: Aggregate) -> tuple[float, float]:
    """Return the metric's range; for an infinite end, the outermost of 0, 1 and its numbers."""
    scale = NO_SCALE if found.parts else recorded_scale(run.manifest, found.metric)
    numbers = [each for each in (0.0, 1.0, found.mean, *(found.interval or ())) if each is not None]
    low, high = scale.span
    return low if isfinite(low) else min(numbers), high if isfinite(high) else max(numbers)
