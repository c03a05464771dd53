"""The short summary of a run: the text of `merilo run` and `print(run)` in at most 25 lines, Markdown, and HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.data.sample import DOUBT
from merilo.metrics.steps import NOTHING_TO_FIND
from merilo.rendering.aggregate import (
    averaging,
    intervals_text,
    less_is_better,
    mean_rows,
    means_notes,
    missing_bounds,
    not_judged,
    table,
)
from merilo.rendering.ci import blocks_within, code, details, markdown_table
from merilo.rendering.correction import corrected_aggregates
from merilo.rendering.html import table_html
from merilo.rendering.overview import command, title, title_text, unpriced, until_decided
from merilo.rendering.page import GAP, Page, Tone, cut, pad
from merilo.rendering.sample_evidence import add_evidence
from merilo.rendering.sanitize import clean
from merilo.rendering.weak import WeakMarks, left_out_note, neighbours_note, unread_note
from merilo.rendering.wording import STOPPED, count, number, span, spent_text
from merilo.results.sample_detail import SampleDetail
from merilo.runs.metric_names import metric_to_inspect, worst_scores
from merilo.runs.run import open_store

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.runs.manifest import Aggregate
    from merilo.runs.run import Run
    from merilo.stats.correction import Correction

MAX_LINES: Final = 25
_MIN_ROWS: Final = 4
_WORST: Final = 3
_WIDEST_ID: Final = 33
_TREC_EVAL: Final = "trec_eval counts samples without a relevant id as 0: see the lower bounds."
_WIDTH: Final = 80
_MARKDOWN_WIDTH: Final = 100
_MARKDOWN_TEXT: Final = 200
_BOUNDS_WIDTH: Final = 72
"""Minimum width of a page whose table has a column of bounds."""


def run_text(run: Run) -> str:
    """Return the summary without the next commands, 80 columns wide."""
    return str(summary_page(run, _WIDTH, commands=False))


def run_table(run: Run) -> str:
    """Return the run's means as an HTML table for a notebook, everything in it escaped."""
    aggregates = tuple(run.metrics.values())
    head, *rows = mean_rows(aggregates, WeakMarks.of(run.manifest))
    stopped = "" if run.complete else f"; {STOPPED}"
    basis = " ".join(filter(None, (*means_notes(run.manifest, aggregates), left_out_note(run.manifest))))
    return table_html(caption=f"{title_text(run)}{stopped}", head=head, rows=rows, basis=basis)


def run_markdown(run: Run, corrections: Mapping[str, Correction] | None = None) -> str:
    """Return the means with their intervals and the worst samples as Markdown, within 60,000 characters.

    `corrections`: corrections by human labels, by metric; a corrected mean replaces the judge's own.
    """
    known, manifest = corrections or {}, run.manifest
    aggregates = corrected_aggregates(tuple(run.metrics.values()), known)
    corrected = {metric for metric, each in known.items() if each.estimate is not None}
    blocks = [f"### {title_text(run, corrected, code)}"]
    if not run.complete:
        blocks.append(f"> **Warning:** This run was {STOPPED}.")
    head, *rows = mean_rows(aggregates, WeakMarks.of(manifest), known)
    blocks.append(markdown_table(head, ("---", *["---:"] * 5), [(code(name), *cells) for name, *cells in rows]))
    notes = (
        *means_notes(manifest, aggregates, corrected=corrected),
        left_out_note(manifest),
        neighbours_note(run.usage),
    )
    blocks += [code(note) for note in notes if note]
    return blocks_within(blocks, _worst_blocks(run))


def summary_page(run: Run, width: int, *, again: str = "", commands: bool = True) -> Page:
    """Return the summary: the table of means, cautions, the worst samples and the next commands.

    A run with many metrics shows the first ones, so that the page has at most `MAX_LINES` lines; the full page of
    `merilo show` has them all.

    `again`: the command that asks failed questions again. `commands`: False to leave out what to do next. The page is
    in the language of the run (`--language`).
    """
    aggregates = tuple(run.metrics.values())
    rows = len(aggregates)
    # Metrics are left out last: the user asked for them.
    worst, explained = _WORST, True
    while True:
        rest = _below_table(run, aggregates, width, worst=worst, explained=explained)
        if commands:
            _next(rest, run, again)
        page = _page(run, aggregates, rows, rest)
        if len(page.lines) <= MAX_LINES or rows <= _MIN_ROWS:
            return page
        if worst > 1:
            worst = 1
        elif explained:
            explained = False
        else:
            rows -= 1


def _below_table(run: Run, aggregates: tuple[Aggregate, ...], width: int, *, worst: int, explained: bool) -> Page:
    """Return the lines between the table and the next commands."""
    page = Page(width, run.manifest.language)
    _cautions(page, run, aggregates, explained=explained)
    until_decided(page, run)
    _worst(page, run, worst)
    return page


def _page(run: Run, aggregates: tuple[Aggregate, ...], rows: int, rest: Page) -> Page:
    """Return the page with the first rows of the table, followed by the rest."""
    page = Page(rest.width, run.manifest.language)
    title(page, run)
    page.blank()
    shown = aggregates[:rows]
    table(page, mean_rows(shown, WeakMarks.of(run.manifest)), shown, bounds=page.width >= _BOUNDS_WIDTH)
    if rows < len(aggregates):
        page.text(f"and {count(len(aggregates) - rows, 'more metric')}: merilo show", tone=Tone.QUIET)
    page.blank()
    page.lines.extend(rest.lines)
    return page


