"""The decisions on a run as a page, JSON, a table for notebooks, and Markdown, annotations and JUnit XML for builds."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree as ET

from merilo.commands.compare.needed import MORE_THAN, more_labels, more_questions
from merilo.commands.gate.result import CannotTell, Kind
from merilo.rendering.ci import Annotation, blocks_within, code, details, markdown_table
from merilo.rendering.html import table_html
from merilo.rendering.overview import command
from merilo.rendering.page import Page, Span, Tone, cut
from merilo.rendering.sample_evidence import add_evidence
from merilo.rendering.sanitize import clean
from merilo.rendering.wording import OWN_ERROR, covers_imported, number
from merilo.results.basis import Basis
from merilo.results.sample_detail import SampleDetail
from merilo.runs.metric_names import worst_scores
from merilo.runs.run import Run
from merilo.runs.scales import recorded_scale
from merilo.stats.distributions import normal_quantile
from merilo.stats.gate import GateVerdict
from merilo.stats.power import POWER

if TYPE_CHECKING:
    from merilo.commands.gate.result import Gate, Gates
    from merilo.stats.gate import Decision

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


def deciding_text(found: Gates, gate: Gate, width: int = 100, count: int = SHOWN) -> str:
    """Return the deciding samples of a gate: scores, user input, and the evidence for the score; empty without any."""
    page = Page(width)
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


_TONES = {GateVerdict.PASS: Tone.GOOD, GateVerdict.FAIL: Tone.BAD, GateVerdict.CANNOT_TELL: Tone.STRONG}
_MOST = 5


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
    column = len(GateVerdict.CANNOT_TELL.value) + 2
    for gate in found.ordered:
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
        if gate.withheld or (gate.basis is Basis.LABELS and not _needs_questions(gate)):
            page.line("    " + _label_command(found, gate))
        for sample in gate.deciding[:_MOST]:
            page.line("    " + command("show", str(found.run), "--sample", sample))
        if len(gate.deciding) > _MOST:
            rest = ", ".join(shlex.quote(clean(sample)) for sample in gate.deciding[_MOST:])
            page.text(f"and {rest}", indent=4)


def _label_command(found: Gates, gate: Gate) -> str:
    """Return the command that draws and asks for labels."""
    runs = [str(found.run)]
    if gate.kind is Kind.DROP and found.baseline is not None:
        runs.insert(0, str(found.baseline))
    # The draw that earlier labels are from has no more tasks: another seed draws others.
    seed = [] if gate.withheld else ["--seed", str(gate.labelled)]
    return command("label", *runs, "--metric", gate.metric, *seed)


def _advice(gate: Gate) -> str:
    if gate.withheld:
        return "label some samples."
    if _needs_questions(gate):
        return f"evaluate more questions. Labels of all these {gate.samples:,} would probably not decide."
    if gate.basis is Basis.LABELS:
        return f"label more samples. Their labels are added to those so far. {_needed(gate)}".rstrip()
    if gate.deciding:
        some = "this failed sample" if len(gate.deciding) == 1 else f"these {len(gate.deciding)} failed samples"
        end = "best" if gate.decision.would is GateVerdict.PASS else "worst"
        score = "the same score in both runs" if gate.kind is Kind.DROP else f"the {end} score"
        return f"would {gate.decision.would} if {some} had {score}. Run them again with --retry-failed:"
    if gate.decision.lower is None:
        return "use more or other samples."
    return _needed(gate) or "use more samples."


def _needs_questions(gate: Gate) -> bool:
    """Return True if a gate by labels would not be decided by labels of all its questions."""
    return gate.basis is Basis.LABELS and (gate.labelled >= gate.samples or _needed(gate).startswith(MORE_THAN))


def _needed(gate: Gate) -> str:
    """Return a sentence on the number of samples or labels that would decide; empty if it cannot be estimated."""
    decision = gate.decision
    error = _error(decision)
    if gate.sequential or error is None or decision.value is None:
        return ""
    effect = abs(decision.value - (gate.asked if gate.kind is Kind.MINIMUM else -gate.asked))
    if gate.basis is Basis.LABELS:
        judged = None if gate.by_judge is None else _error(gate.by_judge)
        errors = (error, judged)
        text = more_labels(effect, errors, gate.labelled, gate.samples, two_sided=False, level=decision.level)
    else:
        detectable = error * (normal_quantile(decision.level) + normal_quantile(POWER))
        text = more_questions(effect, detectable, gate.samples)
    what = "mean" if gate.kind is Kind.MINIMUM else "difference"
    return f"{text} would decide if the {what} stays." if text else ""


def _error(decision: Decision) -> float | None:
    """Return the standard error that the limits imply; None without limits."""
    if decision.lower is None or decision.upper is None:
        return None
    return (decision.upper - decision.lower) / (2 * normal_quantile(decision.level))


def gates_markdown(found: Gates) -> str:
    """Return every decision, and the samples that decide those that did not pass, within 60,000 characters."""
    baseline = "" if found.baseline is None else f" vs. {code(str(found.baseline))}"
    blocks = [f"### {found.headline}", f"{code(str(found.run))}{baseline}"]
    if found.warning:
        blocks.append(f"> **Warning:** {code(found.warning)}")
    rows = [(f"**{gate.verdict}**", code(gate.reading)) for gate in found.ordered]
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


def gates_table(found: Gates) -> str:
    """Return one row per gate, those that did not pass first, everything in it escaped."""
    baseline = "" if found.baseline is None else f" vs. {found.baseline}"
    return table_html(
        caption=f"{found.run}{baseline}: {found.headline}",
        head=("metric", "verdict", "result"),
        rows=[(gate.metric, gate.verdict.value, gate.reading) for gate in found.ordered],
        text=(1, 2),
        basis=" ".join(filter(None, (found.warning, found.weak_note, *found.notes))),
    )
