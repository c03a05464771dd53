"""Samples as plain HTML for readers without scripts: of a run, and of a comparison with all runs side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from merilo.commands.report.page import cause, chip, heading, table, text
from merilo.rendering.markup import Markup, el, joined
from merilo.rendering.sanitize import visible
from merilo.rendering.wording import count, number
from merilo.results.faults import FAULTS, has_faults

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.commands.compare.result import RunComparison
    from merilo.commands.report.details import Entry, RunReport, Value
    from merilo.commands.report.run import ComparedSamples

_IN_FULL: Final = 100
"""Number of samples whose texts and verdicts are in the plain copy."""


def plain_copy(found: RunReport) -> Markup:
    """Return the table of all samples that are shown, and the details of the first `_IN_FULL`."""
    shown = f"{count(len(found.entries), 'sample')}, the worst first"
    if len(found.entries) < found.samples:
        shown = f"the worst {len(found.entries):,} of {count(found.samples, 'sample')}"
    metrics = tuple(found.run.manifest.metrics)
    faults = has_faults(metrics)
    scores = table(
        (*["Fault"] * faults, "Sample", *metrics),
        [_row(each, faults=faults) for each in found.entries],
        cls="plaintable",
    )
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


def _row(entry: Entry, *, faults: bool) -> Markup:
    fault = FAULTS[entry.row.fault]
    first = el("td", chip(fault.tone, fault.glyph, fault.name)) if faults else None
    named = el("td", el("b", text(entry.question)), " ", text(entry.row.id, cls="soft small"))
    values = [el("td", _value_text(each), cls="num") for each in entry.row.values]
    return el("tr", first, named, values)


def _value_text(value: Value) -> str:
    """Return the value of a cell: a number, or why there is none."""
    return "undefined" if value is None else "failed" if value is False else number(value)


def _sample(found: RunReport, entry: Entry) -> Markup:
    metrics = tuple(found.run.manifest.metrics)
    return el(
        "article",
        el("h3", text(entry.question or entry.row.id)),
        _named("Earlier turns", entry.detail.get("h")),
        _named("Reference", entry.detail["ref"]),
        _body(entry, metrics, found.passages, components=found.components),
        id=f"sample={visible(entry.row.id)}",
    )


def _body(
    entry: Entry,
    metrics: Sequence[str],
    passages: Sequence[tuple[str, Sequence[str]]],
    ranks: Sequence[Markup | None] | None = None,
    *,
    components: bool = False,
) -> Markup:
    """Return what a run has of a sample: fault, response, verdicts, contexts with their `ranks`, scores and reasons."""
    fault, detail = FAULTS[entry.row.fault], entry.detail
    bases = {name: f" ({basis})" for name, basis in detail["n"].items()}
    scores = zip(metrics, map(_value_text, entry.row.values), strict=True)
    notes = ranks or [None] * len(detail["cx"])
    reasons = [el("li", f"{name} {state}: ", text(why)) for name, (state, why) in detail["why"].items()]
    return joined(
        (
            el("p", chip(fault.tone, fault.glyph, fault.name), " ", cause(fault, components=components))
            if has_faults(metrics)
            else None,
            _named("Response", detail["r"]),
            [_remark(each) for each in detail["whole"]],
            _people(detail),
            _named("Metadata", "\n".join(f"{name}: {value}" for name, value in detail["meta"]) or None),
            [_statements_of(group) for group in detail["st"]],
            el("ol", [_context_of(passages, each, note) for each, note in zip(detail["cx"], notes, strict=True)]),
            el("ul", [el("li", f"{name} {value}", bases.get(name)) for name, value in scores]),
            el("ul", reasons) if reasons else None,
        )
    )


def _named(name: str, value: str | None) -> Markup | None:
    return None if value is None else el("p", el("b", f"{name}: "), text(value))


def _statements_of(group: Mapping[str, Any]) -> Markup:  # Any: JSON
    """Return the statements that some metrics counted, with their verdicts."""
    rows = [el("li", text(each["t"]), [_remark(said) for said in each["said"]], _people(each)) for each in group["st"]]
    return joined((el("p", el("b", f"Statements of {group['m']}")), el("ul", rows)))


def _context_of(
    passages: Sequence[tuple[str, Sequence[str]]], context: Mapping[str, Any], note: Markup | None
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
        _people(context),
    )


def _people(part: Mapping[str, Any]) -> list[Markup]:  # Any: JSON
    """Return the annotators' verdicts on a context, a statement or a sample."""
    return [text(words, tag="p", cls="small person") for words, _ in part["people"]]


def _remark(verdict: Sequence[str]) -> Markup:
    """Return a verdict as text: its kind, the verdict and the reason."""
    kind, words, reason, *_ = verdict
    return el("p", f"{kind}: {words}", f". {reason}" if reason else None, cls="small soft")


def _pair(found: RunComparison, shown: ComparedSamples, entries: Sequence[Entry]) -> Markup:
    first = entries[0]
    by = shown.metrics.index(found.moved_by) if found.moved_by in shown.metrics else 0
    values = " and ".join(_value_text(each.row.values[by]) for each in entries)
    panes = [
        el("div", el("h3", text(name)), _body(each, shown.metrics, shown.passages, _ranks(each, entries)), cls="pane")
        for name, each in zip(found.names, entries, strict=True)
    ]
    return el(
        "details",
        el("summary", text(first.question or first.row.id), el("span", values, cls="soft")),
        el(
            "div",
            text(first.row.id, tag="p", cls="soft small"),
            _named("Reference", first.detail["ref"]),
            el("div", panes, cls="two"),
        ),
        cls="move",
        id=f"sample={visible(first.row.id)}",
    )


def _ranks(entry: Entry, entries: Sequence[Entry]) -> list[Markup] | None:
    """Return the place of each context in the other run; None with more than two runs."""
    if len(entries) != 2:
        return None
    other = [each["p"] for each in entries[entries[0] is entry].detail["cx"]]
    return [_rank(at, each["p"], other) for at, each in enumerate(entry.detail["cx"])]


def _rank(at: int, passage: int, other: Sequence[int]) -> Markup:
    if passage not in other:
        return el("span", "only here", cls="chip warn")
    place = other.index(passage)
    return el("span", "same rank" if place == at else f"there: {place + 1}", cls="chip")
