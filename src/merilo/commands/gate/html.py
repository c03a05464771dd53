"""The decisions on a run as the table that a notebook shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from merilo.rendering.html import rendered
from merilo.stats.gate import GateVerdict

if TYPE_CHECKING:
    from merilo.commands.gate.result import Gates


def gates_table(found: Gates) -> str:
    """Return one row per gate, those that did not pass first, everything in it escaped."""
    baseline = "" if found.baseline is None else f" vs. {found.baseline}"
    passed = [gate for gate in found.gates if gate.verdict is GateVerdict.PASS]
    return rendered(
        "table",
        caption=f"{found.run}{baseline}: {found.headline}",
        head=("metric", "verdict", "result"),
        rows=[(gate.metric, gate.verdict.value, gate.reading) for gate in (*found.obstacles, *passed)],
        text=(1, 2),
        basis=" ".join(filter(None, (found.warning, found.weak_note, *found.notes))),
    )
