"""Samples as plain HTML for readers without scripts: of a run, and of a comparison with all runs side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from merilo.commands.report.faults import FAULTS
from merilo.commands.report.page import chip, heading, table, text
from merilo.rendering.markup import Markup, el, joined
from merilo.rendering.sanitize import visible
from merilo.rendering.wording import count, number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.commands.compare.result import RunComparison
    from merilo.commands.report.compared import ComparedSamples
    from merilo.commands.report.result import Entry, RunReport, Value

_IN_FULL: Final = 100
"""Number of samples whose texts and verdicts are in the plain copy."""


def plain_copy(found: RunReport) -> Markup:
    """Return the table of all samples that are shown, and the details of the first `_IN_FULL`."""
    shown = f"{count(len(found.entries), 'sample')}, the worst first"
    if len(found.entries) < found.samples:
        shown = f"the worst {len(found.entries):,} of {count(found.samples, 'sample')}"
    head = ("Likely fault", "Sample", *found.run.manifest.metrics)
    scores = table(head, [_row(each) for each in found.entries], cls="plaintable")
    full = found.entries[:_IN_FULL]
    return _plain(
        heading("Samples", shown),
        el("div", scores, cls="scroll", tabindex=0, role="group", aria_label="Scores of all samples"),
        el("section", heading("Samples in full", f"the first {len(full):,}"), [_sample(found, each) for each in full]),
    )


def plain_pairs(found: RunComparison, shown: ComparedSamples) -> Markup:
    """Return the first samples, each as a line that opens to all runs side by side."""
    pairs = list(zip(*shown.entries, strict=True))[:_IN_FULL]
    title = heading("Samples", f"the first {len(pairs):,} of {found.common:,}, those that changed most first")
    return _plain(title, [_pair(found, shown, each) for each in pairs])


def _plain(*children: object) -> Markup:
    return el("section", *children, cls="wrap plain", id="plain", aria_label="All samples")


def _row(entry: Entry) -> Markup:
    fault = FAULTS[entry.row.fault]
    named = el("td", el("b", text(entry.question)), " ", text(entry.row.id, cls="soft small"))
    values = [el("td", _value_text(each), cls="num") for each in entry.row.values]
    return el("tr", el("td", chip(fault.tone, fault.glyph, fault.name)), named, values)


def _value_text(value: Value) -> str:
    """Return the value of a cell: a number, or why there is none."""
    return "undefined" if value is None else "failed" if value is False else number(value)


def _sample(found: RunReport, entry: Entry) -> Markup:
    fault, detail = FAULTS[entry.row.fault], entry.detail
    bases = {name: f" ({basis})" for name, basis in detail["n"].items()}
    scores = dict(zip(found.run.manifest.metrics, map(_value_text, entry.row.values), strict=True))
    return el(
        "article",
        el("h3", text(entry.question or entry.row.id)),
        el("p", chip(fault.tone, fault.glyph, fault.name), " ", fault.cause),
        el("p", el("b", "Earlier turns: "), text(detail["h"])) if "h" in detail else None,
        el("p", el("b", "Response: "), text(detail["r"])) if detail["r"] is not None else None,
        el("p", el("b", "Reference: "), text(detail["ref"])) if detail["ref"] is not None else None,
        [_remark(each) for each in detail["whole"]],
        [_statements_of(group) for group in detail["st"]],
        el("ol", [_context_of(found.passages, each) for each in detail["cx"]]),
        el("ul", [el("li", f"{name} {value}", bases.get(name)) for name, value in scores.items()]),
        el("ul", [el("li", f"{name} {state}: ", text(why)) for name, (state, why) in detail["why"].items()])
        if detail["why"]
        else None,
        id=f"sample={visible(entry.row.id)}",
    )


def _statements_of(group: Mapping[str, Any]) -> Markup:  # Any: JSON
    """Return the statements that some metrics counted, with their verdicts."""
    rows = [el("li", text(each["t"]), [_remark(said) for said in each["said"]]) for each in group["st"]]
    return joined((el("p", el("b", f"Statements of {group['m']}")), el("ul", rows)))


def _context_of(
    passages: Sequence[tuple[str, Sequence[str]]], context: Mapping[str, Any], note: Markup | None = None
) -> Markup:  # Any: JSON
    """Return a context with its evidence marked and its verdicts, after a note."""
    place: int = context["p"]
    name, sentences = passages[place]
    body = [
        joined((el("mark" if at in context["e"] else "bdi", each, dir="auto"), " "))
        for at, each in enumerate(sentences)
    ]
    return el(
        "li",
        text(name, cls="soft small") if name else None,
        note,
        el("p", body, cls="t", dir="auto"),
        [_remark(each) for each in context["said"]],
    )


def _remark(verdict: Sequence[str]) -> Markup:
    """Return a verdict as text: its kind, the verdict and the reason."""
    kind, words, reason, *_ = verdict
    return el("p", f"{kind}: {words}", f". {reason}" if reason else None, cls="small soft")


def _pair(found: RunComparison, shown: ComparedSamples, entries: Sequence[Entry]) -> Markup:
    first, reference = entries[0], entries[0].detail["ref"]
    by = shown.metrics.index(found.moved_by) if found.moved_by in shown.metrics else 0
    values = " and ".join(_value_text(each.row.values[by]) for each in entries)
    summary = el("summary", text(first.question or first.row.id), el("span", values, cls="soft"))
    panes = [
        _pane(shown, name, each, [other for other in entries if other is not each])
        for name, each in zip(found.names, entries, strict=True)
    ]
    body = el(
        "div",
        text(first.row.id, tag="p", cls="soft small"),
        el("p", el("b", "Reference: "), text(reference)) if reference is not None else None,
        el("div", panes, cls="two"),
    )
    return el("details", summary, body, cls="move", id=f"sample={visible(first.row.id)}")


def _pane(shown: ComparedSamples, name: str, entry: Entry, others: Sequence[Entry]) -> Markup:
    fault, detail = FAULTS[entry.row.fault], entry.detail
    scores = [
        el("div", el("dt", metric), el("dd", _value_text(value)))
        for metric, value in zip(shown.metrics, entry.row.values, strict=True)
    ]
    return el(
        "div",
        el("h3", text(name)),
        el("p", chip(fault.tone, fault.glyph, fault.name)),
        text(detail["r"], tag="p") if detail["r"] is not None else None,
        [_statements_of(each) for each in detail["st"]],
        [_remark(each) for each in detail["whole"]],
        el("ol", [_context_of(shown.passages, each, _rank(at, each, others)) for at, each in enumerate(detail["cx"])]),
        el("dl", scores, cls="scores"),
        cls="pane",
    )


def _rank(at: int, context: Mapping[str, Any], others: Sequence[Entry]) -> Markup | None:  # Any: JSON
    """Return where the other run has this context; None with more than two runs."""
    if len(others) != 1:
        return None
    places = [place for place, each in enumerate(others[0].detail["cx"]) if each["p"] == context["p"]]
    if not places:
        return el("span", "only here", cls="chip warn")
    return el("span", "same rank" if places[0] == at else f"there: {places[0] + 1}", cls="chip")
