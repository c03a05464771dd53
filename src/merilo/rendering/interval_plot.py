"""The means of a run with their intervals as a figure: SVG without scripts or styles, for notebooks and documents."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from merilo.numbers import number, percent, span
from merilo.rendering.markup import drawn, write_page

if TYPE_CHECKING:
    from os import PathLike

    from merilo.runs.run import Run

_AXIS, _VALUES, _TOP, _ROW = 300, 170, 34, 26
"""Pixels: the widths of the axis and of the numbers next to it, and the heights of the title and of a row."""
_TICKS: Final = 4


@dataclass(frozen=True, slots=True)
class IntervalPlot:
    """A figure; a notebook shows it, `save` writes it, and `svg` is its text."""

    svg: str = field(repr=False)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the figure to a file (.svg) and return its path. Raises RunError if writing fails."""
        write_page(Path(path), self.svg)
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
    steps = [low + (high - low) * place / _TICKS for place in range(_TICKS + 1)]
    ticks = [(at(each), f"{each:.3g}") for each in steps]
    shown = [
        {
            "metric": row.metric,
            "y": _TOP + _ROW * (place + 0.5),
            "interval": row.interval and [*map(at, row.interval)],
            "mean": None if row.mean is None else at(row.mean),
            "text": f"{number(row.mean)} ({'no interval' if row.interval is None else span(row.interval)})",
        }
        for place, row in enumerate(rows)
    ]
    size = {"left": left, "right": left + _AXIS, "top": _TOP, "bottom": bottom, "width": left + _AXIS + _VALUES}
    return IntervalPlot(drawn("plot.svg", title=title, ticks=ticks, rows=shown, **size))
