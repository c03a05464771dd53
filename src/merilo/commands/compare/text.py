"""A comparison of runs as a page of text, and as Markdown for a comment on a pull request."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from merilo.commands.compare import wording as words
from merilo.commands.compare.notes import comparison_notes
from merilo.commands.compare.result import Verdict
from merilo.rendering.ci import blocks_within, code, fenced, markdown_table
from merilo.rendering.explain import add_evidence
from merilo.rendering.overview import command
from merilo.rendering.page import Page, Span, Tone, cells_of, columns, cut
from merilo.rendering.sanitize import clean
from merilo.rendering.wording import count, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.commands.compare.result import Moved, Row, RunComparison


_WIDEST_NAME = 10
"""Maximum width of a run's name on a page of 80 columns; on a wider one, a quarter of the rest is added."""
ROWS: Final = 12
"""Maximum number of rows of one pair of runs, unless the full page is asked for."""
_MAX_LINES: Final = 25
_ROWS_OF_EACH: Final = 4
"""The same of each pair, if more than two runs are compared."""
_SHOWN: Final = 5
"""Maximum number of samples that changed."""


def comparison_text(comparison: RunComparison) -> str:
    """Return the page that `merilo compare` prints, 80 columns wide."""
    return str(comparison_page(comparison, 80))


def comparison_page(found: RunComparison, width: int, *, full: bool = False) -> Page:
    """Return the page; that of two runs has at most 25 lines.

    `full`: with all rows, statistics, notes and the samples that changed most.
    """
    rows = ROWS if len(found.sides) == 2 else _ROWS_OF_EACH
    page = _page(Page(width), found, rows, full=full)
    while not full and len(found.sides) == 2 and len(page.lines) > _MAX_LINES and rows > 1:
        rows -= 1
        page = _page(Page(width), found, rows, full=full)
    return page


def _page(page: Page, found: RunComparison, rows: int, *, full: bool) -> Page:
    for other in range(1, len(found.sides)):
        if len(found.sides) > 2:
            page.heading(words.pair_title(found, other))
        page.text(words.conclusion(found, other), tone=Tone.STRONG)
        for sentence in words.next_steps(found, other):
            page.text(sentence)
        for sentence in words.beware(found) if other == 1 else ():
            page.text(sentence, tone=Tone.BAD)
        page.blank()
        differences(page, found, other, most=None if full else rows)
    page.blank()
    if full:
        page.text(words.basis(found))
        _explained(page, found)
        _measures(page, found)
        _notes(page, found)
        moved_samples(page, found)
        page.blank()
    _next(page, found, full=full)
    return page


def moved_samples(page: Page, found: RunComparison) -> None:
    """Add the samples that changed most, with the verdicts of every run."""
    shown = found.moved[:_SHOWN]
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


def differences(page: Page, found: RunComparison, other: int, *, most: int | None = None) -> None:
    """Add the table of a run: rows in groups, each with a heading."""
    groups = words.groups(found, other)
    listed = [(group, row, said) for group in groups for row, said in zip(group.rows, group.said, strict=True)]
    shown = [(group, row, words.with_pairs(found, row, said)) for group, row, said in listed[:most]]
    widest = _WIDEST_NAME + max(page.width - 80, 0) // 4
    pair = [cut(found.names[at], widest) for at in (0, other)]
    head = (words.title(found), *pair, f"difference, {words.LEVEL_TEXT} interval", "")
    lines = _aligned([head, *(words.cells(row) for _, row, _ in shown)], page.width)
    names = ["", *(words.marked(row) for _, row, _ in shown)]
    page.line(Span(lines[0], Tone.STRONG))
    last = None
    for (group, row, said), line, name in zip(shown, lines[1:], names[1:], strict=True):
        if group is not last:
            page.text(group.heading)
            last = group
        if not line.startswith(f"  {clean(name)[:1]}"):  # the name was too long for its column
            page.line(f"  {clean(name)}")
        _row(page, row, line, said, colour=group.colour)
    rows = sum(len(group.rows) for group in groups)
    if len(shown) < rows:
        page.text(f"  and {count(rows - len(shown), 'more metric')}: --full", tone=Tone.QUIET)


