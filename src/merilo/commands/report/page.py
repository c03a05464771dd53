"""The frame of a report page, its embedded data, its drawings, and the parts that report and comparison share."""

from __future__ import annotations

import re
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TypeVar

from merilo.commands.calibrate.slices import slices_by
from merilo.rendering.aggregate import mean_cell, shown_faults, slice_notes
from merilo.rendering.markup import (
    MARK_SCRIPTS,
    Markup,
    asset,
    el,
    escaped,
    joined,
    json_text,
    packed,
    policy,
    raw_element,
)
from merilo.results.faults import FAULTS, PLACES, judged_metrics
from merilo.results.records import grouped, picked
from merilo.results.slices import values_by_field
from merilo.version import version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from merilo.commands.report.details import Card, Caution, Entry, Value
    from merilo.rendering.wording import Section
    from merilo.results.faults import Fault
    from merilo.results.slices import Slice, Slices
    from merilo.runs.run import Run
    from merilo.runs.run_metrics import Scale


_Item = TypeVar("_Item")
_BLOCK: Final = 50
_LARGE: Final = 2_000
_LARGE_BLOCK: Final = 200


def page(
    title: str,
    body: Iterable[Markup],
    scripts: Sequence[str] = (),
    data: Iterable[Markup] = (),
    after: str = "",
    *,
    sheet: str = "",
    served: bool = False,
) -> str:
    """Return a whole page: its body, then `data` and the scripts with these names as one, then `after`.

    The content security policy allows merilo's own style and scripts by digest, and no request. `sheet`: a style sheet
    in addition to that of the report. `served`: a page of our own server, which may ask that server for more.
    """
    style = asset("report.css") + (asset(sheet) if sheet else "")
    scripts = [MARK_SCRIPTS, "\n".join(map(asset, scripts))] if scripts else []
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=policy(style, scripts, served=served)),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", title),
        raw_element("style", style),
        raw_element("script", scripts[0]) if scripts else None,
    )
    parts = [*body, *data, *([raw_element("script", scripts[1])] if scripts else []), Markup(after), _footer()]
    return f"<!doctype html>\n{el('html', head, el('body', _spaced(parts)), lang='en')}\n"


def text(value: str | None, *, tag: str = "span", cls: str = "") -> Markup:
    """Return a text of data or models, isolated and in its own direction."""
    return el(tag, value or "", cls=f"t {cls}".strip(), dir="auto")


def breakable(name: str) -> Markup:
    """Return the name of a metric, which may continue on the next line after `_` and `(`."""
    return Markup(re.sub(r"([_(])", r"\1<wbr>", escaped(name)))


def cautions(found: Sequence[Caution]) -> Markup:
    """Return the notes that come before the numbers."""
    return joined(el("div", el("p", el("b", each.heading), " ", each.text), cls="note", role="note") for each in found)


def table(head: Iterable[str | Markup], rows: Iterable[Markup], *, cls: str) -> Markup:
    """Return a table; a text of `head` becomes the heading of a column."""
    cells = [each if isinstance(each, Markup) else el("th", each, scope="col") for each in head]
    return el("table", el("thead", el("tr", cells)), el("tbody", rows), cls=cls)


def heading(title: str, note: str = "", *, anchor: str | None = None) -> Markup:
    """Return the heading of a section with a note next to it."""
    return el("div", el("h2", title, id=anchor), el("span", note) if note else None, cls="sec")


def drawer(cls: str = "") -> Markup:
    """Return the panel in which scripts show one sample; `broad`: for several runs."""
    return el("div", cls=f"drawer {cls}".strip(), id="drawer", role="dialog", aria_label="Sample", tabindex=-1)


def chip(tone: str, glyph: str, name: str) -> Markup:
    """Return a label in the colour of its meaning, which the character repeats."""
    return el("span", el("span", glyph, aria_hidden="true"), f" {name}", cls=f"chip {tone}")


def notes(groups: Sequence[Section]) -> Markup | None:
    """Return groups of notes, folded; None without any."""
    if not groups:
        return None
    rows = [
        el("section", el("h3", title), el("dl", [_note(name, words) for name, words in entries]))
        for title, entries in groups
    ]
    return el("details", el("summary", "Notes on the numbers"), rows, cls="fold notes")


def _note(name: str, words: str) -> Markup:
    return el("div", el("dt", text(name)), el("dd", text(words)))


def _footer() -> Markup:
    return el("footer", f"merilo {version()}", cls="wrap foot")


def _spaced(parts: Iterable[Markup]) -> Markup:
    return Markup("\n" + "\n".join(part for part in parts if part) + "\n")


# -- data of a page ------------------------------------------------------------------------------------


