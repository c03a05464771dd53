"""The summary of a run as Markdown, for a step summary or a comment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from merilo.rendering.ci import blocks_within, code, details, markdown_table
from merilo.rendering.correction import corrected_aggregates
from merilo.rendering.overview import interval_heading, intervals_text, judge_name
from merilo.rendering.page import Page, cut
from merilo.rendering.sample_evidence import add_evidence
from merilo.rendering.weak import WeakMarks, left_out_note, unread_note
from merilo.rendering.wording import STOPPED, count, number, span
from merilo.results.sample_detail import SampleDetail
from merilo.runs.metric_names import metric_to_inspect, worst_scores

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.runs.run import Run
    from merilo.stats.correction import Correction

_WORST = 3
_WIDTH = 100
_TEXT = 200


def run_markdown(run: Run, corrections: Mapping[str, Correction] | None = None) -> str:
    """Return the means with their intervals and the worst samples, within 60,000 characters.

    `corrections`: corrections by human labels, by metric; a corrected mean replaces the judge's own.
    """
    known, manifest = corrections or {}, run.manifest
    aggregates = corrected_aggregates(tuple(run.metrics.values()), known)
    marks = WeakMarks.of(manifest)
    by = f"scores of {code(manifest.origin)}" if manifest.origin else f"judged by {code(judge_name(run))}"
    blocks = [f"### {code(manifest.data)}: {count(manifest.samples, 'sample')}, {by}"]
    if not run.complete:
        blocks.append(f"> **Warning:** This run was {STOPPED}.")
    rows = [
        (
            code(marks.name(each.metric)),
            number(each.mean),
            span(each.interval),
            *(f"{amount:,}" for amount in (each.scored, each.undefined, each.failed)),
        )
        for each in aggregates
    ]
    head = ("metric", "mean", interval_heading(aggregates), "scored", "undefined", "failed")
    blocks.append(markdown_table(head, ("---", *["---:"] * 5), rows))
    corrected = {metric for metric, each in known.items() if each.estimate is not None}
    notes = (
        marks.legend(each.metric for each in aggregates),
        left_out_note(manifest),
        unread_note(manifest),
        intervals_text(aggregates, manifest.cluster, corrected=corrected, origin=manifest.origin),
    )
    blocks += [code(note) for note in notes if note]
    return blocks_within(blocks, _worst(run))


def _worst(run: Run) -> list[str]:
    """Return the worst samples of the metric that is farthest from its best value, with their evidence."""
    metric = metric_to_inspect(run.manifest, run.metrics)
    if metric is None:
        return []
    found = worst_scores(run.manifest, run.brief_records([metric]), metric, _WORST)
    if len(found.samples) < 2:
        return []
    blocks = [f"**Worst samples** by {code(metric)}"]
    for sample, value in found.samples:
        page, case = Page(_WIDTH), SampleDetail.of(run, sample)
        if text := case.result.sample.user_input:
            page.entry("user input", cut(text, _TEXT), column=14, indent=2)
        add_evidence(page, case, metric, indent=2)
        blocks.append(details(f"{sample}: {number(value)}", str(page)))
    return blocks