def _aligned(table: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return the rows as lines, without a name that is too long; the title of the differences spans two columns."""
    metrics, first, second, differences, ends = zip(*table, strict=True)
    label, *steps = differences
    longest = max(map(cells_of, steps), default=0)
    both = [label, *(f"{step:>{longest}}  {end}" for step, end in zip(steps, ends[1:], strict=True))]
    room = max(width - sum(max(map(cells_of, each)) for each in (both, first, second)) - 6, 20)
    names = [clean(metric) if at == 0 else f"  {clean(metric)}" for at, metric in enumerate(metrics)]
    names = [name if cells_of(name) <= room else "" for name in names]
    return columns(list(zip(names, first, second, both, strict=True)), left=frozenset({0, 3}))


_TONES = {Verdict.BETTER: Tone.GOOD, Verdict.WORSE: Tone.BAD}


def _row(page: Page, row: Row, line: str, said: str, *, colour: bool) -> None:
    tone = _TONES.get(row.verdict, Tone.PLAIN) if colour and row.verdict is not None else Tone.PLAIN
    if said and cells_of(line) + 2 + cells_of(said) <= page.width:
        page.line(line.rstrip(), "  ", Span(said, tone))
        return
    page.line(line)
    if said:
        page.text(said, indent=4, tone=tone)


def _explained(page: Page, found: RunComparison) -> None:
    page.heading("Verdicts")
    for row in found.rows:
        against = f", {words.pair_title(found, row.other)}" if len(found.sides) > 2 else ""
        text = words.why(found, row)
        page.line("  ", Span(clean(f"{words.marked(row)}{against}: {words.verdict_text(row)}"), Tone.STRONG))
        if text:
            page.text(f"{text}.", indent=4, tone=Tone.QUIET)


def _measures(page: Page, found: RunComparison) -> None:
    several = len(found.sides) > 2
    for other in range(1, len(found.sides)):
        page.heading(f"Statistics{f', {words.pair_title(found, other)}' if several else ''}")
        rows = [(words.marked(row), *words.measures(row)) for row in found.rows_of(other)]
        page.table([("", *words.MEASURES), *rows], [Tone.STRONG, *[Tone.PLAIN] * len(rows)])
    page.text(words.LEGEND, tone=Tone.QUIET)


def _notes(page: Page, found: RunComparison) -> None:
    for heading, entries in comparison_notes(found):
        page.heading(heading)
        page.entries(entries, widest=26)


def _next(page: Page, found: RunComparison, *, full: bool) -> None:
    paths = [str(side.run.path) for side in found.sides]
    if advice := to_decide(found):
        typed, opened, price = advice.rpartition(" (")
        for line in [advice] if cells_of(advice) <= page.width or not opened else [typed, f"  ({price}"]:
            page.line(line)
    lines = ["What changed: " + command("report", *paths), *([] if full else ["All metrics and statistics: --full"])]
    both = (" " * 6).join(lines)
    for line in [both] if cells_of(both) <= page.width else lines:
        page.line(line)


def to_decide(found: RunComparison) -> str:
    """Return the labels that would decide, and what they take; empty if a run is better or worse."""
    row = to_label(found)
    return (
        "" if row is None else f"To decide: {labels_to_ask([str(side.run.path) for side in found.sides], row.metric)}"
    )


def labels_to_ask(runs: Sequence[str], metric: str) -> str:
    """Return the command that asks for labels of a run or a pair, and what they take; or why no label would help."""
    from merilo.commands.calibrate.people import labelling_price  # it imports this module
    from merilo.errors import UsageError

    try:
        return labelling_price(runs, metric).advice
    except UsageError:  # such as no sample with a score in both runs
        return command("label", *runs, "--metric", metric)


def to_label(found: RunComparison) -> Row | None:
    """Return the row to label: the clearest one by the judge alone, if no run is better or worse."""
    if len(found.sides) != 2 or found.deciding() or found.verdict is Verdict.NO_CHANGE:
        return None
    rows = [row for row in found.rows if row.undecided]
    return max(
        rows, key=lambda row: (bool(words.direction(row)), abs(row.comparison.standardised or 0.0)), default=None
    )


# -- Markdown -----------------------------------------------------------------------------------------

_WIDTH = 100


def comparison_markdown(found: RunComparison) -> str:
    """Return the comparison with the samples that changed most, within 60,000 characters."""
    return blocks_within(_blocks(found), [_moved(found, each) for each in found.moved[:_SHOWN]])


def _blocks(found: RunComparison) -> list[str]:
    """Return all parts except the samples."""
    blocks = [f"### {' against '.join(code(name) for name in found.names)}: {count(found.common, 'question')}"]
    for other in range(1, len(found.sides)):
        sentences = (words.conclusion(found, other), *words.next_steps(found, other))
        blocks.append(f"**{code(sentences[0])}**" + "".join(f" {code(each)}" for each in sentences[1:]))
    blocks += [code(advice)] if (advice := to_decide(found)) else []
    blocks += [f"> **Warning:** {code(sentence)}" for sentence in words.beware(found)]
    blocks += [_table(found, other) for other in range(1, len(found.sides))]
    blocks.append(words.basis(found, code))
    for heading, entries in comparison_notes(found):
        lines = "\n".join(f"- {code(name)}: {code(text)}" for name, text in entries)
        blocks.append(f"<details><summary>{heading}</summary>\n\n{lines}\n\n</details>")
    if found.moved:
        blocks.append(
            f"**{count(found.movers, 'sample')} changed**, by {code(words.moved_by(found))}; the most changed:"
        )
    return blocks


def _table(found: RunComparison, other: int) -> str:
    names = code(found.names[0]), code(found.names[other])
    head = ("metric", *names, "difference", f"{words.LEVEL_TEXT} interval", "verdict")
    rows: list[tuple[str, ...]] = []
    for group in words.groups(found, other):
        rows.append((f"**{group.heading}**", *[""] * 5))
        for row, said in zip(group.rows, group.said, strict=True):
            metric, *numbers = words.cells(row)
            rows.append((code(metric), *numbers, words.with_pairs(found, row, said)))
    return markdown_table(head, ("---", *["---:"] * 4, "---"), rows)


def _moved(found: RunComparison, each: Moved) -> str:
    """Return a sample in a collapsible block."""
    values = ", ".join(number(value) for value in each.values)
    page = Page(_WIDTH)
    moved_sample(page, found, each)
    summary = f"<code>{escape(clean(each.sample))}</code>: {values}"
    return f"<details><summary>{summary}</summary>\n\n{fenced(str(page))}\n</details>"
