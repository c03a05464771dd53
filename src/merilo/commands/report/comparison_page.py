"""A comparison of runs as one HTML file: paired differences, and all samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from merilo.commands.compare import wording as words
from merilo.commands.compare.notes import comparison_notes
from merilo.commands.compare.result import Verdict
from merilo.commands.compare.text import to_decide
from merilo.commands.report.details import Caution
from merilo.commands.report.page import (
    cautions,
    chip,
    drawer,
    fault_fields,
    forest_row,
    heading,
    metric_field,
    notes,
    page,
    page_data,
    reach_of,
    rounded,
    table,
    text,
)
from merilo.commands.report.plain import plain_pairs
from merilo.commands.report.run import compared_samples
from merilo.rendering.markup import Markup, el
from merilo.rendering.wording import number

if TYPE_CHECKING:
    from merilo.commands.compare.result import Row, RunComparison
    from merilo.commands.report.run import ComparedSamples

_HEAD: Final = ("Metric", "Means", "Difference", "Plot", "Verdict")
_TONES: Final = {Verdict.BETTER: "good", Verdict.WORSE: "bad"}
_GLYPHS: Final = {Verdict.BETTER: "\u25b2", Verdict.WORSE: "\u25bc", Verdict.CANNOT_TELL: "?"}


def comparison_page(found: RunComparison, samples: ComparedSamples | None = None) -> str:
    """Return the comparison as one HTML file; equal comparisons give equal bytes.

    `samples`: the common samples; None: they are read from the runs. Raises RunError if a run cannot be read.
    """
    shown = compared_samples(found) if samples is None else samples
    title = " against ".join(found.names)
    head = el(
        "header",
        el("h1", text(title)),
        el("p", el("span", words.title(found)), el("span", f"{words.level_text(found)} intervals"), cls="facts"),
        [el("p", each, cls="lead") for each in _lead(found)],
        cautions([Caution("Note.", each) for each in words.beware(found)]),
        cls="wrap head",
    )
    pairs = [_pair(found, other) for other in range(1, len(found.sides))]
    basis = el("p", words.basis(found), cls="soft small")
    numbers = el("div", pairs, basis, notes(comparison_notes(found)), cls="wrap")
    title_of_samples = heading("Samples", "those that changed most first; open one to see the runs side by side")
    app = el(
        "section", el("div", title_of_samples, cls="wrap", id="samples"), cls="app", id="app", aria_label="Samples"
    )
    return page(
        f"{title}: comparison",
        [head, el("main", numbers, app), drawer("broad")],
        scripts=("table.js", "sample.js", "compare.js"),
        data=page_data(
            _columns(found, shown), {f"details{place}": own for place, own in enumerate(shown.entries)}, shown.passages
        ),
        after=plain_pairs(found, shown),
    )


def _columns(found: RunComparison, shown: ComparedSamples) -> dict[str, Any]:  # Any: JSON
    first, *_ = shown.entries
    averaged = {each.metric for side in found.sides for each in side.run.metrics.values() if each.averaged}
    return {
        "total": found.common,
        "names": list(found.names),
        "by": found.moved_by,
        "metrics": [
            metric_field(metric, scale, weak=metric in found.weak, averaged=metric in averaged)
            for metric, scale in zip(shown.metrics, shown.scales, strict=True)
        ],
        "faults": fault_fields(),
        "chips": any(each.response for own in shown.entries for each in own),
        "id": [each.row.id for each in first],
        "q": [each.question for each in first],
        "r": [[each.response for each in own] for own in shown.entries],
        "f": [[each.row.fault for each in own] for own in shown.entries],
        "v": [
            [[rounded(each.row.values[at]) for each in own] for own in shown.entries]
            for at in range(len(shown.metrics))
        ],
    }


def _lead(found: RunComparison) -> list[str]:
    """Return the conclusion on each run, what is known of the judge, and the labels that would decide."""
    sentences = [
        sentence
        for other in range(1, len(found.sides))
        for sentence in (words.conclusion(found, other), *words.next_steps(found, other))
    ]
    return [*sentences, *filter(None, [to_decide(found)])]


def _pair(found: RunComparison, other: int) -> Markup:
    rows = found.rows_of(other)
    reach = reach_of([row.interval for row in rows], [row.difference for row in rows])
    shown: list[Markup] = []
    for group in words.groups(found, other):
        shown.append(el("tr", el("th", group.heading, colspan=len(_HEAD), scope="rowgroup"), cls="grouphead"))
        told = zip(group.rows, group.said, strict=True)
        shown += [_row(found, row, said, reach, colour=group.colour) for row, said in told]
    note = f"right of the line: {found.names[other]} is higher"
    return el("section", heading("Differences", note), table(_HEAD, shown, cls="forest"), cls="gap")


def _row(found: RunComparison, row: Row, said: str, reach: float, *, colour: bool) -> Markup:
    each = row.comparison
    tone = _TONES.get(row.verdict or Verdict.CANNOT_TELL, "none") if colour else "none"
    glyph = _GLYPHS.get(row.verdict or Verdict.CANNOT_TELL, "=")
    label = f"Difference {words.signed(each.difference)}, interval {words.interval(each)}"
    drawn = forest_row(each.difference, each.interval.ends, reach, "" if tone == "none" else tone, label)
    repeated = not said or row.unchecked or row.verdict is Verdict.CANNOT_TELL  # in the heading, or in the verdict
    reason = "" if repeated else words.why(found, row)
    verdict = [chip(tone, glyph, said)] if said else []
    pairs = [el("p", fewer, cls="small soft")] if (fewer := words.with_pairs(found, row, "")) else []
    return el(
        "tr",
        el("th", el("a", words.marked(row), href="#samples", data_metric=row.metric), scope="row"),
        el("td", f"{number(row.base_mean)} to {number(row.run_mean)}", pairs, cls="nw"),
        el("td", el("b", words.signed(each.difference)), el("span", f" {words.interval(each)}", cls="small soft nw")),
        el("td", drawn, cls="plot"),
        el("td", verdict, el("p", reason, cls="small soft") if reason else None, cls="read"),
    )
