"""A comparison of runs as one HTML file without scripts: paired differences, and samples that moved side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.commands.compare import wording as words
from merilo.commands.report.charts import forest_row, reach_of
from merilo.commands.report.page import cautions, chip, heading, page, text
from merilo.commands.report.result import Caution
from merilo.judging.kinds.relevance import RelevanceVerdict
from merilo.judging.kinds.support import SupportVerdict
from merilo.rendering.html_evidence import value_cell
from merilo.rendering.markup import Markup, el, joined
from merilo.rendering.weak import WEAK_LEGEND, WeakMarks
from merilo.rendering.wording import count, number, reason_of, said

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from merilo.commands.compare.result import Moved, Row, RunComparison
    from merilo.results.sample_detail import ContextView, Remark, SampleDetail, StatementView

_HEAD: Final = ("Metric", "Means", "Difference", "", "Higher, equal, lower", "Conclusion")
_GLYPHS: Final = {"good": "\u25b2", "bad": "\u25bc", "none": "?"}


def comparison_page(found: RunComparison) -> str:
    """Return the comparison as one HTML file; equal comparisons give equal bytes."""
    title = " against ".join(found.names)
    head = el(
        "header",
        el("h1", text(title)),
        el("p", el("span", words.title(found)), el("span", f"{words.level_text(found)} intervals"), cls="facts"),
        el("p", _lead(found), cls="lead"),
        cautions(_cautions(found)),
        cls="wrap head",
    )
    pairs = [_pair(found, other) for other in range(1, len(found.sides))]
    notes = [
        el("section", heading(note.heading), el("dl", [_entry(*each) for each in note.entries], cls="small"))
        for note in words.comparison_notes(found)
    ]
    basis = el("p", f"{words.basis(found)} {words.family(found)}", cls="soft small")
    return page(f"{title}: comparison", [head, el("main", pairs, basis, _moved(found), notes, cls="wrap pairs")])


def _cautions(found: RunComparison) -> list[Caution]:
    """Return what limits the differences: a judge without human labels or a weak one, and the notes of the runs."""
    notes = [Caution("Note.", each) for each in words.beware(found)]
    if found.by_judge_alone:
        notes.append(Caution("By the judge alone.", "No human label corrects these differences."))
    if found.weak:
        notes.append(Caution("Weak judge.", f"{', '.join(sorted(found.weak))}: {WEAK_LEGEND}."))
    return notes


def _lead(found: RunComparison) -> list[object]:
    """Return how many metrics are better in which run, and the largest such difference."""
    tones = [_tone(found, row) for row in found.rows]
    better, worse = tones.count("good"), tones.count("bad")
    first = found.names[0]
    lead: list[object] = [
        el("b", f"{better:,} of {count(len(tones), 'difference')}"),
        f" favour {first}, {worse:,} another run; {len(tones) - better - worse:,} not decided.",
    ]
    decided = [row for row, tone in zip(found.rows, tones, strict=True) if tone != "none"]
    if decided:
        most = max(decided, key=lambda row: abs(row.comparison.standardised or 0.0))
        lead += [" Clearest: ", el("b", most.metric), f" {words.signed(most.comparison.difference)}."]
    return lead


def _tone(found: RunComparison, row: Row) -> str:
    """Return `good` if the conclusion is that the first run is better, `bad` if the other one is, otherwise `none`."""
    if row.ahead is None or found.differing:
        return "none"
    return "good" if row.ahead == 0 else "bad"


def _pair(found: RunComparison, other: int) -> Markup:
    rows = [row for row in found.rows if row.other == other]
    reach = reach_of([row.comparison.interval.ends for row in rows], [row.comparison.difference for row in rows])
    head = el("tr", [el("th", each, scope="col") for each in _HEAD])
    table = el("table", el("thead", head), el("tbody", [_row(found, row, reach) for row in rows]), cls="forest")
    note = f"{found.names[0]} minus {found.names[other]}, paired; right of the line: {found.names[0]} is higher"
    return el("section", heading("Differences", note), table)


def _row(found: RunComparison, row: Row, reach: float) -> Markup:
    each, tone = row.comparison, _tone(found, row)
    counts = each.counts
    drawn = forest_row(each.difference, each.interval.ends, reach, "" if tone == "none" else tone, _label(row))
    amounts = (
        el("span", f"\u25b2 {counts.wins:,}", cls="up"),
        f" = {counts.ties:,} ",
        el("span", f"\u25bc {counts.losses:,}", cls="down"),
    )
    why = words.why(found, row)
    return el(
        "tr",
        el("th", words.marked(row), scope="row"),
        el("td", f"{number(each.first)} and {number(each.second)}", cls="nw"),
        el("td", el("b", words.signed(each.difference)), el("span", f" {words.interval(each)}", cls="small soft nw")),
        el("td", drawn, cls="plot"),
        el("td", amounts, cls="nw"),
        el(
            "td",
            chip(tone, _GLYPHS[tone], words.reading(found, row)),
            el("p", why, cls="small soft") if why else None,
            cls="read",
        ),
    )


def _label(row: Row) -> str:
    return f"Difference {words.signed(row.comparison.difference)}, interval {words.interval(row.comparison)}"


def _entry(name: str, note: str) -> Markup:
    return el("div", el("dt", el("b", name)), el("dd", text(note)))


def _moved(found: RunComparison) -> Markup:
    if not found.moved:
        return el("section", heading("Samples that moved"), el("p", "No sample has different scores."))
    shown = [_sample(found, each) for each in found.moved]
    return el("section", heading("Samples that moved", words.moved_title(found)), shown)


def _sample(found: RunComparison, moved: Moved) -> Markup:
    """Return one sample that moved: a line, which opens to both runs side by side."""
    values = " and ".join(map(number, moved.values))
    up = next((row.higher_is_better for row in found.rows if row.metric == found.moved_by), True)
    glyph = "\u25b2" if moved.step > 0 else "\u25bc"
    tone = "up" if (moved.step > 0) == up else "down"
    question = moved.cases[0].result.sample.user_input
    reference = moved.cases[0].result.sample.reference
    summary = el(
        "summary",
        text(question or moved.sample),
        el("span", values, cls="soft"),
        el("b", f"{glyph} {words.signed(moved.step)}", cls=tone),
    )
    panes = [
        _pane(found, name, case, [other for other in moved.cases if other is not case])
        for name, case in zip(found.names, moved.cases, strict=True)
    ]
    body = el(
        "div",
        text(moved.sample, tag="p", cls="soft small"),
        el("p", el("b", "Reference: "), text(reference)) if reference else None,
        el("div", panes, cls="two"),
    )
    return el("details", summary, body, cls="move")


def _pane(found: RunComparison, name: str, case: SampleDetail, others: Sequence[SampleDetail]) -> Markup:
    marks = WeakMarks(found.weak)
    scores = [
        el("div", el("dt", marks.name(metric)), el("dd", value_cell(case.result.outcomes.get(metric))))
        for metric in dict.fromkeys(row.metric for row in found.rows)
    ]
    response = case.result.sample.response
    statements = [each for views in case.statements.values() for each in views]
    return el(
        "div",
        el("h3", text(name)),
        text(response, tag="p") if response is not None else None,
        el("ol", [_statement(each) for each in statements], cls="stmts") if statements else None,
        [_context(view, others) for view in case.contexts],
        el("dl", scores, cls="scores"),
        cls="pane",
    )


def _statement(view: StatementView) -> Markup:
    support = next((each.answer for each in view.said if isinstance(each.answer, SupportVerdict)), None)
    label = "none" if support is None else support.label.value
    return el(
        "li",
        text(view.text, tag="p", cls="st"),
        [_said(each) for each in view.said],
        cls="unsupported" if label == "not_stated" else label,
    )


def _context(view: ContextView, others: Sequence[SampleDetail]) -> Markup:
    grade = next((each.answer.grade for each in view.said if isinstance(each.answer, RelevanceVerdict)), None)
    name, rank = view.context.id, _rank(view, others)
    title = view.sentences[0] if view.sentences else "(blank)"
    summary = el(
        "summary",
        el("b", view.index + 1),
        el("span", el("bdi", title), cls="ti"),
        el("span", rank, cls=f"chip{' warn' * (rank == 'only here')}") if rank else None,
        el("span", f"grade {grade}", cls=f"chip{' good' * (grade == 2)}") if grade is not None else None,
    )
    body = el(
        "div",
        text(name, tag="p", cls="small soft") if name else None,
        el("p", joined(_sentences(view)), dir="auto"),
        [_said(each) for each in view.said],
    )
    return el("details", summary, body, cls="ctx")


def _rank(view: ContextView, others: Sequence[SampleDetail]) -> str:
    """Return where the other run has this context; empty with more than two runs."""
    if len(others) != 1:
        return ""
    for other in others[0].contexts:
        if other.context.text == view.context.text:
            return "same rank" if other.index == view.index else f"there: {other.index + 1}"
    return "only here"


def _sentences(view: ContextView) -> Iterator[Markup]:
    for at, sentence in enumerate(view.sentences):
        yield joined((el("span", sentence, cls=f"sent{' ev' * (at in view.evidence)}"), " "))


def _said(remark: Remark) -> Markup:
    kind = f"{remark.kind}, checked against {remark.against}" if remark.against else remark.kind
    reason = reason_of(remark.answer)
    return el("p", el("b", f"{kind}: "), said(remark.answer), f". {reason}" if reason else None, cls="vd")