def _cautions(page: Page, run: Run, aggregates: tuple[Aggregate, ...], *, explained: bool) -> None:
    """Add one line for each caution; `explained`: also the line that says what bounds are."""
    for text in (
        _skipped(run),
        less_is_better(run.manifest, aggregates),
        _missing(aggregates),
        _bounds(aggregates, page.width) if explained or page.width < _BOUNDS_WIDTH else "",
        _TREC_EVAL if any(each.scored and NOTHING_TO_FIND in each.reasons for each in aggregates) else "",
        _remarks(aggregates),
        averaging(aggregates, width=page.width),
    ):
        if text:
            page.line(cut(page.translation.line(text), page.width))
    for note in run.manifest.notes:
        if note.startswith(DOUBT):
            page.text(note)
    weak = WeakMarks.of(run.manifest).legend(each.metric for each in aggregates)
    notes = (
        not_judged(aggregates),
        weak,
        left_out_note(run.manifest),
        unread_note(run.manifest),
        neighbours_note(run.usage),
    )
    for note in notes:
        if note:
            page.text(note)
    if intervals := intervals_text(aggregates, run.manifest.cluster, origin=run.manifest.origin):
        page.line(cut(page.translation.line(intervals), page.width))


def _skipped(run: Run) -> str:
    skipped = run.manifest.skipped
    return f"Skipped: {count(len(skipped), 'invalid record')}: {clean(skipped[0])}" if skipped else ""


def _missing(aggregates: tuple[Aggregate, ...]) -> str:
    """Return why samples are not scored: the first metrics with their most frequent reason."""
    named = [
        f"{clean(each.metric)} {each.undefined + each.failed:,} ({_reason(each)})"
        for each in aggregates
        if (each.undefined or each.failed) and not each.parts
    ]
    return f"Not scored: {'; '.join(named)}." if named else ""


def _reason(each: Aggregate) -> str:
    """Return the most frequent reason, with its number of samples if others have another reason."""
    reason, amount = next(iter(each.reasons.items()), ("no reason", 0))
    others = each.undefined + each.failed - amount
    if not amount or not others:
        return clean(reason)
    return f"{amount:,}: {clean(reason)}, {others:,} for {'another reason' if others == 1 else 'other reasons'}"


def _bounds(aggregates: tuple[Aggregate, ...], width: int) -> str:
    """Return what the column of bounds holds; on a narrow page, which has no such column, the bounds themselves."""
    found = {clean(each.metric): limits for each in aggregates if (limits := missing_bounds(each))}
    if width >= _BOUNDS_WIDTH:
        return "Bounds: the mean if all unscored samples had the worst or the best value." if found else ""
    named = ", ".join(f"{metric} {span(limits)}" for metric, limits in found.items())
    return f"Bounds with unscored samples: {named}." if named else ""


def _remarks(aggregates: tuple[Aggregate, ...]) -> str:
    """Return the first remark on an interval, such as too few clusters, and the number of the others."""
    remarked = [each for each in aggregates if each.remark]
    if not remarked:
        return ""
    more = f" (and {count(len(remarked) - 1, 'more metric')})" if len(remarked) > 1 else ""
    return f"Interval of {clean(remarked[0].metric)}{more}: {clean(remarked[0].remark)}."


def _worst(page: Page, run: Run, size: int) -> None:
    metric, worst = _worst_samples(run)
    if not worst:
        return
    page.heading(f"Worst samples by {WeakMarks.of(run.manifest).name(metric)}")
    column = max(len(cut(clean(sample), _WIDEST_ID)) for sample, _ in worst)
    store = open_store(run)
    try:
        for name, value in worst[:size]:
            sample = store.sample(name)
            text = "" if sample is None or sample.user_input is None else sample.user_input
            start = f"  {pad(number(value), 5, right=True)}  {pad(cut(clean(name), _WIDEST_ID), column)}"
            page.line(start, "  ", cut(text, page.width - len(start) - GAP))
    finally:
        store.close()


def _worst_samples(run: Run) -> tuple[str, Sequence[tuple[str, float]]]:
    """Return the metric that is farthest from its best value, and its worst samples, at least two or none."""
    metric = metric_to_inspect(run.manifest, run.metrics)
    if metric is None:
        return "", ()
    found = worst_scores(run.manifest, run.brief_records([metric]), metric, _WORST)
    return metric, found.samples if len(found.samples) > 1 else ()


def _next(page: Page, run: Run, again: str) -> None:
    path = str(run.path)
    page.blank()
    if not run.manifest.origin:
        page.text(f"Cost: {spent_text(run.usage)}.")
        for text in unpriced(run):
            page.text(f"Price {text}.")
    say = page.translation.line
    page.line(say(f"Details: {command('show', path)}"))
    metric = metric_to_inspect(run.manifest, run.metrics)
    if metric is not None:
        page.line(say(f"Worst samples: {command('show', path, '--worst', '5')}"))
    if again and any(each.failed for each in run.metrics.values()):
        page.line(say(f"Retry what failed: {again}"))


def _worst_blocks(run: Run) -> list[str]:
    """Return the worst samples of the metric that is farthest from its best value, with their evidence."""
    metric, worst = _worst_samples(run)
    if not worst:
        return []
    blocks = [f"**Worst samples** by {code(metric)}"]
    for sample, value in worst:
        page, case = Page(_MARKDOWN_WIDTH), SampleDetail.of(run, sample)
        if text := case.result.sample.user_input:
            page.entry("user input", cut(text, _MARKDOWN_TEXT), column=14, indent=2)
        add_evidence(page, case, metric, indent=2)
        blocks.append(details(f"{sample}: {number(value)}", str(page)))
    return blocks
