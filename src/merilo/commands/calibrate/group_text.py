"""A judge's rates by group, as tables and as JSON objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from merilo.rendering.correction import measured_record
from merilo.rendering.page import Span, Tone, columns, cut
from merilo.rendering.sanitize import clean
from merilo.rendering.wording import NONE, count, number, percent, span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.commands.calibrate.agreement import FieldRates
    from merilo.rendering.page import Page
    from merilo.stats.group_rates import GroupRates
    from merilo.stats.resampling import Measurement

_SHOWN: Final = 20
_WIDEST: Final = 24


def group_tables(page: Page, found: Sequence[FieldRates], *, graded: bool, level: float) -> None:
    """Add a table for each field. `graded`: True if labels are grades, of which those from 1 on count as yes."""
    for each in found:
        page.text(f"Errors by {clean(each.field)}:", indent=4)
        shown = each.groups[:_SHOWN]
        rows = [("", "yes", "sensitivity", "no", "specificity"), *map(_row, shown)]
        for place, line in enumerate(columns(rows, left=frozenset({0}))):
            page.line("      ", Span(line.rstrip(), Tone.PLAIN if place else Tone.STRONG))
        if more := len(each.groups) - len(shown):
            page.text(f"And {count(more, 'smaller group')}, which --json lists.", indent=6)
    if found:
        meant = " (a grade of at least 1)" if graded else ""
        page.text(
            f"yes, no: number of items with that human label{meant}. sensitivity: fraction of yes that the judge "
            f"found; specificity: fraction of no that it found; {percent(level)} intervals, at least 10 labels each.",
            indent=4,
            tone=Tone.QUIET,
        )


def group_record(found: GroupRates) -> dict[str, Any]:  # Any: JSON
    """Return a group as a JSON-able object."""
    return {
        "group": found.group,
        "items": found.items,
        "yes": found.yes,
        "no": found.no,
        "yes_found": found.yes_found,
        "no_found": found.no_found,
        "sensitivity": measured_record(found.sensitivity),
        "specificity": measured_record(found.specificity),
    }


def _row(found: GroupRates) -> tuple[str, ...]:
    return (
        "(none)" if found.group is None else cut(found.group, _WIDEST),
        f"{found.yes:,}",
        _rate(found.sensitivity),
        f"{found.no:,}",
        _rate(found.specificity),
    )


def _rate(found: Measurement) -> str:
    if found.value is None:
        return found.interval.note or NONE
    ends = found.interval.ends
    return f"{number(found.value)} ({'no interval' if ends is None else span(ends)})"
