"""A comparison as Markdown for a comment on a pull request."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from merilo.commands.compare import wording as words
from merilo.commands.compare.notes import comparison_notes
from merilo.commands.compare.text import moved_sample
from merilo.rendering.ci import Annotation, blocks_within, code, fenced, markdown_table
from merilo.rendering.page import Page
from merilo.rendering.sanitize import clean
from merilo.rendering.wording import count, number
from merilo.results.basis import BY_JUDGE

if TYPE_CHECKING:
    from merilo.commands.compare.result import RunComparison

SHOWN = 5
_WIDTH = 100


def comparison_markdown(found: RunComparison, *, samples: int = SHOWN) -> str:
    """Return the comparison with at most `samples` of the samples that changed most, within 60,000 characters."""
    return blocks_within(_blocks(found), [_moved(found, place) for place in range(min(samples, len(found.moved)))])


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
    blocks += [_table(found, other) for other in range(1, len(found.sides))]
    blocks.append(words.basis(found, code))
    blocks.append(f"**{words.family(found)}**\n\n" + "\n".join(map(_reading, words.readings(found))))
    for group in comparison_notes(found):
        lines = "\n".join(f"- {code(name)}: {code(text)}" for name, text in group.entries)
        blocks.append(f"<details><summary>{group.heading}</summary>\n\n{lines}\n\n</details>")
    if found.moved:
        blocks.append(
            f"**{count(found.movers, 'sample')} changed**, by {code(words.moved_by(found))}; the most changed:"
        )
    return blocks


def _table(found: RunComparison, other: int) -> str:
    level = words.level_text(found)
    head = ("metric", code(found.names[0]), code(found.names[other]), "difference", f"{level} interval", "conclusion")
    rows: list[tuple[str, ...]] = []
    for row in found.rows_of(other):
        metric, *numbers, _, reading = words.cells(found, row)
        rows.append((code(metric), *numbers, code(reading)))
    return markdown_table(head, ("---", *["---:"] * 4, "---"), rows)


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
