"""The samples with the worst scores of a metric."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

from merilo.errors import UsageError
from merilo.rendering.overview import command
from merilo.rendering.page import GAP, Page, Span, Tone, cells_of, cut, pad
from merilo.rendering.sanitize import clean
from merilo.rendering.weak import WeakMarks
from merilo.rendering.wording import number
from merilo.runs.metric_names import WorstScores, metric_to_inspect, worst_scores
from merilo.runs.run import metric_in, open_store
from merilo.runs.weak import weak_metrics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.runs.run import Run

_WIDEST_ID = 36
_MIN_TEXT = 24
_VALUE = 5


def metric_of(run: Run, wanted: str | None) -> str:
    """Return the full text of the metric with this name; for None, the one whose mean is farthest from its best value.

    Raises UsageError if the run has no such metric or no score.
    """
    if wanted is not None:
        return metric_in(run, wanted)
    found = metric_to_inspect(run.manifest, run.metrics)
    if found is None:
        raise UsageError(f"{run.path} has no scored sample.")
    return found


def worst(run: Run, metric: str, count: int) -> tuple[WorstScores, dict[str, str | None]]:
    """Return the `count` worst samples of a metric, and their user inputs by id."""
    found = worst_scores(run.manifest, run.brief_records([metric]), metric, count)
    with closing(open_store(run)) as store:
        samples = {sample: store.sample(sample) for sample, _ in found.samples}
    return found, {sample: None if each is None else each.user_input for sample, each in samples.items()}


def worst_record(run: Run, found: WorstScores, texts: Mapping[str, str | None]) -> dict[str, Any]:  # Any: JSON
    """Return the worst samples as a JSON-able object."""
    return {
        "run": str(run.path),
        "metric": found.metric,
        "weak": found.metric in weak_metrics(run.manifest),
        "higher_is_better": found.higher_is_better,
        "scored": found.scored,
        "undefined": found.undefined,
        "failed": found.failed,
        "worst": [{"sample": sample, "value": value, "user_input": texts[sample]} for sample, value in found.samples],
    }


def worst_page(
    run: Run, found: WorstScores, texts: Mapping[str, str | None], width: int, language: str | None = None
) -> Page:
    """Return a page that lists the worst samples: value, id and user input; in the language of the run by default."""
    page = Page(width, language or run.manifest.language)
    say = page.translation.phrase
    end = "lowest" if found.higher_is_better else "highest"
    marks = WeakMarks.of(run.manifest)
    page.text(
        f"{marks.name(found.metric)}: the {len(found.samples):,} {end} of {found.scored:,} scored", tone=Tone.STRONG
    )
    if found.undefined or found.failed:
        page.text(f"Not listed: {found.undefined:,} undefined and {found.failed:,} failed, which have no score.")
    if legend := marks.legend([found.metric]):
        page.text(legend, tone=Tone.QUIET)
    if not found.samples:
        return page
    page.blank()
    headings = [say(each) for each in ("value", "sample", "user input")]
    first = max(_VALUE, cells_of(headings[0]))
    longest = max(cells_of(headings[1]), *(cells_of(clean(sample)) for sample, _ in found.samples))
    column = min(longest, _WIDEST_ID)
    room = page.width - first - column - 2 * GAP
    side_by_side = longest == column and room >= _MIN_TEXT
    third = f"  {headings[2]}" if side_by_side else ""
    page.line(Span(f"{pad(headings[0], first, right=True)}  {pad(headings[1], column)}{third}", Tone.STRONG))
    for sample, value in found.samples:
        text = cut(texts[sample] or "", room if side_by_side else page.width - first - GAP)
        start = f"{pad(number(value), first, right=True)}  {pad(clean(sample), column)}"
        page.line(start, *(("  ", Span(text)) if side_by_side else ()))
        if not side_by_side:
            page.line(" " * (first + GAP), Span(text, Tone.QUIET))
    page.heading("Next")
    page.line("  " + command("show", str(run.path), "--sample", found.samples[0][0]))
    return page