def page_data(
    columns: Mapping[str, Any],  # Any: JSON
    details: Mapping[str, Sequence[Entry]],
    passages: Sequence[tuple[str, Sequence[str]]],
) -> list[Markup]:
    """Return the columns as JSON, and details (by name) and passages in blocks that the page opens when needed."""
    size = _BLOCK if max(map(len, details.values())) < _LARGE else _LARGE_BLOCK
    blocks: dict[str, Any] = {"size": size}  # Any: JSON
    for name, entries in details.items():
        blocks[name] = [packed([each.detail for each in block]) for block in _blocks(entries, size)]
    blocks["passages"] = [packed([[name, *texts] for name, texts in block]) for block in _blocks(passages, size)]
    return [
        raw_element("script", json_text(columns), type="application/json", id="rows"),
        raw_element("script", json_text(blocks), type="application/json", id="blocks"),
    ]


def metric_field(metric: str, scale: Scale, *, weak: bool, averaged: bool) -> dict[str, Any]:  # Any: JSON
    """Return what the table knows of a metric; an infinite end of its range is None.

    `averaged`: its scores average probabilities of the judge, so they are not verdicts and have no colour.
    """
    span = [None if abs(end) == float("inf") else end for end in scale.span]
    return {
        "id": metric,
        "weak": weak,
        "span": span,
        "up": scale.higher_is_better,
        "verdict": not averaged and bool(judged_metrics([metric])),
    }


def fault_fields(*, components: bool = False) -> list[dict[str, Any]]:  # Any: JSON
    """Return what the table knows of each fault; `components`: also the component to look at first."""
    return [
        {**picked(each, "tone glyph name"), "cause": cause(each, components=components), "likely": each.likely}
        for each in FAULTS
    ]


def cause(fault: Fault, *, components: bool = False) -> str:
    """Return the cause of a fault; `components`: with the component to look at first."""
    return f"{fault.cause} Look first at the {fault.look}." if components and fault.look else fault.cause


def rounded(value: Value) -> Value:
    """Return a score with four decimals; None and False unchanged."""
    return value if value is None or value is False else round(value, 4)


