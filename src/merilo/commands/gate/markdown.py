"""The decisions on a run as Markdown and as annotations, for a build server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from merilo.commands.gate.deciding import deciding_text
from merilo.commands.gate.result import CannotTell
from merilo.rendering.ci import Annotation, blocks_within, code, details, markdown_table
from merilo.stats.gate import GateVerdict

if TYPE_CHECKING:
    from merilo.commands.gate.result import Gates


def gates_markdown(found: Gates) -> str:
    """Return every decision, and the samples that decide those that did not pass, within 60,000 characters."""
    baseline = "" if found.baseline is None else f" vs. {code(str(found.baseline))}"
    blocks = [f"### {found.headline}", f"{code(str(found.run))}{baseline}"]
    if found.warning:
        blocks.append(f"> **Warning:** {code(found.warning)}")
    passed = [gate for gate in found.gates if gate.verdict is GateVerdict.PASS]
    rows = [(f"**{gate.verdict}**", code(gate.reading)) for gate in (*found.obstacles, *passed)]
    blocks.append(markdown_table(("verdict", "gate"), ("---", "---"), rows))
    notes = [f"- {code(note)}" for note in filter(None, (found.weak_note, *found.notes))]
    if notes:
        blocks.append("\n".join(notes))
    optional: list[str] = []
    for gate in found.obstacles:
        if text := deciding_text(found, gate):
            optional.append(details(f"Samples that decide {gate.metric}", text))  # noqa: PERF401  as a loop it reads
    return blocks_within(blocks, optional)


def gates_annotations(found: Gates) -> list[Annotation]:
    """Return an error for each gate that stops the build, and a warning for each other one that did not pass."""
    annotations = [
        Annotation("error" if _stops(found, gate.verdict) else "warning", f"merilo gate: {gate.verdict}", gate.reading)
        for gate in found.obstacles
    ]
    if found.warning:
        annotations.append(Annotation("warning", "merilo gate", found.warning))
    return annotations


def _stops(found: Gates, verdict: GateVerdict) -> bool:
    return verdict is GateVerdict.FAIL or found.cannot_tell is not CannotTell.PASS
