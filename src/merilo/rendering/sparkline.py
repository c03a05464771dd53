"""The drawing of one number over days, as values of the template `parts.html`."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from merilo.numbers import number

if TYPE_CHECKING:
    from collections.abc import Sequence

_WIDTH, _HEIGHT, _EDGE = 190, 44, 5
"""The sizes of the drawing in the template."""
_SAID: Final = 20
"""Number of values in the text for screen readers, the newest ones."""


class Point(NamedTuple):
    """One value."""

    place: int
    """The index of its day."""
    mean: float
    interval: tuple[float, float] | None


def sparkline(
    title: str, span: tuple[float, float], lines: Sequence[Sequence[Point]], days: int
) -> dict[str, Any]:  # Any: values of a template
    """Return the drawing. Days have equal distances, in their order; the height is the span, if it is finite."""
    points = sorted((point for line in lines for point in line), key=lambda point: point.place)
    low, high = span
    if not isfinite(high - low) or high <= low:
        values = [value for point in points for value in (point.mean, *(point.interval or ()))]
        low, high = min(values), max(values)
    low, high = (low, high) if high > low else (low - 0.5, low + 0.5)
    step = (_WIDTH - 2 * _EDGE) / max(1, days - 1)

    def at(point: Point, value: float) -> str:
        y = _HEIGHT - _EDGE - (min(max(value, low), high) - low) / (high - low) * (_HEIGHT - 2 * _EDGE)
        return f"{_EDGE + point.place * step:.1f} {y:.1f}"

    def path(line: Sequence[Point]) -> dict[str, str]:
        known = [(point, point.interval) for point in line if point.interval is not None]
        band = [*(at(point, ends[1]) for point, ends in known), *(at(point, ends[0]) for point, ends in known[::-1])]
        means = [at(point, point.mean) for point in line]
        return {"band": "L".join(band), "path": "L".join(means), "end": means[-1]}

    label = f"{title} over {len(points)} days: {', '.join(number(point.mean) for point in points[-_SAID:])}"
    return {"label": label, "span": f"{low:.2f} - {high:.2f}", "lines": [*map(path, lines)]}
