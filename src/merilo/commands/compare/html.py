"""A comparison of runs as a static page, and as the table that a notebook shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from merilo.commands.compare import wording as words
from merilo.rendering.html import Plot, plot, rendered
from merilo.rendering.html_evidence import evidence_part, text_part, value_cell
from merilo.rendering.weak import WeakMarks
from merilo.rendering.wording import number

if TYPE_CHECKING:
    from merilo.commands.compare.result import Moved, Row, RunComparison


@dataclass(frozen=True, slots=True)
class Pair:
    """A table about two of the runs."""

    heading: str
    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    text: tuple[int, ...] = ()
    """Indices of the columns that hold text."""
    plot: Plot | None = None


def comparison_html(found: RunComparison) -> str:
    """Return the whole comparison with all samples in it as one HTML file."""
    return rendered(
        "comparison",
        title=words.title(found),
        beware=words.beware(found),
        pairs=[_pair(found, other) for other in range(1, len(found.sides))],
        basis=words.basis(found),
        family=words.family(found),
        readings=words.readings(found),
        measured=[_measured(found, other) for other in range(1, len(found.sides))],
        legend=words.legend(found),
        notes=words.comparison_notes(found),
        moved=[_moved(found, each) for each in found.moved],
        moved_title=words.moved_title(found),
    )


def comparison_table(found: RunComparison) -> str:
    """Return only the paired tables, without a style sheet."""
    return "\n".join(
        rendered(
            "table",
            caption=pair.caption,
            head=pair.head,
            rows=pair.rows,
            text=pair.text,
            basis=words.basis(found),
        )
        for pair in (_pair(found, other) for other in range(1, len(found.sides)))
    )


def _rows(found: RunComparison, other: int) -> list[Row]:
    return [row for row in found.rows if row.other == other]


def _pair(found: RunComparison, other: int) -> Pair:
    rows = _rows(found, other)
    level = words.level_text(found)
    return Pair(
        heading="Differences" if len(found.sides) == 2 else words.pair_title(found, other),
        caption=f"{words.pair_title(found, other)}: means over the pairs, and their difference",
        head=("metric", found.names[0], found.names[other], "difference", f"{level} interval", "pairs", "conclusion"),
        rows=tuple(
            (
                words.marked(row),
                number(row.comparison.first),
                number(row.comparison.second),
                words.signed(row.comparison.difference),
                words.interval(row.comparison),
                f"{row.comparison.counts.pairs:,}",
                words.reading(found, row),
            )
            for row in rows
        ),
        text=(6,),
        plot=plot(
            "plot, 0 dashed", ((row.comparison.difference, row.comparison.interval.ends) for row in rows), zero=0.0
        ),
    )


def _measured(found: RunComparison, other: int) -> Pair:
    return Pair(
        heading="",
        caption=f"{words.pair_title(found, other)}: statistics",
        head=("metric", *words.MEASURES),
        rows=tuple((words.marked(row), *words.measures(row)) for row in _rows(found, other)),
    )


def _moved(found: RunComparison, each: Moved) -> dict[str, Any]:  # Any: what the template shows of a sample
    marks = WeakMarks(found.weak)
    metrics = list(dict.fromkeys([found.moved_by or "", *(row.metric for row in found.rows)]))
    return {
        "sample": each.sample,
        "step": f"{words.moved_by(found)} {words.signed(each.step)}",
        "text": text_part(each.cases[0]),
        "head": ("metric", *found.names),
        "rows": [
            (marks.name(metric), *(value_cell(case.result.outcomes.get(metric)) for case in each.cases))
            for metric in metrics
        ],
        "sides": [evidence_part(case, name) for name, case in zip(found.names, each.cases, strict=True)],
    }
