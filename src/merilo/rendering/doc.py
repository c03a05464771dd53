"""A result as a document of estimates, and its writers for the terminal and for Markdown.

The HTML page draws the same document, so no output has its own wording.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from merilo.data.sanitize import clean
from merilo.numbers import between, signed
from merilo.rendering.ci import blocks_within, code, markdown_table
from merilo.rendering.page import GAP, Page, Span, Tone, cells_of, columns, cut, cut_id, wrap
from merilo.results.estimate import Caveat, Estimate, Verdict
from merilo.results.records import grouped
from merilo.stats.gate import GateVerdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


Section: TypeAlias = tuple[str, list[tuple[str, str]]]
"""A heading, and named texts under it."""
MARKS: Final[dict[Verdict | GateVerdict | None, tuple[Tone, str]]] = {
    GateVerdict.PASS: (Tone.GOOD, "\u2713"),
    GateVerdict.FAIL: (Tone.BAD, "\u2717"),
    Verdict.BETTER: (Tone.GOOD, "\u25b2"),
    Verdict.WORSE: (Tone.BAD, "\u25bc"),
    Verdict.CANNOT_TELL: (Tone.PLAIN, "?"),
}
"""Verdict → tone and character in every output; the others are plain, with `=`."""
_MIN_ROWS: Final = 1
_WIDEST_ID: Final = 36
_WIDEST_NAME: Final = {"metric": 10, "run": 14}
"""Maximum width of a column's name on a page of 80 columns, by what a row is; of the rest of a wider page, a quarter is
added."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of a table: a number with the parts that it is computed from."""

    metric: str
    name: str
    """The metric as shown, with marks."""
    parts: tuple[str, ...]
    estimate: Estimate | None
    """None for the row that the others are compared with."""
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
        each = self.estimate
        return (self.name, *self.parts, *(("", "") if each is None else (signed(each.value), between(each.interval))))

    @property
    def words(self) -> str:
        """The words after the cells."""
        return f"{self.said} ({self.fewer})" if self.said and self.fewer else self.said or self.fewer


@dataclass(frozen=True, slots=True)
class Line:
    """A row of texts."""

    cells: tuple[str, ...]
    note: str = ""
    """The text to its right, parts divided by semicolons."""
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True)
class Part:
    """A conclusion with the table that it rests on."""

    heading: str
    sentences: tuple[str, ...]
    """The conclusion, and what qualifies it."""
    head: tuple[str, ...]
    """The title of the table, the names of the parts, what the number is, the level of its interval."""
    rows: tuple[Entry | Line | str, ...]
    """The rows of numbers, below headings; without a head, a list."""
    below: str = ""
    """The text below the table."""
    what: str = "metric"
    """What a row is."""

    @property
    def lines(self) -> list[Line]:
        """The rows of texts."""
        return [each for each in self.rows if isinstance(each, Line)]

    @property
    def compared(self) -> list[Entry | str]:
        """The rows of numbers with their headings."""
        return [each for each in self.rows if not isinstance(each, Line)]

    @property
    def entries(self) -> list[Entry]:
        """The rows of numbers."""
        return [each for each in self.rows if isinstance(each, Entry)]


@dataclass(frozen=True, slots=True)
class Doc:
    """A result for all writers."""

    title: str
    parts: tuple[Part, ...]
    warnings: tuple[str, ...] = ()
    legend: str = ""
    notes: tuple[Section, ...] = ()
    advice: str = ""
    """The command that would decide; empty if a verdict is there."""
    next: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()
    """The sentences below the numbers."""
    language: str | None = None
    """Of the page."""


# -- the terminal --------------------------------------------------------------------------------------


def doc_page(
    doc: Doc,
    width: int,
    *,
    rows: int | None,
    lines: int = 0,
    language: str | None = None,
    details: Callable[[Page], None] | None = None,
) -> Page:
    """Return the page: at most `rows` rows of each table, fewer if it has more than `lines` lines (0: any number).

    `rows` None: all, with legend, notes and what `details` adds.
    """
    page = _page(Page(width, language or doc.language), doc, rows, details)
    while rows is not None and lines and len(page.lines) > lines and rows > _MIN_ROWS:
        rows -= 1
        page = _page(Page(width, language or doc.language), doc, rows, details)
    return page


def _page(page: Page, doc: Doc, rows: int | None, details: Callable[[Page], None] | None) -> Page:
    for place, part in enumerate(doc.parts):
        if part.heading and len(doc.parts) > 1:
            page.heading(part.heading)
        for at, sentence in enumerate(part.sentences):
            page.text(sentence, tone=Tone.PLAIN if at else Tone.STRONG)
        for sentence in () if place else doc.warnings:
            page.text(sentence, tone=Tone.BAD)
        if part.sentences or not part.heading:
            page.blank()
        _table(page, part, rows)
        if part.below:
            page.text(part.below)
    page.blank()
    for sentence in doc.cautions:
        page.text(sentence)
    page.blank()
    if rows is None:
        _notes(page, doc, details)
    advice = page.translation.line(doc.advice)
    typed, opened, price = advice.rpartition(" (")
    _lines(page, [advice], [typed, f"  ({price}"] if opened else wrap(advice, page.width))
    follow = [page.translation.line(each) for each in doc.next if rows is not None or "--full" not in each]
    _lines(page, [(" " * 6).join(follow)], follow)
    return page


