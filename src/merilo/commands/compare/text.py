"""A comparison of runs as a page of text: differences, conclusions, and the samples that changed most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from merilo.commands.compare import wording as words
from merilo.commands.compare.notes import comparison_notes
from merilo.rendering.overview import command
from merilo.rendering.page import Page, Span, Tone, cut
from merilo.rendering.sample_evidence import add_evidence
from merilo.rendering.sanitize import clean
from merilo.rendering.wording import count, number
from merilo.results.basis import Basis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.commands.compare.result import Moved, RunComparison

_WIDEST_NAME = 15


def comparison_text(comparison: RunComparison) -> str:
    """Return the page that `merilo compare` prints, 80 columns wide."""
    return str(comparison_page(comparison, 80))


def comparison_page(found: RunComparison, width: int, *, samples: int | None = None) -> Page:
    """Return the page; `samples`: the number of changed samples to show, None: all in the comparison."""
    page = Page(width)
    page.text(words.title(found), tone=Tone.STRONG)
    for sentence in words.beware(found):
        page.text(sentence, tone=Tone.BAD)
    for other in range(1, len(found.sides)):
        if len(found.sides) > 2:
            page.heading(words.pair_title(found, other))
        page.blank()
        _differences(page, found, other)
    page.blank()
    page.text(words.basis(found))
    _readings(page, found)
    _measures(page, found)
    _notes(page, found)
    moved_samples(page, found, samples)
    _next(page, found)
    return page


def moved_samples(page: Page, found: RunComparison, most: int | None = None) -> None:
    """Add the samples that changed most, with the verdicts of every run."""
    shown = found.moved[:most]
    if not shown:
        return
    page.heading(f"{len(shown):,} of {count(found.movers, 'sample')} that changed, by {words.moved_by(found)}")
    for each in shown:
        page.blank()
        moved_sample(page, found, each)


def moved_sample(page: Page, found: RunComparison, each: Moved) -> None:
    """Add one sample: its user input, and the evidence for its score in each run."""
    page.line("  ", Span(clean(each.sample), Tone.STRONG), f"  {words.signed(each.step)}")
    if text := each.cases[0].result.sample.user_input:
        page.line("  ", Span(cut(text, page.width - 2)))
    for name, value, case in zip(found.names, each.values, each.cases, strict=True):
        page.line("  ", Span(f"{clean(name)}: {number(value)}", Tone.STRONG))
        add_evidence(page, case, found.moved_by or "")


def _differences(page: Page, found: RunComparison, other: int) -> None:
    pair = [cut(found.names[at], _WIDEST_NAME) for at in (0, other)]
    head = ("mean over the pairs", *pair, f"difference, {words.level_text(found)} interval")
    cells = [
        (words.marked(row), number(row.comparison.first), number(row.comparison.second), words.difference(row))
        for row in found.rows_of(other)
    ]
    _table(page, head, cells)


def _table(page: Page, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    page.table([head, *rows], [Tone.STRONG, *[Tone.PLAIN] * len(rows)])


def _readings(page: Page, found: RunComparison) -> None:
    page.heading(words.family(found))
    for each in words.readings(found):
        against = f", {each.against}" if each.against else ""
        page.line("  ", Span(clean(each.reading + against), Tone.STRONG))
        page.text(", ".join(each.metrics), indent=4)
        if each.why:
            page.text(f"{each.why}.", indent=4, tone=Tone.QUIET)


def _measures(page: Page, found: RunComparison) -> None:
    several = len(found.sides) > 2
    for other in range(1, len(found.sides)):
        page.heading(f"Statistics{f', {words.pair_title(found, other)}' if several else ''}")
        rows = [(words.marked(row), *words.measures(row)) for row in found.rows_of(other)]
        _table(page, ("", *words.MEASURES), rows)
    page.text(words.legend(found), tone=Tone.QUIET)


def _notes(page: Page, found: RunComparison) -> None:
    for group in comparison_notes(found):
        page.heading(group.heading)
        page.entries(group.entries, widest=26)


def _next(page: Page, found: RunComparison) -> None:
    page.heading("Next")
    paths = [str(side.run.path) for side in found.sides]
    if found.moved:
        for path in paths[:2]:
            page.line("  " + command("show", path, "--sample", found.moved[0].sample))
    if found.by_judge_alone and len(paths) == 2:
        judged = [row.metric for row in found.rows if row.basis is Basis.JUDGE]
        metric = next((text for text in judged if text in found.primary), judged[0])
        page.line("  " + command("label", *paths, "--metric", metric))
    page.line("  " + command("report", *paths))
