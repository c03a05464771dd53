"""The decisions on a run as one JSON object, as a page, and as JUnit XML."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from merilo.commands.gate.deciding import deciding_text
from merilo.commands.gate.result import CannotTell, Kind
from merilo.rendering.overview import command
from merilo.rendering.page import Page, Span, Tone
from merilo.rendering.sanitize import clean
from merilo.rendering.wording import OWN_ERROR, about, covers_imported
from merilo.results.basis import Basis
from merilo.runs.run import Run
from merilo.stats.distributions import normal_quantile
from merilo.stats.gate import GateVerdict
from merilo.stats.label_power import LabelSpread, labels_needed
from merilo.stats.power import POWER, samples_for

if TYPE_CHECKING:
    from merilo.commands.gate.result import Gate, Gates
    from merilo.stats.gate import Decision

_TONES = {GateVerdict.PASS: Tone.GOOD, GateVerdict.FAIL: Tone.BAD, GateVerdict.CANNOT_TELL: Tone.STRONG}
_SHOWN = 5


def gates_record(found: Gates) -> dict[str, Any]:  # Any: JSON
    """Return the decisions as a JSON-able object."""
    return {
        "run": str(found.run),
        "baseline": None if found.baseline is None else str(found.baseline),
        "verdict": found.verdict.value,
        "passed": found.passed,
        "counts": found.counts,
        "losses": [gate.metric for gate in found.losses],
        "other_questions": found.other_questions,
        "run_only": found.run_only,
        "baseline_only": found.baseline_only,
        "level": found.level,
        "cluster": found.cluster,
        "cannot_tell": None if found.cannot_tell is None else found.cannot_tell.value,
        "by_judge_alone": bool(found.by_judge_alone),
        "holm": found.holm,
        "gates": [_record(gate) for gate in found.gates],
        "notes": list(found.notes),
    }


def gates_page(found: Gates, width: int) -> Page:
    """Return the page with every decision, and with advice on those that cannot tell."""
    page = Page(width)
    baseline = "" if found.baseline is None else f" vs. {found.baseline}"
    page.line(Span(found.headline, _TONES[found.verdict]))
    page.line(Span(clean(f"{found.run}{baseline}"), Tone.QUIET))
    if found.warning:
        page.text(found.warning, tone=Tone.BAD)
    page.blank()
    passed = [gate for gate in found.gates if gate.verdict is GateVerdict.PASS]
    column = len(GateVerdict.CANNOT_TELL.value) + 2
    for gate in (*found.obstacles, *passed):
        page.entry(gate.verdict.value, gate.reading, column=column, tone=_TONES[gate.verdict])
    page.blank()
    page.text(f"Limits {_covered(found)}.", tone=Tone.QUIET)
    for note in filter(None, (found.weak_note, *found.notes)):
        page.text(note, tone=Tone.QUIET)
    _undecided(page, found)
    return page


def _covered(found: Gates) -> str:
    """Return which errors the limits cover."""
    bases = {gate.basis for gate in found.gates}
    if Basis.LABELS in bases:
        return "cover sampling of questions and the judge's error" + (" if corrected" if len(bases) > 1 else "")
    return covers_imported() if found.foreign else OWN_ERROR


def junit_text(found: Gates) -> str:
    """Return JUnit XML with one test per gate, for build servers.

    A gate that cannot tell is an error; if the suite lets it pass, it is skipped, and if the suite lets it fail, a
    failure. Its text has the samples that decide it. The time is that of the evaluation, in seconds.
    """
    suite = ET.Element("testsuite", name="merilo gate", tests=str(len(found.gates)))
    seconds = Run.open(found.run).usage.get("seconds")
    if seconds is not None:
        suite.set("time", f"{seconds:.3f}")
    counts = {"failures": 0, "errors": 0, "skipped": 0}
    for gate in found.gates:
        asked = f"{'at least' if gate.higher_is_better else 'at most'} {gate.asked:g}"
        asked = asked if gate.kind is Kind.MINIMUM else f"a drop of at most {gate.asked:g}"
        case = ET.SubElement(
            suite, "testcase", classname=f"merilo.{gate.kind.value}", name=clean(f"{gate.metric}: {asked}")
        )
        kind = _junit_kind(gate, found)
        if kind is None:
            ET.SubElement(case, "system-out").text = clean(gate.reading)
        else:
            counts[kind if kind == "skipped" else f"{kind}s"] += 1
            result = ET.SubElement(case, kind, message=clean(gate.reading), type=gate.verdict.value)
            result.text = deciding_text(found, gate) or None
    for name, amount in counts.items():
        suite.set(name, str(amount))
    ET.SubElement(suite, "system-out").text = clean(
        "\n".join(filter(None, (found.headline, found.warning, found.weak_note)))
    )
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(suite, encoding="unicode") + "\n"


def _junit_kind(gate: Gate, found: Gates) -> str | None:
    """Return the name of the XML element for the result of a test; None if it passed."""
    if gate.verdict is GateVerdict.CANNOT_TELL:
        known = {None: "error", CannotTell.PASS: "skipped", CannotTell.FAIL: "failure"}
        return known[found.cannot_tell]
    return "failure" if gate.verdict is GateVerdict.FAIL else None


def _record(gate: Gate) -> dict[str, Any]:  # Any: JSON
    decision = gate.decision
    return {
        "metric": gate.metric,
        "weak": gate.weak,
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
        "same_outputs": gate.same_outputs,
        "loss": gate.loss,
        "deciding": list(gate.deciding),
        "would": None if gate.decision.would is None else gate.decision.would.value,
        "basis": gate.basis.value,
        "labelled": gate.labelled,
        "by_judge": None if gate.by_judge is None else _decision(gate.by_judge),
        "withheld": gate.withheld or None,
        "reading": gate.reading,
    }


def _decision(found: Decision) -> dict[str, Any]:  # Any: JSON
    return {"verdict": found.verdict.value, "value": found.value, "lower": found.lower, "upper": found.upper}


def _undecided(page: Page, found: Gates) -> None:
    """Add advice on how to decide the gates that cannot tell."""
    undecided = [gate for gate in found.gates if gate.verdict is GateVerdict.CANNOT_TELL]
    if not undecided:
        return
    page.heading("How to decide")
    for gate in undecided:
        page.text(f"{gate.metric}: {_advice(gate)}", indent=2)
        if gate.withheld or gate.basis is Basis.LABELS:
            page.line("    " + _label_command(found, gate))
        for sample in gate.deciding[:_SHOWN]:
            page.line("    " + command("show", str(found.run), "--sample", sample))
        if len(gate.deciding) > _SHOWN:
            rest = ", ".join(shlex.quote(clean(sample)) for sample in gate.deciding[_SHOWN:])
            page.text(f"and {rest}", indent=4)


def _label_command(found: Gates, gate: Gate) -> str:
    """Return the command that draws and asks for labels."""
    runs = [str(found.run)]
    if gate.kind is Kind.DROP and found.baseline is not None:
        runs.insert(0, str(found.baseline))
    if gate.withheld:
        return command("label", *runs, "--metric", gate.metric, "-o", "labels.jsonl", "--ask")
    # The draw that these labels are from has no more tasks: another seed draws others, into another file.
    seed = str(gate.labelled)
    return command("label", *runs, "--metric", gate.metric, "--seed", seed, "-o", f"labels-{seed}.jsonl", "--ask")


def _advice(gate: Gate) -> str:
    if gate.withheld:
        return "label some samples."
    if gate.basis is Basis.LABELS:
        return f"label more samples. Their labels are added to those so far.{_needed(gate)}"
    if gate.deciding:
        some = "this failed sample" if len(gate.deciding) == 1 else f"these {len(gate.deciding)} failed samples"
        end = "best" if gate.decision.would is GateVerdict.PASS else "worst"
        score = "the same score in both runs" if gate.kind is Kind.DROP else f"the {end} score"
        return f"would {gate.decision.would} if {some} had {score}. Run them again with --retry-failed:"
    if gate.decision.lower is None:
        return "use more or other samples."
    return f"use more samples.{_needed(gate)}"


def _needed(gate: Gate) -> str:
    """Return a sentence on the number of samples or labels that would decide; empty if it cannot be estimated."""
    decision = gate.decision
    error = _error(decision)
    if gate.sequential or error is None or decision.value is None:
        return ""
    effect = abs(decision.value - (gate.asked if gate.kind is Kind.MINIMUM else -gate.asked))
    what = "mean" if gate.kind is Kind.MINIMUM else "difference"
    if gate.basis is Basis.LABELS:
        judged = None if gate.by_judge is None else _error(gate.by_judge)
        spread = None if judged is None else LabelSpread.corrected(error, judged, gate.labelled, gate.samples)
        needed = None if spread is None else labels_needed(effect, spread, two_sided=False, level=decision.level)
        done, thing = gate.labelled, "labelled samples"
    else:
        detectable = error * (normal_quantile(decision.level) + normal_quantile(POWER))
        needed, done, thing = samples_for(effect, detectable, gate.samples), gate.samples, "samples"
    if needed is None or needed <= done:
        return ""
    return f" About {about(needed)} {thing} would decide if the {what} stays."


def _error(decision: Decision) -> float | None:
    """Return the standard error that the limits imply; None without limits."""
    if decision.lower is None or decision.upper is None:
        return None
    return (decision.upper - decision.lower) / (2 * normal_quantile(decision.level))