def _notes(page: Page, doc: Doc, details: Callable[[Page], None] | None) -> None:
    if doc.legend:
        page.text(doc.legend)
    for heading, entries in doc.notes:
        page.heading(heading)
        page.entries(entries)
    if details is not None:
        details(page)
    page.blank()


def _lines(page: Page, wide: Sequence[str], narrow: Sequence[str]) -> None:
    for line in filter(None, wide if all(cells_of(each) <= page.width for each in wide) else narrow):
        page.line(line)


def _table(page: Page, part: Part, most: int | None) -> None:
    if lines := part.lines:
        _lines_of(page, part.head, lines, most)
    elif part.head:
        _differences(page, part, most)


def _lines_of(page: Page, head: Sequence[str], rows: Sequence[Line], most: int | None) -> None:
    """Add rows of texts: below a head, or as a list whose last cells are cut."""
    shown = rows[:most]
    if head:
        notes, tones = ["", *(each.note for each in shown)], [Tone.STRONG, *(each.tone for each in shown)]
        page.table([head, *(each.cells for each in shown)], tones, notes=notes)
    else:
        say = page.translation.phrase
        firsts = [[cut_id(each.cells[0], _WIDEST_ID), *map(say, each.cells[1:-1])] for each in shown]
        for first, each in zip(columns(firsts, left=frozenset(range(len(firsts[0])))), shown, strict=True):
            page.line("  ", first, "  ", cut(each.cells[-1], page.width - cells_of(first) - 2 * GAP))
    if head and (more := len(rows) - len(shown)):
        page.text(f"and {more:,} more: --full", tone=Tone.QUIET)


def _differences(page: Page, part: Part, most: int | None) -> None:
    entries, widest = part.entries, _WIDEST_NAME[part.what] + max(page.width - 80, 0) // 4
    title, *names, number, level = part.head
    head = (title, *(cut(each, widest) for each in names), f"{number}, {level}", "")
    first, *lines = _aligned([head, *(entry.cells for entry in entries[:most])], page.width)
    if not first.startswith(title[:1]):  # the title was too long for its column
        page.text(title, tone=Tone.STRONG)
    page.line(Span(first, Tone.STRONG))
    for each in part.compared:
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
        page.text(f"  and {more:,} more: --full", tone=Tone.QUIET)


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
        strong = [f"**{code(each)}**" for each in part.sentences[:1] if each != doc.title]
        blocks += filter(None, [" ".join([*strong, *map(code, part.sentences[1:])])])
    blocks += [code(doc.advice)] if doc.advice else []
    blocks += [f"> **Warning:** {code(sentence)}" for sentence in doc.warnings]
    for part in doc.parts:
        blocks += filter(None, [_markdown_table(part), part.below and code(part.below)])
    blocks += [code(each) for each in (doc.legend, *doc.cautions) if each]
    for heading, entries in doc.notes:
        lines = "\n".join(f"- {code(name)}: {code(text)}" for name, text in entries)
        blocks.append(f"<details><summary>{heading}</summary>\n\n{lines}\n\n</details>")
    return blocks_within([*blocks, *last], optional)


def _markdown_table(part: Part) -> str:
    if not part.head:
        return ""
    _, *names, number, level = part.head
    head = (part.what, *map(code, names), number, level, "verdict")
    blank = [""] * (len(head) - 1)
    if part.lines:
        rows = [(code(each.cells[0]), *each.cells[1:], each.note and code(each.note)) for each in part.lines]
        return markdown_table((*part.head, ""), ("---", *["---:"] * (len(part.head) - 1), "---"), rows)
    rows = [
        (f"**{each}**", *blank) if isinstance(each, str) else (code(each.name), *each.cells[1:], each.words)
        for each in part.compared
    ]
    return markdown_table(head, ("---", *["---:"] * (len(head) - 2), "---"), rows)


def sections_of(caveats: Iterable[Caveat]) -> list[Section]:
    """Return the caveats by topic; metrics with the same sentence are named together."""
    return [
        (
            topic,
            [(", ".join(names), text) for text, names in grouped((each.sentence, each.about) for each in own).items()],
        )
        for topic, own in grouped((each.topic, each) for each in caveats if each.topic and each.sentence).items()
    ]


# -- HTML ----------------------------------------------------------------------------------------------

_FOREST: Final = 400
"""Width of the drawing of differences in its template."""


def forest(part: Part) -> tuple[str, list[str | dict[str, Any]]]:  # Any: values of a template
    """Return the end of the line of differences, and the rows: headings, and differences drawn on that line."""
    known = [each.estimate for each in part.entries if each.estimate is not None]
    reach = max([abs(end) for each in known for end in (each.value, *(each.interval or ())) if end], default=1e-6)

    def at(value: float) -> str:
        return f"{(value / reach + 1) / 2 * (_FOREST - 12) + 6:.1f}"

    def row(entry: Entry) -> dict[str, Any]:  # Any: as above
        own = entry.estimate
        value, interval = (None, None) if own is None else (own.value, own.interval)
        tone, glyph = MARKS.get(entry.verdict, (Tone.PLAIN, "="))
        colour = "" if tone is Tone.PLAIN else tone.value
        return {
            "entry": entry,
            "difference": "the best" if own is None else signed(value),
            "ends": "" if own is None else between(interval),
            "value": None if value is None else at(value),
            "interval": interval and [*map(at, interval)],
            "colour": colour,
            "chip": (colour or "none", glyph, entry.said),
        }

    return f"{reach:.3f}", [each if isinstance(each, str) else row(each) for each in part.compared]
