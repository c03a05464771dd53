"""The means of a run with their intervals as a figure: SVG without scripts or styles, for notebooks and documents."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from merilo.rendering.markup import Markup, el, write_page
from merilo.rendering.wording import number, percent, span

if TYPE_CHECKING:
    from os import PathLike

    from merilo.runs.run import Run

_AXIS, _VALUES, _TOP, _ROW = 300, 170, 34, 26
"""Pixels: the widths of the axis and of the numbers next to it, and the heights of the title and of a row."""
_INK, _SOFT, _LINE, _BAR = "#1a1c1f", "#575b62", "#e4e4e0", "#3f8fc7"
_TICKS: Final = 4
_SVG, _FONT = "http://www.w3.org/2000/svg", "font: 12px sans-serif"


@dataclass(frozen=True, slots=True)
class IntervalPlot:
    """A figure; a notebook shows it, `save` writes it, and `svg` is its text."""

    svg: str = field(repr=False)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the figure to a file (.svg) and return its path. Raises RunError if writing fails."""
        write_page(Path(path), self.svg + "\n")
        return Path(path)

    def _repr_svg_(self) -> str:
        """Return the figure for notebooks."""
        return self.svg


def run_plot(run: Run) -> IntervalPlot:
    """Return the figure: one row per metric, with the mean and interval that every page shows."""
    rows = [run[metric] for metric in run.metrics]
    ends = [0.0, 1.0, *(each for row in rows for each in (row.mean, *(row.interval or ())) if each is not None)]
    low, high = float(min(ends)), float(max(ends))
    left, bottom = 24 + 7 * max(len(row.metric) for row in rows), _TOP + _ROW * len(rows)

    def at(value: float) -> float:
        return round(left + (value - low) / (high - low) * _AXIS, 1)

    levels = ", ".join(dict.fromkeys(percent(row.level) for row in rows))
    title = f"{run.path.resolve().name}: means with {levels} intervals, {run.done:,} samples"
    width, height = left + _AXIS + _VALUES, bottom + 30
    drawn = [el("rect", width=width, height=height, fill="#ffffff"), _text(title, 12, 20)]
    for tick in (low + (high - low) * place / _TICKS for place in range(_TICKS + 1)):
        drawn.append(el("line", x1=at(tick), x2=at(tick), y1=_TOP, y2=bottom, stroke=_LINE))
        drawn.append(_text(f"{tick:.3g}", at(tick), bottom + 16, anchor="middle", fill=_SOFT))
    for y, row in enumerate(rows):
        middle, interval = _TOP + _ROW * (y + 0.5), row.interval
        drawn.append(_text(row.metric, left - 12, middle + 4, anchor="end"))
        if interval is not None:
            low_end, high_end = map(at, interval)
            drawn.append(el("line", x1=low_end, x2=high_end, y1=middle, y2=middle, stroke=_BAR, stroke_width=4))
        if row.mean is not None:
            drawn.append(el("circle", cx=at(row.mean), cy=middle, r=4, fill=_INK))
        values = f"{number(row.mean)} ({'no interval' if interval is None else span(interval)})"
        drawn.append(_text(values, left + _AXIS + 12, middle + 4, fill=_SOFT))
    named = el("title", title)
    return IntervalPlot(el("svg", named, drawn, xmlns=_SVG, width=width, height=height, style=_FONT, role="img"))


def _text(text: str, x: float, y: float, *, anchor: str = "start", fill: str = _INK) -> Markup:
    return el("text", text, x=x, y=y, fill=fill, text_anchor=anchor)
