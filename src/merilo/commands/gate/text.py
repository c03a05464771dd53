"""The decisions on a run as a page, JSON, a table for notebooks, and Markdown, annotations and JUnit XML for builds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final
from xml.etree import ElementTree as ET

from merilo.commands.calibrate.people import next_step
from merilo.commands.compare.caveats import ALL_LABELLED, more_labels, more_questions
from merilo.commands.gate.result import NO_BASELINE, CannotTell, FirstRun, Gate, Gates, Kind
from merilo.data.sanitize import clean, command
from merilo.numbers import number
from merilo.rendering.ci import Annotation, blocks_within, code, details, markdown_table
from merilo.rendering.doc import MARKS
from merilo.rendering.explain import add_evidence
from merilo.rendering.page import Page, Span, Tone, cells_of, cut
from merilo.results.estimate import Basis
from merilo.results.means import CAVEAT
from merilo.results.records import picked
from merilo.results.sample_detail import SampleDetail
from merilo.runs.run import Run
from merilo.runs.run_metrics import recorded_scale, worst_scores
from merilo.stats.distributions import normal_quantile
from merilo.stats.gate import GateVerdict
from merilo.stats.intervals import LEVEL
from merilo.stats.power import POWER

SHOWN: Final = 3
_TEXT: Final = 200


@dataclass(frozen=True, slots=True)
class DecidingSample:
    """A sample that decides a gate; `before`: its score in the baseline, for a gate on a drop."""

    case: SampleDetail
    value: float | None
    before: float | None = None

    @property
    def id(self) -> str:
        """The id of the sample."""
        return self.case.result.sample.id


def deciding_samples(found: Gates, gate: Gate, count: int = SHOWN) -> tuple[DecidingSample, ...]:
    """Return the samples that decide a gate, at most `count`; none if the gate passed.

    If the gate cannot tell because of failed samples, these; for a minimum, the worst scores; for a drop, the largest
    drops. Raises RunError if a run cannot be read.
    """
    if gate.verdict is GateVerdict.PASS:
        return ()
    run = Run.open(found.run)
    if gate.deciding:
        chosen: list[tuple[str, float | None, float | None]] = [(each, None, None) for each in gate.deciding[:count]]
    elif gate.kind is Kind.MINIMUM or found.baseline is None:
        worst = worst_scores(run.manifest, run.brief_records([gate.metric]), gate.metric, count)
        chosen = [(sample, value, None) for sample, value in worst.samples]
    else:
        chosen = list(_drops(run, Run.open(found.baseline), gate.metric, count))
    return tuple(DecidingSample(SampleDetail.of(run, sample), value, before) for sample, value, before in chosen)


def deciding_text(found: Gates, gate: Gate, count: int = SHOWN) -> str:
    """Return the deciding samples of a gate: scores, user input, and the evidence for the score; empty without any."""
    page = Page(100)
    for each in deciding_samples(found, gate, count):
        scores = number(each.value) if each.before is None else f"{number(each.before)} -> {number(each.value)}"
        page.line("  ", Span(clean(each.id), Tone.STRONG), f"  {scores}")
        if text := each.case.result.sample.user_input:
            page.entry("user input", cut(text, _TEXT), column=16, indent=4)
        add_evidence(page, each.case, gate.metric)
    return str(page)


def _drops(run: Run, baseline: Run, metric: str, count: int) -> list[tuple[str, float, float]]:
    """Return the samples with the largest drops: id, score and baseline's score. Equal ids must ask one question."""
    sign = 1 if recorded_scale(run.manifest, metric).higher_is_better else -1
    before, now = _scores(baseline, metric), _scores(run, metric)
    both = [sample for sample in now if sample in before and sign * (before[sample] - now[sample]) > 0]
    both.sort(key=lambda sample: sign * (now[sample] - before[sample]))
    found: list[tuple[str, float, float]] = []
    for sample in both:
        if len(found) == count:
            break
        if run.sample(sample).sample.user_input == baseline.sample(sample).sample.user_input:
            found.append((sample, now[sample], before[sample]))
    return found


