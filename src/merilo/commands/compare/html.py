"""A comparison of runs as the tables that a notebook shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from merilo.commands.compare import wording as words
from merilo.rendering.html import rendered
from merilo.rendering.wording import number

if TYPE_CHECKING:
    from merilo.commands.compare.result import Row, RunComparison


def comparison_table(found: RunComparison) -> str:
    """Return one table for each other run, everything in it escaped."""
    return "\n".join(_pair(found, other) for other in range(1, len(found.sides)))


def _pair(found: RunComparison, other: int) -> str:
    level = words.level_text(found)
    return rendered(
        "table",
        caption=f"{words.pair_title(found, other)}: means over the pairs, and their difference",
        head=("metric", found.names[0], found.names[other], "difference", f"{level} interval", "pairs", "conclusion"),
        rows=[_cells(found, row) for row in found.rows if row.other == other],
        text=(6,),
        basis=words.basis(found),
    )


def _cells(found: RunComparison, row: Row) -> tuple[str, ...]:
    each = row.comparison
    return (
        words.marked(row),
        number(each.first),
        number(each.second),
        words.signed(each.difference),
        words.interval(each),
        f"{each.counts.pairs:,}",
        words.reading(found, row),
    )
