"""Decisions on a run as one JSON object, as a page, and as JUnit's XML, which build servers show as tests."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from merilo.reports.clean import clean
from merilo.reports.gate import Kind
from merilo.reports.overview import command
from merilo.reports.page import Page, Span, Tone
from merilo.reports.words import OWN_ERROR, foreign_error
from merilo.stats.gate import Verdict

if TYPE_CHECKING:
    from merilo.reports.gate import Gate, Gates

_TONES = {Verdict.PASS: Tone.GOOD, Verdict.FAIL: Tone.BAD, Verdict.CANNOT_TELL: Tone.STRONG}
_SHOWN = 5


def gates_record(found: Gates) -> dict[str, Any]:  # Any: JSON
    """The decisions as a JSON-able object."""
    return {
        "run": str(found.run),
        "baseline": None if found.baseline is None else str(found.baseline),
        "verdict": found.verdict.value,
        "passed": found.passed,
        "level": found.level,
        "cluster": found.cluster,
        "cannot_tell": None if found.cannot_tell is None else found.cannot_tell.value,
        "gates": [_record(gate) for gate in found.gates],
        "notes": list(found.notes),
    }


def gates_page(found: Gates, width: int) -> Page:
    """Every decision with its reading, and where it cannot be told what would decide."""
    page = Page(width)
    against = "" if found.baseline is None else f", against {found.baseline}"
    page.line(Span(f"{found.verdict.value}: {clean(str(found.run))}{clean(against)}", _TONES[found.verdict]))
    page.blank()
    passed = [gate for gate in found.gates if gate.verdict is Verdict.PASS]
    column = len(Verdict.CANNOT_TELL.value) + 2
    for gate in (*found.obstacles, *passed):
        page.entry(gate.verdict.value, gate.reading, column=column, tone=_TONES[gate.verdict])
    page.blank()
    page.text(f"Each limit is {foreign_error() if found.foreign else OWN_ERROR}.", tone=Tone.QUIET)
    for note in found.notes:
        page.text(note, tone=Tone.QUIET)
    _untold(page, found)
    return page


def junit_text(found: Gates) -> str:
    """One test a gate, for servers that read JUnit's XML; one that cannot tell is an error, or as it counts."""
    suite = ET.Element("testsuite", name="merilo gate", tests=str(len(found.gates)))
    counts = {"failures": 0, "errors": 0}
    for gate in found.gates:
        asked = f"{'at least' if gate.higher_is_better else 'at most'} {gate.asked:g}"
        asked = asked if gate.kind is Kind.MINIMUM else f"a drop of at most {gate.asked:g}"
        case = ET.SubElement(
            suite, "testcase", classname=f"merilo.{gate.kind.value}", name=clean(f"{gate.metric}: {asked}")
        )
        verdict = gate.verdict
        if verdict is Verdict.CANNOT_TELL and found.cannot_tell is not None:
            verdict = Verdict(found.cannot_tell.value)
        if verdict is not Verdict.PASS:
            kind = "failure" if verdict is Verdict.FAIL else "error"
            counts[f"{kind}s"] += 1
            ET.SubElement(case, kind, message=clean(gate.reading), type=gate.verdict.value)
        else:
            ET.SubElement(case, "system-out").text = clean(gate.reading)
    for name, amount in counts.items():
        suite.set(name, str(amount))
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(suite, encoding="unicode") + "\n"


def _record(gate: Gate) -> dict[str, Any]:  # Any: JSON
    decision = gate.decision
    return {
        "metric": gate.metric,
        "kind": gate.kind.value,
        "asked": gate.asked,
        "strict": gate.strict,
        "higher_is_better": gate.higher_is_better,
        "verdict": gate.verdict.value,
        "value": decision.value,
        "lower": decision.lower,
        "upper": decision.upper,
        "excluded_drop": decision.excluded_drop,
        "samples": gate.samples,
        "missing": gate.missing,
        "sequential": gate.sequential,
        "deciding": list(gate.deciding),
        "would": None if gate.decision.would is None else gate.decision.would.value,
        "reading": gate.reading,
    }


def _untold(page: Page, found: Gates) -> None:
    """What would decide the gates that cannot tell."""
    untold = [gate for gate in found.gates if gate.verdict is Verdict.CANNOT_TELL]
    if not untold:
        return
    page.heading("What would decide")
    for gate in untold:
        page.text(f"{gate.metric}: {_advice(gate)}", indent=2)
        for sample in gate.deciding[:_SHOWN]:
            page.line("    " + command("show", str(found.run), "--sample", sample))
        if len(gate.deciding) > _SHOWN:
            rest = ", ".join(shlex.quote(clean(sample)) for sample in gate.deciding[_SHOWN:])
            page.text(f"and {rest}", indent=4)


def _advice(gate: Gate) -> str:
    if gate.deciding:
        some = "this one sample" if len(gate.deciding) == 1 else f"these {len(gate.deciding)} samples"
        if gate.kind is Kind.DROP:
            return f"it would {gate.decision.would} if {some} came out alike in both runs:"
        end = "best" if gate.decision.would is Verdict.PASS else "worst"
        return f"it would {gate.decision.would} if {some} had the {end} score there is:"
    if gate.decision.lower is None:
        return "more samples, or other ones."
    drop = gate.decision.excluded_drop
    if gate.kind is Kind.DROP and drop is not None:
        return f"more samples (merilo plan --power says how many), or a drop of {drop:.3f} allowed."
    return "more samples; no 20 of these decide it."