def _scores(run: Run, metric: str) -> dict[str, float]:
    values = ((record["sample"], record.get("value")) for record in run.brief_records([metric]))
    return {sample: value for sample, value in values if value is not None}


_MOST = 5
_PLAIN: Final = (Tone.STRONG, "")
_MAX_LINES: Final = 25
_READ: Final = " Read them: "


def gates_record(found: Gates) -> dict[str, Any]:  # Any: JSON
    """Return the decisions as a JSON-able object."""
    return {
        **picked(found, "run baseline verdict passed counts cluster"),
        "level": LEVEL,
        "by_judge_alone": bool(found.by_judge_alone),
        **picked(found, "cannot_tell first_run"),
        "no_baseline": found.no_baseline or None,
        "gates": [_record(found, gate) for gate in found.gates],
        "notes": list(found.notes),
    }


def gates_page(found: Gates, width: int) -> Page:
    """Return the page with every decision, and what to do about those that do not pass.

    If it would have more than 25 lines, it is brief: each decision has its numbers only.
    """
    page = _page(Page(width), found, brief=False)
    return page if len(page.lines) <= _MAX_LINES else _page(Page(width), found, brief=True)


def _page(page: Page, found: Gates, *, brief: bool) -> Page:
    column = len(GateVerdict.CANNOT_TELL.value) + 2
    single = len(found.gates) <= 1 and (found.no_baseline or {found.verdict} == {gate.verdict for gate in found.gates})
    if not single:
        page.line(Span(found.headline, MARKS.get(found.verdict, _PLAIN)[0]))
    if found.no_baseline:
        make = f"Make the baseline: {command('run', '...', '--out', str(found.baseline))}"
        page.entry(NO_BASELINE, f"{found.no_baseline} {make}", column=column, tone=Tone.STRONG)
    passed = [gate for gate in found.gates if gate.verdict is GateVerdict.PASS]
    joined = brief and len(passed) > 1
    kinds = groupby(found.ordered, key=lambda gate: (gate.verdict, gate.withheld, gate.kind))
    for (verdict, withheld, _), own in kinds:
        gates = [] if joined and verdict is GateVerdict.PASS else [*own]
        shared = bool(withheld) and len(gates) > 1
        for gate in gates:
            text = gate.numbers if brief else gate.facts if shared else gate.reading
            page.entry(verdict.value, text, column=column, tone=MARKS[verdict][0])
            if not (shared or (brief and withheld)) and (advice := _short_advice(found, gate, brief=brief)):
                _advise(page, advice, column)
            for sample in gate.deciding[:_MOST]:
                page.line(" " * column + command("show", str(found.run), "--sample", sample))
        if shared or (brief and withheld and gates):
            _advise(page, f"Cannot tell: {withheld}. {gate_advice(found, gates[0])}".rstrip(), column)
    if joined:
        page.entry(
            GateVerdict.PASS.value, f"{', '.join(gate.metric for gate in passed)}.", column=column, tone=Tone.GOOD
        )
    for note in filter(None, (found.weak_note, *found.notes)):
        page.text(note, tone=Tone.QUIET)
    return page


def _advise(page: Page, text: str, indent: int) -> None:
    """Add an advice; the command in one that is longer than a line gets its own."""
    fits = cells_of(text) <= page.width - indent
    for part in [text] if fits else re.split(" (?=Read them: |To decide: )", text):
        page.text(part, indent=indent)


def _short_advice(found: Gates, gate: Gate, *, brief: bool) -> str:
    """Return the advice, without a command that is also in that on a later gate; `brief`: that on the last one only."""
    failed = [each for each in found.gates if each.verdict is GateVerdict.FAIL]
    if gate not in failed:
        return gate_advice(found, gate)
    same = [each for each in failed if _read(found, each) == _read(found, gate)]
    if gate is same[-1]:
        return gate_advice(found, gate)
    return "" if brief else gate_advice(found, gate).partition(_READ)[0]


