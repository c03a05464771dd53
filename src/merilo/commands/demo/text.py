"""The page of `merilo demo`: answers, a worse retriever, a check by annotators, and a build that stops."""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, cast

from merilo.commands.calibrate.slices import faults_of
from merilo.data.sanitize import command
from merilo.judging.kinds.contexts import SupportVerdict
from merilo.metrics.base import Failed
from merilo.numbers import number
from merilo.rendering.page import Page, Span, Tone, cut, wrap
from merilo.rendering.run_doc import fault_sentence
from merilo.results.faults import CANNOT_TELL
from merilo.results.sample_detail import SampleDetail

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from merilo.commands.compare.result import RunComparison
    from merilo.commands.gate.result import Gates
    from merilo.data.sample import Sample
    from merilo.runs.run import Run

METRIC: Final = "context_relevance"
_COLUMN: Final = 16
_INDENT: Final = 3
_WIDTH: Final = 100


@dataclass(frozen=True, slots=True)
class Story:
    """The runs of the demonstration and what was decided."""

    runs: Mapping[str, Run]
    alone: RunComparison
    """The two retrievers by the judge alone."""
    corrected: RunComparison
    gates: Gates
    labelled: int


def demo_page(story: Story, width: int) -> Page:
    """Return the demonstration as one page of at most 20 lines; equal runs give equal text."""
    page = Page(min(width, _WIDTH))
    _answers(page, story.runs["answers"])
    page.line(Span(f"2  Word overlap replaces BM25. {METRIC} over {story.alone.common} questions:", Tone.STRONG))
    for name, found in (("judge alone", story.alone), (f"{story.labelled} labelled", story.corrected)):
        row = found.metrics[METRIC]
        means = f"{number(row.base_mean)} to {number(row.run_mean)}"
        verdict = ": ".join(filter(None, (row.verdict, row.reason)))
        page.line(f"     {name:<12} {means}   {row.estimate}   {verdict}")
    page.line(Span("3  The build stops.", Tone.STRONG))
    for line in str(story.gates).splitlines()[1:]:
        page.text(line, indent=_INDENT)
    base, run = (str(side.run.path) for side in story.corrected.sides)
    page.blank()
    page.line(f"Look     {command('report', base, run)}")
    page.line(f"Yours    {command('run', 'answers.csv')}")
    return page


def _answers(page: Page, run: Run) -> None:
    faults = faults_of(run)
    judged = [sample for sample, fault in faults.samples.items() if fault != CANNOT_TELL]
    details = [SampleDetail.of(run, sample) for sample in judged]
    agree = sum(
        all(verdict.supported for _, verdict in _support(each)) == _good(each.result.sample) for each in details
    )
    lead = f"{fault_sentence(faults)} An annotator agrees on the support of {agree} of {len(judged)}."
    for at, row in enumerate(wrap(lead, page.width - _INDENT)):
        page.line(Span(f"{'' if at else '1':<{_INDENT}}{row}", Tone.STRONG))
    unsupported = [
        (verdict.probability or 0.0, place, text, verdict)
        for place, each in enumerate(details)
        for text, verdict in _support(each)
        if not verdict.supported and not _good(each.result.sample)
    ]
    if not unsupported:
        return
    probability, place, text, verdict = min(unsupported, key=itemgetter(0, 1))
    shown, room = details[place], page.width - _COLUMN
    page.line(f"   {cut(shown.result.sample.user_input or '', room)}")
    page.entry("answer", cut(text, room), column=_COLUMN, indent=5)
    if verdict.sentences:
        context, sentence = verdict.sentences[0]
        page.entry("closest", cut(shown.contexts[context].sentences[sentence], room), column=_COLUMN, indent=5)
    said = f"not supported ({probability:.2f})"
    page.entry("judge", f"{said:<30}annotator  not supported", column=_COLUMN, indent=5)


def _support(case: SampleDetail) -> Iterator[tuple[str, SupportVerdict]]:
    """Yield each judged statement of the response with the verdict on its support."""
    outcome = case.result.outcomes["answering"]
    for piece in () if isinstance(outcome, Failed) else outcome.evidence:
        if isinstance(piece.verdict, SupportVerdict):
            yield piece.text, piece.verdict


def _good(sample: Sample) -> bool:
    """Return True if the annotator found every sentence of the response supported."""
    return bool(cast("dict[str, Any]", sample.metadata).get("label"))  # Any: JSON of the example data
