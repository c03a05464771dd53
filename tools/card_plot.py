"""A reliability plot as SVG: the rate of human yes labels against the judge's probability."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

SIZE: Final = 300
_LEFT, _TOP, _SIDE = 46, 26, 226
_INK: Final = "#767676"
"""Grey with a contrast of at least 4.5 to white and to black, so that one file fits light and dark pages."""
_POINT: Final = "#2a7fd4"
_Z: Final = 1.959964


def reliability(title: str, bins: Sequence[Mapping[str, Any]]) -> str:  # Any: JSON
    """Return the plot; each bin has `n`, `probability` (mean) and `observed` (rate of yes). Bars: Wilson, 95 %."""
    points = "".join(_point(each) for each in bins)
    ticks = "".join(_ticks())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE} {SIZE}" width="{SIZE}" height="{SIZE}" '
        f'font-family="sans-serif" font-size="11" fill="{_INK}">\n'
        f"<title>{title}: reliability</title>\n"
        f'<text x="{_LEFT + _SIDE / 2}" y="15" text-anchor="middle" font-weight="bold">{title}</text>\n'
        f'<rect x="{_LEFT}" y="{_TOP}" width="{_SIDE}" height="{_SIDE}" fill="none" stroke="{_INK}"/>\n'
        f'<path d="M{_x(0)} {_y(0)}L{_x(1)} {_y(1)}" stroke="{_INK}" stroke-dasharray="4 3"/>\n'
        f"{ticks}{points}"
        f'<text x="{_LEFT + _SIDE / 2}" y="{SIZE - 6}" text-anchor="middle">probability of the judge</text>\n'
        f'<text transform="translate(12 {_TOP + _SIDE / 2}) rotate(-90)" text-anchor="middle">'
        "share of yes by people</text>\n</svg>\n"
    )


def _point(each: Mapping[str, Any]) -> str:  # Any: JSON
    at, share = _x(each["probability"]), each["observed"]
    low, high = wilson(share, each["n"])
    told = f"probability {each['probability']:.2f}, yes {share:.2f}, {each['n']} items"
    return (
        f'<g fill="{_POINT}" stroke="{_POINT}"><title>{told}</title><path d="M{at} {_y(low)}V{_y(high)}"/>'
        f'<circle cx="{at}" cy="{_y(share)}" r="4"/></g>\n'
    )


def _ticks() -> Iterator[str]:
    for tick in (0, 0.5, 1):
        yield f'<text x="{_x(tick)}" y="{_y(0) + 15}" text-anchor="middle">{tick:g}</text>\n'
        yield f'<text x="{_LEFT - 5}" y="{_y(tick) + 4}" text-anchor="end">{tick:g}</text>\n'


def wilson(share: float, count: int) -> tuple[float, float]:
    """Return the 95 % interval of a proportion, treating its items as independent (Wilson, JASA 22 (1927))."""
    spread = _Z * sqrt(share * (1 - share) / count + _Z**2 / (4 * count**2))
    middle, scale = share + _Z**2 / (2 * count), 1 + _Z**2 / count
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)


def _x(value: float) -> float:
    return round(_LEFT + _SIDE * value, 1)


def _y(value: float) -> float:
    return round(_TOP + _SIDE * (1 - value), 1)
