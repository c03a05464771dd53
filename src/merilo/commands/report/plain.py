"""The samples of a report as plain HTML, for readers without scripts: every score, and the first samples in full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from merilo.commands.report.faults import FAULTS
from merilo.commands.report.page import chip, heading, text
from merilo.rendering.markup import Markup, el, joined
from merilo.rendering.sanitize import visible
from merilo.rendering.wording import count, number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.commands.report.result import Entry, RunReport, Value

_IN_FULL: Final = 100
"""Number of samples whose texts and verdicts are in the plain copy."""


def plain_copy(found: RunReport) -> Markup:
    """Return the table of all samples that are shown, and the details of the first `_IN_FULL`."""
    metrics = tuple(found.run.manifest.metrics)
    columns = ("Likely fault", "Sample", *metrics)
    head = el("tr", [el("th", each, scope="col") for each in columns])
    rows = [_row(each) for each in found.entries]
    shown = f"{count(len(found.entries), 'sample')}, the worst first"
    if len(found.entries) < found.samples:
        shown = f"the worst {len(found.entries):,} of {count(found.samples, 'sample')}"
    table = el("table", el("thead", head), el("tbody", rows), cls="plaintable")
    full = found.entries[:_IN_FULL]
    details = el("section", heading("Samples in full", f"the first {len(full):,}"), [_sample(found, x) for x in full])
    return el(
        "section",
        heading("Samples", shown),
        _scrolling(table),
        details,
        cls="wrap plain",
        id="plain",
        aria_label="All samples",
    )


def _scrolling(table: Markup) -> Markup:
    return el("div", table, cls="scroll", tabindex=0, role="group", aria_label="Scores of all samples")


def _row(entry: Entry) -> Markup:
    fault = FAULTS[entry.row.fault]
    named = el("td", el("b", text(entry.question)), " ", text(entry.row.id, cls="soft small"))
    values = [el("td", value_text(each), cls="num") for each in entry.row.values]
    return el("tr", el("td", chip(fault.tone, fault.glyph, fault.name)), named, values)


def value_text(value: Value) -> str:
    """Return the value of a cell: a number, or why there is none."""
    return "undefined" if value is None else "failed" if value is False else number(value)


def _sample(found: RunReport, entry: Entry) -> Markup:
    fault, detail = FAULTS[entry.row.fault], entry.detail
    scores = dict(zip(found.run.manifest.metrics, map(value_text, entry.row.values), strict=True))
    return el(
        "article",
        el("h3", text(entry.question or entry.row.id)),
        el("p", chip(fault.tone, fault.glyph, fault.name), " ", fault.cause),
        el("p", el("b", "Earlier turns: "), text(detail["h"])) if "h" in detail else None,
        el("p", el("b", "Response: "), text(detail["r"])) if detail["r"] is not None else None,
        el("p", el("b", "Reference: "), text(detail["ref"])) if detail["ref"] is not None else None,
        [remark(each) for each in detail["whole"]],
        [statements_of(group) for group in detail["st"]],
        el("ol", [context_of(found.passages, each) for each in detail["cx"]]),
        el("ul", [el("li", f"{name} {value}", based_on(detail, name)) for name, value in scores.items()]),
        el("ul", [_reason(name, *why) for name, why in detail["why"].items()]) if detail["why"] else None,
        id=f"sample={visible(entry.row.id)}",
    )


def based_on(detail: Mapping[str, Any], metric: str) -> str:  # Any: JSON
    """Return what the score of a metric is based on, in parentheses; may be empty."""
    basis = detail["n"].get(metric)
    return f" ({basis})" if basis else ""


def statements_of(group: Mapping[str, Any]) -> Markup:  # Any: JSON
    """Return the statements that some metrics counted, with their verdicts."""
    rows = [el("li", text(each["t"]), [remark(said) for said in each["said"]]) for each in group["st"]]
    return joined((el("p", el("b", f"Statements of {group['m']}")), el("ul", rows)))


def context_of(
    passages: Sequence[tuple[str, Sequence[str]]], context: Mapping[str, Any], note: Markup | None = None
) -> Markup:  # Any: JSON
    """Return a context with its evidence marked and its verdicts, after a note."""
    place: int = context["p"]
    name, sentences = passages[place]
    marked = frozenset[int](context["e"])
    body = [joined((el("mark" if at in marked else "bdi", each, dir="auto"), " ")) for at, each in enumerate(sentences)]
    return el(
        "li",
        text(name, cls="soft small") if name else None,
        note,
        el("p", body, cls="t", dir="auto"),
        [remark(each) for each in context["said"]],
    )


def remark(verdict: Sequence[str]) -> Markup:
    """Return a verdict as text: its kind, the verdict and the reason."""
    kind, words, reason, *_ = verdict
    return el("p", f"{kind}: {words}", f". {reason}" if reason else None, cls="small soft")


def _reason(metric: str, state: str, reason: str) -> Markup:
    return el("li", f"{metric} {state}: ", text(reason))
