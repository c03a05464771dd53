"""The samples that decide a gate that did not pass, with the evidence for their scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from merilo.commands.gate.result import Kind
from merilo.rendering.page import Page, Span, Tone, cut
from merilo.rendering.sample_evidence import add_evidence
from merilo.rendering.sanitize import clean
from merilo.rendering.wording import number
from merilo.results.sample_detail import SampleDetail
from merilo.runs.metric_names import worst_scores
from merilo.runs.run import Run
from merilo.runs.scales import recorded_scale
from merilo.stats.gate import GateVerdict

if TYPE_CHECKING:
    from merilo.commands.gate.result import Gate, Gates

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


def add_deciding(page: Page, found: Gates, gate: Gate, count: int = SHOWN) -> None:
    """Add the deciding samples of a gate to a page: scores, user input, and the evidence for the metric's score."""
    for each in deciding_samples(found, gate, count):
        scores = number(each.value) if each.before is None else f"{number(each.before)} -> {number(each.value)}"
        page.line("  ", Span(clean(each.id), Tone.STRONG), f"  {scores}")
        if text := each.case.result.sample.user_input:
            page.entry("user input", cut(text, _TEXT), column=16, indent=4)
        add_evidence(page, each.case, gate.metric)


def deciding_text(found: Gates, gate: Gate, width: int = 100, count: int = SHOWN) -> str:
    """Return the deciding samples of a gate as text; empty if there are none."""
    page = Page(width)
    add_deciding(page, found, gate, count)
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
