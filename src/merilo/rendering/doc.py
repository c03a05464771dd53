"""A result as a document of estimates, and its writers for the terminal and for Markdown.

The HTML page draws the same document, so no output has its own wording.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from merilo.rendering.ci import blocks_within, code, markdown_table
from merilo.rendering.page import Page, Span, Tone, cells_of, columns, cut
from merilo.rendering.sanitize import clean
from merilo.rendering.wording import Section, count
from merilo.results.estimate import Verdict, between, signed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from merilo.results.estimate import Estimate

MARKS: Final[dict[Verdict | None, tuple[Tone, str]]] = {
    Verdict.BETTER: (Tone.GOOD, "\u25b2"),
    Verdict.WORSE: (Tone.BAD, "\u25bc"),
    Verdict.CANNOT_TELL: (Tone.PLAIN, "?"),
}
"""Verdict → tone and character in every output; the others are plain, with `=`."""
_WIDEST_NAME: Final = 10
"""Maximum width of a column's name on a page of 80 columns; on a wider one, a quarter of the rest is added."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of a table: a number with the parts that it is computed from."""

    metric: str
    name: str
    """The metric as shown, with marks."""
    parts: tuple[str, ...]
    estimate: Estimate
    verdict: Verdict | None
    """None for a row without a conclusion."""
    said: str
    """The verdict or the direction, in a word or two; empty if the heading has it."""
    why: str
    """What qualifies the verdict, for outputs with room; empty if the heading has it."""
    fewer: str
    """How many samples it rests on, if fewer than others."""

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells without the words: name, parts, number, interval."""
        return (self.name, *self.parts, signed(self.estimate.value), between(self.estimate.interval))

    @property
    def words(self) -> str:
        """The words after the cells."""
        return f"{self.said} ({self.fewer})" if self.said and self.fewer else self.said or self.fewer


@dataclass(frozen=True, slots=True)
class Part:
    """A conclusion with the table that it rests on."""

    heading: str
    sentences: tuple[str, ...]
    """The conclusion, and what qualifies it."""
    head: tuple[str, ...]
    """The title of the table, the names of the parts, what the number is, the level of its interval."""
    rows: tuple[Entry | str, ...]
    """The rows of numbers, below headings."""
    below: str = ""
    """What stands below the table."""

    @property
    def entries(self) -> list[Entry]:
        """The rows of numbers."""
        return [each for each in self.rows if isinstance(each, Entry)]


@dataclass(frozen=True, slots=True)
class Doc:
    """A result for all writers."""

    title: str
    parts: tuple[Part, ...]
    warnings: tuple[str, ...]
    legend: str
    notes: tuple[Section, ...]
    advice: str
    """The command that would decide; empty if a verdict is there."""
    next: tuple[str, ...]


# -- the terminal --------------------------------------------------------------------------------------


def doc_page(
    doc: Doc, width: int, *, rows: int | None, lines: int = 0, details: Callable[[Page], None] | None = None
) -> Page:
    """Return the page: at most `rows` rows of each table, fewer if it has more than `lines` lines (0: any number).

    `rows` None: all, with legend, notes and what `details` adds.
    """
    page = _page(Page(width), doc, rows, details)
    while rows is not None and lines and len(page.lines) > lines and rows > 1:
        rows -= 1
        page = _page(Page(width), doc, rows, details)
    return page


def _page(page: Page, doc: Doc, rows: int | None, details: Callable[[Page], None] | None) -> Page:
    for place, part in enumerate(doc.parts):
        if len(doc.parts) > 1:
            page.heading(part.heading)
        for at, sentence in enumerate(part.sentences):
            page.text(sentence, tone=Tone.PLAIN if at else Tone.STRONG)
        for sentence in () if place else doc.warnings:
            page.text(sentence, tone=Tone.BAD)
        page.blank()
        _table(page, part, rows)
        if part.below:
            page.text(part.below)
    page.blank()
    if rows is None:
        page.text(doc.legend)
        for heading, entries in doc.notes:
            page.heading(heading)
            page.entries(entries, widest=26)
        if details is not None:
            details(page)
        page.blank()
    if doc.advice:
        typed, opened, price = doc.advice.rpartition(" (")
        _lines(page, [doc.advice], [typed, f"  ({price}"] if opened else [doc.advice])
    follow = doc.next[:1] if rows is None else doc.next
    _lines(page, [(" " * 6).join(follow)], follow)
    return page


def _lines(page: Page, wide: Sequence[str], narrow: Sequence[str]) -> None:
    for line in wide if all(cells_of(each) <= page.width for each in wide) else narrow:
        page.line(line)


def _table(page: Page, part: Part, most: int | None) -> None:
    entries, widest = part.entries, _WIDEST_NAME + max(page.width - 80, 0) // 4
    title, *names, number, level = part.head
    head = (title, *(cut(each, widest) for each in names), f"{number}, {level}", "")
    first, *lines = _aligned([head, *(entry.cells for entry in entries[:most])], page.width)
    page.line(Span(first, Tone.STRONG))
    for each in part.rows:
        if not lines:
            break
        if isinstance(each, str):
            page.text(each)
            continue
        line, (tone, _) = lines.pop(0).rstrip(), MARKS.get(each.verdict, (Tone.PLAIN, ""))
        if not line.startswith(f"  {clean(each.name)[:1]}"):  # the name was too long for its column
            page.line(f"  {clean(each.name)}")
        if each.words and cells_of(line) + 2 + cells_of(each.words) <= page.width:
            page.line(line, "  ", Span(each.words, tone))
            continue
        page.line(line)
        if each.words:
            page.text(each.words, indent=4, tone=tone)
    if more := len(entries) - len(entries[:most]):
        page.text(f"  and {count(more, 'more metric')}: --full", tone=Tone.QUIET)


def _aligned(table: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return the rows as lines, without a name that is too long; the title of the differences spans two columns."""
    metrics, *parts, differences, ends = zip(*table, strict=True)
    label, *steps = differences
    longest = max(map(cells_of, steps), default=0)
    both = [label, *(f"{step:>{longest}}  {end}" for step, end in zip(steps, ends[1:], strict=True))]
    room = max(width - sum(max(map(cells_of, each)) for each in (both, *parts)) - 6, 20)
    names = [clean(metric) if at == 0 else f"  {clean(metric)}" for at, metric in enumerate(metrics)]
    names = [name if cells_of(name) <= room else "" for name in names]
    return columns(list(zip(names, *parts, both, strict=True)), left=frozenset({0, len(parts) + 1}))


