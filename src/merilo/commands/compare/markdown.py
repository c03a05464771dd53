"""A comparison as Markdown for a comment on a pull request.

Text of data and models is always shown as code: in code, mentions notify no user, and links, images and markup have
no effect. A comment may have 65,536 characters; samples are left out from the end until it fits.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from merilo.commands.compare import wording as words
from merilo.commands.compare.text import moved_sample
from merilo.rendering.ci import MAX_CHARS, Annotation, code, fenced
from merilo.rendering.page import Page
from merilo.rendering.sanitize import clean
from merilo.rendering.weak import WEAK_LEGEND
from merilo.rendering.wording import count, number
from merilo.results.basis import BY_JUDGE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.commands.compare.result import Row, RunComparison

SHOWN = 5
_HEADING_CHARS = 200
_WIDTH = 100


def comparison_markdown(found: RunComparison, *, samples: int = SHOWN) -> str:
    """Return the comparison with at most `samples` of the samples that changed most, within 60,000 characters."""
    text = "\n\n".join(_blocks(found)) + "\n"
    shown: list[str] = []
    room = MAX_CHARS - len(text) - _HEADING_CHARS
    for place in range(min(samples, len(found.moved))):
        shown.append(_moved(found, place))
        room -= len(shown[-1]) + 2
        if room < 0:
            shown.pop()
            break
    if not shown:
        return text
    heading = f"**{len(shown):,} of {count(found.movers, 'sample')} that changed**, by {code(words.moved_by(found))}"
    return text + "\n" + "\n\n".join([heading, *shown]) + "\n"


def comparison_annotations(found: RunComparison) -> list[Annotation]:
    """Return a warning for each caution, and a notice for each conclusion."""
    warnings = [Annotation("warning", "merilo compare", sentence) for sentence in words.beware(found)]
    return warnings + [
        Annotation("notice", f"merilo compare: {each.reading}", f"{each.against} {', '.join(each.metrics)}".strip())
        for each in words.readings(found)
    ]


def _blocks(found: RunComparison) -> list[str]:
    """Return all parts except the samples."""
    first, *others = (code(name) for name in found.names)
    alone = f", {BY_JUDGE}" if found.by_judge_alone else ""
    blocks = [f"### {first} vs. {' and '.join(others)}: {count(found.common, 'sample')} in common{alone}"]
    blocks += [f"> **Warning:** {code(sentence)}" for sentence in words.beware(found)]
    for other in range(1, len(found.sides)):
        blocks.append(_table(found, [row for row in found.rows if row.other == other], other))
    blocks.append(_basis(found))
    blocks.append(f"**{words.family(found)}**\n\n" + "\n".join(map(_reading, words.readings(found))))
    for group in words.comparison_notes(found):
        lines = "\n".join(f"- {code(name)}: {code(text)}" for name, text in group.entries)
        blocks.append(f"<details><summary>{group.heading}</summary>\n\n{lines}\n\n</details>")
    return blocks


def _table(found: RunComparison, rows: Sequence[Row], other: int) -> str:
    level = words.level_text(found)
    head = ("metric", code(found.names[0]), code(found.names[other]), "difference", f"{level} interval", "conclusion")
    lines = [_line(head), "|---|---:|---:|---:|---:|---|"]
    for row in rows:
        each = row.comparison
        cells = (number(each.first), number(each.second), words.signed(each.difference), words.interval(each))
        lines.append(_line((code(words.marked(row)), *cells, code(words.reading(found, row)))))
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _basis(found: RunComparison) -> str:
    other = code(found.names[1]) if len(found.sides) == 2 else "the other run"
    units = "" if found.cluster is None else f" Samples with the same {code(found.cluster)} form one cluster."
    weak = ", ".join(map(code, sorted(found.weak)))
    legend = f" \\* {WEAK_LEGEND}: {weak}." if weak else ""
    return (
        f"Differences are {code(found.names[0])} minus {other}. Intervals ({words.level_text(found)}) "
        f"{words.over(found)}.{units}{legend}"
    )


def _reading(each: words.ConclusionText) -> str:
    against = f", {code(each.against)}" if each.against else ""
    metrics = ", ".join(code(metric) for metric in each.metrics)
    why = f" ({each.why})" if each.why else ""  # merilo's own words, so it needs no code span
    return f"- **{code(each.reading)}**{against}: {metrics}{why}"


def _moved(found: RunComparison, place: int) -> str:
    """Return a sample in a collapsible block."""
    each = found.moved[place]
    values = ", ".join(number(value) for value in each.values)
    page = Page(_WIDTH)
    moved_sample(page, found, each)
    summary = f"<code>{escape(clean(each.sample))}</code>: {values}"
    return f"<details><summary>{summary}</summary>\n\n{fenced(str(page))}\n</details>"
