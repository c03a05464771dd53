"""The means of a run with their intervals as a figure: SVG without scripts or styles, for notebooks and documents."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.rendering.markup import Markup, el, write_page
from merilo.rendering.wording import number, percent, span
from merilo.short_repr import short_repr

if TYPE_CHECKING:
    from os import PathLike

    from merilo.runs.manifest import Aggregate
    from merilo.runs.run import Run

_WIDTH, _LEFT, _RIGHT, _TOP, _ROW = 760, 260, 560, 34, 26
"""Pixels: the whole width, the ends of the axis, and the heights of the title and of a row."""
_INK, _SOFT = "#1a1c1f", "#575b62"
_TICKS: Final = 4


@dataclass(frozen=True, slots=True)
class IntervalPlot:
    """A figure; a notebook shows it, `save` writes it, and `svg` is its text."""

    svg: str

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the figure to a file (.svg) and return its path. Raises RunError if writing fails."""
        write_page(Path(path), self.svg + "\n")
        return Path(path)

    def _repr_svg_(self) -> str:
        """Return the figure for notebooks."""
        return self.svg

    def __repr__(self) -> str:
        return short_repr(self, characters=len(self.svg))


def run_plot(run: Run) -> IntervalPlot:
    """Return the figure: one row per metric, with the mean and interval that every page shows."""
    rows = [run[metric] for metric in run.metrics]
    ends = [0.0, 1.0, *(each for row in rows for each in (row.mean, *(row.interval or ())) if each is not None)]
    axis = _Axis(min(ends), max(ends))
    levels = ", ".join(dict.fromkeys(percent(row.level) for row in rows))
    title = f"{run.path.resolve().name}: means with {levels} intervals, {run.done:,} samples"
    bottom = _TOP + _ROW * len(rows)
    ticks = [axis.low + (axis.high - axis.low) * tick / _TICKS for tick in range(_TICKS + 1)]
    drawn = [
        el("rect", width=_WIDTH, height=bottom + 30, fill="#ffffff"),
        _text(title, 12, 20),
        [_line((axis.at(each), axis.at(each)), (_TOP, bottom), "#e4e4e0") for each in ticks],
        [_text(f"{each:.3g}", axis.at(each), bottom + 16, anchor="middle", fill=_SOFT) for each in ticks],
        [_row(row, _TOP + _ROW * (place + 0.5), axis) for place, row in enumerate(rows)],
    ]
    svg = el(
        "svg",
        drawn,
        xmlns="http://www.w3.org/2000/svg",
        width=_WIDTH,
        height=bottom + 30,
        viewBox=f"0 0 {_WIDTH} {bottom + 30}",
        font_family="system-ui, sans-serif",
        font_size=12,
        role="img",
        aria_label=title,
    )
    return IntervalPlot(svg)


class _Axis(NamedTuple):
    low: float
    high: float

    def at(self, value: float) -> str:
        """Return the position of a value in pixels."""
        return f"{_LEFT + (value - self.low) / (self.high - self.low) * (_RIGHT - _LEFT):.1f}"


def _row(row: Aggregate, y: float, axis: _Axis) -> list[Markup | None]:
    interval, mean = row.interval, row.mean
    values = f"{number(mean)} ({'no interval' if interval is None else span(interval)})"
    return [
        _text(row.metric, _LEFT - 12, y + 4, anchor="end"),
        None if interval is None else _line((axis.at(interval[0]), axis.at(interval[1])), (y, y), "#3f8fc7", 4),
        None if mean is None else el("circle", cx=axis.at(mean), cy=y, r=4, fill=_INK),
        _text(values, _RIGHT + 12, y + 4, fill=_SOFT),
    ]


def _line(x: tuple[str, str], y: tuple[float, float], colour: str, width: int = 1) -> Markup:
    return el("line", x1=x[0], x2=x[1], y1=y[0], y2=y[1], stroke=colour, stroke_width=width)


def _text(text: str, x: float | str, y: float, *, anchor: str = "start", fill: str = _INK) -> Markup:
    return el("text", text, x=x, y=y, fill=fill, text_anchor=anchor)