# -- Markdown ------------------------------------------------------------------------------------------


def doc_markdown(doc: Doc, last: Sequence[str] = (), optional: Sequence[str] = ()) -> str:
    """Return the document for a comment, with as many of the `optional` blocks as fit into 60,000 characters."""
    blocks = [f"### {code(doc.title)}"]
    for part in doc.parts:
        first, *more = map(code, part.sentences)
        blocks.append(" ".join([f"**{first}**", *more]))
    blocks += [code(doc.advice)] if doc.advice else []
    blocks += [f"> **Warning:** {code(sentence)}" for sentence in doc.warnings]
    blocks += [each for part in doc.parts for each in (_markdown_table(part), code(part.below)) if each]
    blocks.append(code(doc.legend))
    for heading, entries in doc.notes:
        lines = "\n".join(f"- {code(name)}: {code(text)}" for name, text in entries)
        blocks.append(f"<details><summary>{heading}</summary>\n\n{lines}\n\n</details>")
    return blocks_within([*blocks, *last], optional)


def _markdown_table(part: Part) -> str:
    _, *names, number, level = part.head
    head = ("metric", *map(code, names), number, level, "verdict")
    blank = [""] * (len(head) - 1)
    rows = [
        (f"**{each}**", *blank) if isinstance(each, str) else (code(each.name), *each.cells[1:], each.words)
        for each in part.rows
    ]
    return markdown_table(head, ("---", *["---:"] * (len(head) - 2), "---"), rows)
