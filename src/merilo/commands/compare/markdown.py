"""A comparison as Markdown for a comment on a pull request."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from merilo.commands.compare import wording as words
from merilo.commands.compare.notes import comparison_notes
from merilo.commands.compare.text import moved_sample, to_decide
from merilo.rendering.ci import Annotation, blocks_within, code, fenced, markdown_table
from merilo.rendering.page import Page
from merilo.rendering.sanitize import clean
from merilo.rendering.wording import count, number

if TYPE_CHECKING:
    from merilo.commands.compare.result import RunComparison

SHOWN = 5
_WIDTH = 100


def comparison_markdown(found: RunComparison, *, samples: int = SHOWN) -> str:
    """Return the comparison with at most `samples` of the samples that changed most, within 60,000 characters."""
    return blocks_within(_blocks(found), [_moved(found, place) for place in range(min(samples, len(found.moved)))])


def comparison_annotations(found: RunComparison) -> list[Annotation]:
    """Return a warning for each caution, and a notice for the conclusion on each run."""
    warnings = [Annotation("warning", "merilo compare", sentence) for sentence in words.beware(found)]
    return warnings + [
        Annotation("notice", f"merilo compare: {found.verdict_of(other)}", words.conclusion(found, other))
        for other in range(1, len(found.sides))
    ]


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
    for group in comparison_notes(found):
        lines = "\n".join(f"- {code(name)}: {code(text)}" for name, text in group.entries)
        blocks.append(f"<details><summary>{group.heading}</summary>\n\n{lines}\n\n</details>")
    if found.moved:
        blocks.append(
            f"**{count(found.movers, 'sample')} changed**, by {code(words.moved_by(found))}; the most changed:"
        )
    return blocks


def _table(found: RunComparison, other: int) -> str:
    names = code(found.names[0]), code(found.names[other])
    head = ("metric", *names, "difference", f"{words.level_text(found)} interval", "verdict")
    rows: list[tuple[str, ...]] = []
    for group in words.groups(found, other):
        rows.append((f"**{group.heading}**", *[""] * 5))
        for row, said in zip(group.rows, group.said, strict=True):
            metric, *numbers = words.cells(row)
            rows.append((code(metric), *numbers, words.with_pairs(found, row, said)))
    return markdown_table(head, ("---", *["---:"] * 4, "---"), rows)


def _moved(found: RunComparison, place: int) -> str:
    """Return a sample in a collapsible block."""
    each = found.moved[place]
    values = ", ".join(number(value) for value in each.values)
    page = Page(_WIDTH)
    moved_sample(page, found, each)
    summary = f"<code>{escape(clean(each.sample))}</code>: {values}"
    return f"<details><summary>{summary}</summary>\n\n{fenced(str(page))}\n</details>"
