"""The section of a summary about early stopping (`--until`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from merilo.rendering.page import Page, Tone
from merilo.rendering.weak import WeakMarks
from merilo.rendering.wording import count
from merilo.stats.gate import GateVerdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.runs.run import Run

_TONES = {GateVerdict.PASS: Tone.GOOD, GateVerdict.FAIL: Tone.BAD, GateVerdict.CANNOT_TELL: Tone.STRONG}


def until_section(page: Page, run: Run) -> None:
    """Add the gates, when each was decided, and the samples saved; nothing if the run could not stop early."""
    found = run.until_decided
    if found is None:
        return
    taken, saved = int(found["samples"]), int(found["saved"])
    page.heading(_title(taken, saved, decided=bool(found["decided"])))
    marks = WeakMarks.of(run.manifest)
    for gate in cast("list[dict[str, Any]]", found["gates"]):  # Any: JSON that `merilo.results.early_stopping` made
        verdict = GateVerdict(gate["verdict"])
        page.entry(verdict.value, _gate_text(gate, verdict, marks), column=15, indent=2, tone=_TONES[verdict])
    rule = cast("Mapping[str, object]", run.manifest.until or {})
    units = "Samples" if rule.get("cluster") is None else "Clusters"
    order = f"{units} were taken in random order (seed {rule.get('seed')})."
    page.text(f"{order} {found['note']}", indent=2, tone=Tone.QUIET)


def _title(taken: int, saved: int, *, decided: bool) -> str:
    of = f"{count(taken, 'sample')} of {taken + saved:,}"
    if decided:
        return f"All gates decided after {of}: {count(saved, 'sample')} saved"
    return f"Not all gates decided after {of}"


def _gate_text(gate: dict[str, Any], verdict: GateVerdict, marks: WeakMarks) -> str:  # Any: JSON
    drop = gate["kind"] == "drop"
    bound = f"{'minimum' if gate['higher_is_better'] else 'maximum'} {gate['asked']:g}"
    if drop:
        bound = f"largest drop {gate['asked']:g}"
    limits = "" if gate["lower"] is None else f"; limits {gate['lower']:.3f} to {gate['upper']:.3f}"
    if drop and limits:
        limits = f"; improvement {gate['lower']:+.3f} to {gate['upper']:+.3f}"
    when = "" if verdict is GateVerdict.CANNOT_TELL else f", decided after {count(int(gate['samples']), 'sample')}"
    return f"{marks.name(str(gate['metric']))}: {bound}{limits}{when}."