def _blocks(items: Sequence[_Item], size: int) -> Iterator[Sequence[_Item]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


# -- slices -------------------------------------------------------------------------------------------

_FIELDS: Final = 6
"""The number of fields that a report shows."""
_FAULTS, _COLUMNS = 3, 4
"""The number of faults with a column, and of columns for faults and means together."""


def report_slices(run: Run, by: str | None = None, *, judge_only: bool = False) -> tuple[Slices, ...]:
    """Return the slices of a run by each field that has 2 to 30 values. `by`: the field to show first.

    The others follow in the order of their spread: the largest difference between means with an interval. Raises
    UsageError if `by` cannot be used.
    """
    first = () if by is None else (by,)
    fields = list(dict.fromkeys((*first, *values_by_field(run))))[:_FIELDS]
    found = slices_by(run, fields, judge_only=judge_only) if fields else ()
    return tuple(sorted(found, key=lambda each: (each.field != by, -_spread(each))))


def _spread(found: Slices) -> float:
    """Return the largest difference between two slices' means of one metric; 0 without two that have intervals."""
    known = grouped(
        (metric, mean.value or 0.0)
        for each in found.values()
        for metric, mean in each.means.items()
        if mean.interval.ends
    )
    return max((max(values) - min(values) for values in known.values()), default=0.0)


def slice_section(slices: Sequence[Slices], *, corrected: bool) -> Markup | None:
    """Return the tables of slices, of which the first one is in sight; None if the run has no slices.

    `corrected`: human labels correct other numbers of the page.
    """
    if not slices:
        return None
    note = "each value filters the samples"
    shown = [
        el("div", _table(each, at, corrected=corrected), data_by=at, hidden=at > 0) for at, each in enumerate(slices)
    ]
    return el("section", heading(f"By {slices[0].field}", note, anchor="by"), shown, cls="by", aria_labelledby="by")


def slice_columns(slices: Sequence[Slices], entries: Sequence[Entry]) -> list[Mapping[str, Any]]:  # Any: JSON
    """Return what the page knows of each field: its name, its values, and which of them each sample has."""
    found: list[Mapping[str, Any]] = []  # Any: JSON
    for each in slices:
        places = {sample: at for at, own in enumerate(each.values()) for sample in own.samples}
        found.append({"field": each.field, "values": [*each], "of": [places[entry.row.id] for entry in entries]})
    return found


def _table(found: Slices, at: int, *, corrected: bool) -> Markup:
    faults = shown_faults(found, _FAULTS)
    metrics = _metrics(found)[: _COLUMNS - len(faults)]
    head = [found.field, "n", *(FAULTS[PLACES[key]].name for key in faults)]
    rows = [_row(each, f"{at}/{place}", faults, metrics) for place, each in enumerate(found.values())]
    names = [el("th", breakable(each), scope="col") for each in metrics]
    whole = table([*head, *names], rows, cls="slices")
    notes = [*slice_notes(found), *(["Other numbers of this table are by the judge alone."] if corrected else [])]
    label = f"Slices by {found.field}"
    return el(
        "div",
        el("div", whole, cls="scroll", tabindex=0, role="group", aria_label=label),
        el("p", " ".join(notes), cls="small soft"),
    )


def _metrics(found: Slices) -> list[str]:
    """Return the metrics: first those in which a slice differs from the rest, then those of the fault table."""
    means = next(iter(found.values())).means
    starred = {metric for each in found.values() for metric in each.differs}
    return sorted(means, key=lambda metric: (metric not in starred, not judged_metrics([metric])))


def _row(each: Slice, key: str, faults: Sequence[str], metrics: Sequence[str]) -> Markup:
    named = el("a", text(each.value), href="#samples", data_slice=key)
    amounts = [each.faults[fault] for fault in faults]
    return el(
        "tr",
        el("th", named, scope="row"),
        el("td", f"{len(each):,}", cls="num"),
        [el("td", f"{amount:,}", cls=f"num{' soft' * (not amount)}") for amount in amounts],
        [el("td", mean_cell(each, metric), cls="num") for metric in metrics],
    )


# -- drawings (SVG): positions are attributes, not styles -----------------------------------------------

_WIDTH, _HEIGHT, _TALL = 72, 36, 24
_FOREST: Final = 400


def histogram(card: Card) -> Markup | None:
    """Return the distribution of a metric's scores with its mean and interval below; None for an infinite range."""
    low, high = card.scale.span
    if not card.bins or not isfinite(high - low):
        return None
    top, wide = max(card.bins), _WIDTH / len(card.bins)
    bars = [
        el(
            "rect",
            cls=f"bar {_end(card, place)}".strip(),
            x=_number(place * wide + 0.5),
            width=_number(wide - 1),
            y=_number(_TALL - _TALL * amount / top),
            height=_number(_TALL * amount / top),
        )
        for place, amount in enumerate(card.bins)
        if amount
    ]
    below = [el("line", cls="ax", x1=0, x2=_WIDTH, y1=_TALL, y2=_TALL)]
    interval, mean = card.aggregate.interval, card.aggregate.mean

    def at(value: float) -> str:
        return _number((min(max(value, low), high) - low) / (high - low) * _WIDTH)

    if interval is not None:
        below.append(el("line", cls="ci", x1=at(interval[0]), x2=at(interval[1]), y1=31, y2=31))
    if mean is not None:
        below.append(el("circle", cls="pt", cx=at(mean), cy=31, r=2.5))
    parts = ", ".join(f"{amount:,}" for amount in card.bins)
    label = f"Samples in ten equal parts of the range: {parts}"
    return el(
        "svg",
        bars,
        below,
        width=_WIDTH,
        height=_HEIGHT,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        aria_label=label,
    )


def forest_row(
    value: float | None, interval: tuple[float, float] | None, reach: float, tone: str, label: str
) -> Markup | None:
    """Return a difference and its interval on a line from -reach to reach, with a dotted line at 0."""
    if value is None:
        return None

    def at(number: float) -> str:
        return _number((min(max(number, -reach), reach) / reach + 1) / 2 * (_FOREST - 12) + 6)

    drawn = [el("line", cls="zero", x1=_FOREST // 2, x2=_FOREST // 2, y1=0, y2=28)]
    if interval is not None:
        drawn.append(el("line", cls=f"reach {tone}".strip(), x1=at(interval[0]), x2=at(interval[1]), y1=14, y2=14))
    drawn.append(el("line", cls="mid", x1=at(value), x2=at(value), y1=7, y2=21))
    return el("svg", drawn, viewBox=f"0 0 {_FOREST} 28", preserveAspectRatio="none", role="img", aria_label=label)


def scale_row(reach: float, before: int) -> Markup:
    """Return the last row of a table of `forest_row`s: the ends of their line. `before`: columns before the plot."""
    ends = [el("span", each) for each in (f"{-reach:+.3f}", "0", f"{reach:+.3f}")]
    drawn = el("td", el("div", ends, cls="ends"), cls="plot")
    return el("tr", el("td", colspan=before), drawn, cls="axis", aria_hidden="true")


def reach_of(intervals: Sequence[tuple[float, float] | None], values: Sequence[float | None]) -> float:
    """Return the largest distance from 0 among these numbers; at least a small one."""
    found = [abs(end) for pair in intervals for end in pair or ()] + [abs(each) for each in values if each is not None]
    return max([*found, 1e-6])


def _end(card: Card, place: int) -> str:
    """Return the class of a bar: the worse half of a verdict is bad; other scores are neither good nor bad.

    An average of probabilities is not a verdict: the judge's thresholds are not at its middle.
    """
    if card.aggregate.averaged or not judged_metrics([card.metric]):
        return "other"
    low_half = place < len(card.bins) / 2
    return "lo" if low_half == card.scale.higher_is_better else ""


def _number(value: float) -> str:
    return f"{value:.1f}"
