"""An estimate as the table that a notebook shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from merilo.commands.plan.text import amount_rows, expected_text, weak_note
from merilo.rendering.html import table_html
from merilo.rendering.wording import count

if TYPE_CHECKING:
    from merilo.engine.amounts import Estimate


def plan_table(found: Estimate) -> str:
    """Return the amounts as an HTML table, everything in it escaped."""
    head, *rows = amount_rows(found)
    left_out = f"Left out: {', '.join(found.left_out)}." if found.left_out else ""
    return table_html(
        caption=f"{found.data}: {count(found.samples, 'sample')}, to be judged by {found.judge}",
        head=head,
        rows=rows,
        text=(),
        basis=" ".join(filter(None, (f"Expected: {expected_text(found)}.", weak_note(found), left_out))),
    )