def junit_text(found: Gates) -> str:
    """Return JUnit XML with one test per gate, for build servers.

    A gate that cannot tell is an error; if the suite lets it pass, it is skipped, and if the suite lets it fail, a
    failure. So is a baseline that does not exist. Its text has the samples that decide it. The time is that of the
    evaluation, in seconds.
    """
    suite = ET.Element("testsuite", name="merilo gate", tests=str(len(found.gates) + bool(found.no_baseline)))
    seconds = Run.open(found.run).usage.get("seconds")
    if seconds is not None:
        suite.set("time", f"{seconds:.3f}")
    counts = {"failures": 0, "errors": 0, "skipped": 0}

    def add(kind: str, name: str, verdict: GateVerdict, message: str, text: str | None) -> None:
        case = ET.SubElement(suite, "testcase", classname=f"merilo.{kind}", name=clean(name))
        element = _junit_kind(verdict, found)
        if element is None:
            ET.SubElement(case, "system-out").text = clean(message)
            return
        counts[element if element == "skipped" else f"{element}s"] += 1
        ET.SubElement(case, element, message=clean(message), type=verdict.value).text = text

    if found.no_baseline:
        add("baseline", NO_BASELINE, GateVerdict.NO_BASELINE, found.no_baseline, None)
    for gate in found.gates:
        asked = f"{'at least' if gate.higher_is_better else 'at most'} {gate.asked:g}"
        asked = asked if gate.kind is Kind.MINIMUM else f"a drop of at most {gate.asked:g}"
        text = deciding_text(found, gate) or None
        add(gate.kind.value, f"{gate.metric}: {asked}", gate.verdict, gate.reading, text)
    for name, amount in counts.items():
        suite.set(name, str(amount))
    ET.SubElement(suite, "system-out").text = clean("\n".join(filter(None, (found.headline, found.weak_note))))
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(suite, encoding="unicode") + "\n"


def _junit_kind(verdict: GateVerdict, found: Gates) -> str | None:
    """Return the name of the XML element for the result of a test; None if it passed."""
    if verdict is GateVerdict.CANNOT_TELL:
        return {None: "error", CannotTell.PASS: "skipped", CannotTell.FAIL: "failure"}[found.cannot_tell]
    if verdict is GateVerdict.NO_BASELINE:
        return {FirstRun.PASS: "skipped", FirstRun.FAIL: "failure"}.get(found.first_run or FirstRun.PASS, "error")
    return "failure" if verdict is GateVerdict.FAIL else None


def _record(found: Gates, gate: Gate) -> dict[str, Any]:  # Any: JSON
    return {
        **picked(gate, "metric kind asked higher_is_better verdict"),
        **picked(gate, "value=estimate.value interval=estimate.interval level=decision.level"),
        "baseline_mean": None if gate.means is None else gate.means[0],
        "run_mean": None if gate.means is None else gate.means[1],
        **picked(gate, "samples=estimate.samples missing=estimate.missing.total basis=estimate.basis deciding"),
        "caveats": [picked(each, CAVEAT) for each in gate.estimate.caveats],
        "withheld": gate.withheld or None,
        "advice": gate_advice(found, gate) or None,
        "reading": gate.reading,
    }


