"""Figures as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

NONE: Final = "–"


def between(value: float, interval: Sequence[float], digits: int = 2) -> str:
    """Return a measure with its interval, such as `0.71 [0.65, 0.76]`."""
    low, high = (_number(end, digits) for end in interval)
    return f"{_number(value, digits)} [{low}, {high}]"


def percent(value: float | None, digits: int = 1) -> str:
    """Return a fraction as a percentage, such as `3.1 %`."""
    return NONE if value is None else f"{_number(100 * value, digits)} %"


def amount(value: float) -> str:
    """Return a number with three significant digits."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> str:
    """Return a Markdown table whose first `left` columns are left-aligned and the others right-aligned."""
    rule = ["---" if place < left else "---:" for place in range(len(head))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))


def _number(value: float, digits: int) -> str:
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")
