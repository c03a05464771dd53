"""A comparison as Markdown for a comment on a pull request: everything of others is code, so that nothing acts.

In code no mention calls anybody, no link is made, no picture loaded and no markup read. A comment holds 65,536 signs;
samples are left out from the end until it fits.
"""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from merilo.commands.compare import wording as words
from merilo.commands.compare.text import moved_sample
from merilo.rendering.page import Page
from merilo.rendering.sanitize import clean
from merilo.rendering.wording import count, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.commands.compare.result import Row, RunComparison

SHOWN = 5
_MOST_SIGNS = 60_000
_HEADING_SIGNS = 200
_WIDTH = 100


def comparison_markdown(found: RunComparison, *, samples: int = SHOWN) -> str:
    """The comparison with so many of the samples that moved most, as far as 60,000 signs hold them."""
    text = "\n\n".join(_blocks(found)) + "\n"
    shown: list[str] = []
    room = _MOST_SIGNS - len(text) - _HEADING_SIGNS
    for place in range(min(samples, len(found.moved))):
        shown.append(_moved(found, place))
        room -= len(shown[-1]) + 2
        if room < 0:
            shown.pop()
            break
    if not shown:
        return text
    heading = f"**{len(shown):,} of {count(found.movers, 'sample')} that moved**, by {code(found.moved_by or '')}"
    return text + "\n" + "\n\n".join([heading, *shown]) + "\n"


def code(text: str) -> str:
    """Text of others as a code span that also stands in the cell of a table."""
    text = clean(text).replace("|", "\u2502")  # no escape of a bar holds both in and out of tables
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    blank = " " if text.startswith("`") or text.endswith("`") or not text else ""
    return f"{fence}{blank}{text}{blank}{fence}"


def fenced(text: str) -> str:
    """Lines of others as a block of code."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}{fence}\n"


def _blocks(found: RunComparison) -> list[str]:
    """All but the samples."""
    first, *others = (code(name) for name in found.names)
    blocks = [f"### {first} against {' and '.join(others)}: {count(found.common, 'sample')} in common"]
    blocks += [f"> **Mind:** {code(sentence)}" for sentence in words.beware(found)]
    for other in range(1, len(found.sides)):
        blocks.append(_table(found, [row for row in found.rows if row.other == other], other))
    blocks.append(_basis(found))
    blocks.append(f"**{words.family(found)}**\n\n" + "\n".join(map(_reading, words.readings(found))))
    for group in words.beside(found):
        lines = "\n".join(f"- {code(name)}: {code(text)}" for name, text in group.entries)
        blocks.append(f"<details><summary>{group.heading}</summary>\n\n{lines}\n\n</details>")
    return blocks


def _table(found: RunComparison, rows: Sequence[Row], other: int) -> str:
    level = words.level_text(found)
    head = ("metric", code(found.names[0]), code(found.names[other]), "difference", f"{level} interval", "reading")
    lines = [_line(head), "|---|---:|---:|---:|---:|---|"]
    for row in rows:
        each = row.comparison
        cells = (number(each.first), number(each.second), words.signed(each.difference), words.interval(each))
        lines.append(_line((code(words.marked(row)), *cells, code(words.reading(found, row)))))
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _basis(found: RunComparison) -> str:
    other = code(found.names[1]) if len(found.sides) == 2 else "the other"
    units = "" if found.cluster is None else f" Samples with the same {code(found.cluster)} count together."
    return (
        f"Differences are {code(found.names[0])} less {other}. Intervals are at {words.level_text(found)}, "
        f"{words.over(found)}.{units}"
    )


def _reading(each: words.Said) -> str:
    against = f", {code(each.against)}" if each.against else ""
    metrics = ", ".join(code(metric) for metric in each.metrics)
    why = f" ({each.why})" if each.why else ""  # in our words alone
    return f"- **{code(each.reading)}**{against}: {metrics}{why}"


def _moved(found: RunComparison, place: int) -> str:
    """A sample behind a line that opens it."""
    each = found.moved[place]
    values = ", ".join(number(value) for value in each.values)
    page = Page(_WIDTH)
    moved_sample(page, found, each)
    summary = f"<code>{escape(clean(each.sample))}</code>: {values}"
    return f"<details><summary>{summary}</summary>\n\n{fenced(str(page))}\n</details>"