def gate_advice(found: Gates, gate: Gate) -> str:
    """Return what to do about a gate that does not pass, in one or two sentences; empty if it passes."""
    if gate.verdict is GateVerdict.PASS:
        return ""
    if gate.verdict is GateVerdict.FAIL:
        worst = ", ".join(each.id for each in deciding_samples(found, gate))
        return f"Most of it: {worst}.{_READ}{_read(found, gate)}" if worst else ""
    if gate.withheld:
        return f"To decide: {_labels(found, gate)}" if gate.estimate.basis is Basis.JUDGE else ""
    if gate.deciding:
        return "The samples with a score would decide, and failed ones could change that. Retry them: --retry-failed"
    if gate.decision.open:
        others = f"{gate.estimate.missing.total:,} without one"
        return f"The samples with a score would decide, and {others} could change that. Read them."
    more = _needed(found, gate)
    if (
        gate.estimate.missing.total
    ):  # the number of questions that would decide depends on their scores, which are unknown
        more = f"Read the {gate.estimate.missing.total:,} without a score, and use more questions."
    return " ".join(filter(None, (_open(gate), more)))


def _read(found: Gates, gate: Gate) -> str:
    """Return the command that shows the samples of a gate that fails."""
    if gate.kind is Kind.DROP and found.baseline is not None:
        return command("report", str(found.baseline), str(found.run))
    return command("show", str(found.run), "--worst", "5", "--metric", gate.metric)


def _open(gate: Gate) -> str:
    if gate.decision.lower is None:
        return "Use more questions."
    if gate.kind is Kind.MINIMUM:
        return f"A mean of {gate.asked:g} is neither shown nor excluded."
    return f"A drop of {gate.asked:g} is neither shown nor excluded." if gate.asked else "No drop is shown or excluded."


def _labels(found: Gates, gate: Gate) -> str:
    """Return the command that asks for labels, and what they take."""
    runs = [str(found.run)]
    if gate.kind is Kind.DROP and found.baseline is not None:
        runs.insert(0, str(found.baseline))
    return next_step(runs, [gate.metric])


def _needed(found: Gates, gate: Gate) -> str:
    """Return a sentence on the number of questions or labels that would decide; empty if it cannot be estimated."""
    decision = gate.decision
    if decision.lower is None or decision.upper is None or decision.value is None:
        return ""
    width = 2 * normal_quantile((1 + decision.level) / 2)  # of an interval, in standard errors
    error = (decision.upper - decision.lower) / width
    effect = abs(decision.value - (gate.asked if gate.kind is Kind.MINIMUM else -gate.asked))
    detectable = error * (width / 2 + normal_quantile(POWER))
    stays = f"would decide if the {'mean' if gate.kind is Kind.MINIMUM else 'difference'} stays"
    if gate.estimate.basis is not Basis.LABELS:
        text = more_questions(effect, detectable, gate.estimate.samples)
        return f"{text} {stays}." if text else ""
    low, high = gate.by_judge["interval"] or (0.0, 0.0)
    errors = (error, (high - low) / (2 * normal_quantile((1 + LEVEL) / 2)) or None)
    text = more_labels(effect, errors, gate.by_judge["labelled"], gate.estimate.samples)
    if text.endswith(ALL_LABELLED):
        return f"{text}, {stays}."
    return f"{text} {stays}: {_labels(found, gate)}" if text else ""


def gates_markdown(found: Gates) -> str:
    """Return every decision, and the samples that decide those that did not pass, within 60,000 characters."""
    baseline = "" if found.baseline is None else f" vs. {code(str(found.baseline))}"
    blocks = [f"### {found.headline}", f"{code(str(found.run))}{baseline}"]
    if found.no_baseline:
        blocks.append(f"**{NO_BASELINE}**: {code(found.no_baseline)}")
    rows = [
        (f"**{gate.verdict}**", code(" ".join(filter(None, (gate.reading, gate_advice(found, gate))))))
        for gate in found.ordered
    ]
    if rows:
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
    levels = {GateVerdict.CANNOT_TELL: "warning"} if found.cannot_tell is CannotTell.PASS else {}
    annotations = [
        Annotation(levels.get(gate.verdict, "error"), f"merilo gate: {gate.verdict}", gate.reading)
        for gate in found.obstacles
    ]
    if found.no_baseline:
        level = "error" if not found.passed else "notice"
        annotations.append(Annotation(level, f"merilo gate: {NO_BASELINE}", found.no_baseline))
    return annotations
