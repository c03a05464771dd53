"""A small drawing of a metric over runs as SVG: a line and a band for each set of comparable runs."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Final

from merilo.rendering.markup import Markup, el
from merilo.rendering.wording import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.commands.view.result import Point, Trend

_WIDTH, _HEIGHT, _EDGE = 190, 44, 5
_SAID: Final = 20
"""Number of means in the text for screen readers, the newest ones."""


def sparkline(trend: Trend, runs: int) -> Markup:
    """Return the drawing. Runs have equal distances, in their order; the height is the range of the metric."""
    low, high = _reach(trend)
    step = (_WIDTH - 2 * _EDGE) / max(1, runs - 1)

    def place(point: Point, value: float) -> str:
        y = _HEIGHT - _EDGE - (min(max(value, low), high) - low) / (high - low) * (_HEIGHT - 2 * _EDGE)
        return f"{_EDGE + point.place * step:.1f} {y:.1f}"

    parts: list[Markup] = []
    for line in trend.lines:
        banded = [(point, point.interval) for point in line if point.interval is not None]
        edges = [place(point, ends[1]) for point, ends in banded]
        edges += [place(point, ends[0]) for point, ends in reversed(banded)]
        if edges:
            parts.append(el("path", cls="band", d=f"M{'L'.join(edges)}Z"))
        parts.append(el("path", cls="line", d=f"M{'L'.join(place(point, point.mean) for point in line)}"))
        parts += [_dot(place(point, point.mean)) for point in (line if len(line) == 1 else line[-1:])]
    base = _HEIGHT - _EDGE
    axis = el("line", cls="ax", x1=_EDGE, x2=_WIDTH - _EDGE, y1=base, y2=base)
    return el(
        "svg",
        axis,
        parts,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        preserveAspectRatio="none",
        role="img",
        aria_label=_label(trend),
    )


def _dot(place: str) -> Markup:
    """Return a dot that stays round if the drawing is stretched: a line without length, with round ends."""
    return el("path", cls="dot", d=f"M{place}h.01")


def _reach(trend: Trend) -> tuple[float, float]:
    low, high = trend.scale.span
    if not isfinite(high - low) or high <= low:
        values = [value for line in trend.lines for point in line for value in (point.mean, *(point.interval or ()))]
        low, high = min(values), max(values)
    return (low, high) if high > low else (low - 0.5, low + 0.5)


def _label(trend: Trend) -> str:
    points: Sequence[Point] = sorted((point for line in trend.lines for point in line), key=lambda point: point.place)
    means = ", ".join(number(point.mean) for point in points[-_SAID:])
    joined = "" if len(trend.lines) == 1 else f", in {len(trend.lines)} sets that are not comparable"
    return f"{trend.metric} over {len(points)} runs{joined}: {means}"
