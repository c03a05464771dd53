"""The report on one run, or on a comparison of runs, as one HTML file.

It is readable without scripts. With them, samples are sorted, filtered and opened.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from merilo.commands.compare.run import ComparisonRequest, compare_runs
from merilo.commands.compare.text import comparison_doc, weak_of
from merilo.commands.report.details import Caution
from merilo.commands.report.page import (
    breakable,
    cautions,
    chip,
    drawer,
    fault_fields,
    forest_row,
    heading,
    histogram,
    metric_field,
    notes,
    page,
    page_data,
    reach_of,
    rounded,
    scale_row,
    slice_columns,
    slice_section,
    table,
    text,
)
from merilo.commands.report.plain import plain_copy, plain_pairs
from merilo.commands.report.run import compared_samples, report_run
from merilo.errors import UsageError
from merilo.metrics.answering import Answering, Category
from merilo.rendering.doc import MARKS
from merilo.rendering.markup import Markup, el, joined, write_page
from merilo.rendering.overview import embedded_counts, fault_sentence, fault_share
from merilo.rendering.page import Tone
from merilo.rendering.sanitize import visible
from merilo.rendering.weak import WEAK
from merilo.rendering.wording import count, number, span
from merilo.results.estimate import between, signed
from merilo.results.faults import CANNOT_TELL, FAITHFULNESS, FAULTS, PLACES, SUFFICIENCY, Answer, Held, has_faults

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from merilo.commands.compare.result import RunComparison
    from merilo.commands.report.details import Card, RunReport
    from merilo.commands.report.run import ComparedSamples
    from merilo.rendering.doc import Entry, Part
    from merilo.results.faults import Fault
    from merilo.runs.run import Run

_BESIDE: Final = 6
"""The number of metrics that fit next to the fault table."""
_NOT_SUPPORTED: Final = "not_supported"
_HELD: Final = {Held.ENOUGH: "contexts hold the answer", Held.SHORT: "they do not", Held.UNKNOWN: "responses"}
_ANSWER: Final = {Answer.SUPPORTED: "all supported", Answer.STRAYED: "not all supported", Answer.DECLINED: "declined"}


def write_report(
    runs: Sequence[Run | str | PathLike[str]], out: Path, *, by: str | None = None, judge_only: bool = False
) -> None:
    """Write the page of `report_text` to an HTML file.

    Raises its errors, UsageError for a file of another kind, and RunError if the file cannot be written.
    """
    _check_name(out)
    write_page(out, report_text(runs, by=by, judge_only=judge_only))


def write_comparison(found: RunComparison, out: str | PathLike[str]) -> Path:
    """Write the page of a comparison to an HTML file and return its path; see `write_report`."""
    path = Path(out)
    _check_name(path)
    write_page(path, comparison_page(found))
    return path


def _check_name(out: Path) -> None:
    if out.suffix not in {"", ".html", ".htm"}:
        raise UsageError(f"A report is one HTML file: name it {out.with_suffix('.html')}.")


def report_text(runs: Sequence[Run | str | PathLike[str]], *, by: str | None = None, judge_only: bool = False) -> str:
    """Return the report on a run, or the comparison of each other run with the first, as one HTML page.

    `by`: the field whose slices a report on one run shows first. Raises the errors of `report_run` and `compare_runs`.
    """
    if len(runs) == 1:
        return run_page(report_run(runs[0], by=by, judge_only=judge_only))
    if by is not None:
        raise UsageError("The report on several runs has no slices. Name one run, or leave --by out.")
    return comparison_page(compare_runs(runs, ComparisonRequest(judge_only=judge_only, samples=0)))


def run_page(found: RunReport) -> str:
    """Return the report as one HTML file; equal reports give equal bytes."""
    head = el(
        "header",
        el("h1", text(found.name)),
        el("p", [el("span", fact) for fact in found.facts], cls="facts"),
        el("p", _lead(found), cls="lead"),
        cautions(found.cautions),
        cls="wrap head",
    )
    cards = el("div", [_card(each) for each in sorted(found.cards, key=lambda card: card.weak)], cls="metrics")
    sections = [
        _section("faults", "Where it goes wrong", "each count filters the samples", _fault_table(found)),
        slice_section(found.slices, corrected=found.faults.checked),
        _section("metrics", "Metrics", "mean, interval, distribution of the scores", cards),
    ]
    cols = "wrap cols stacked" if len(found.cards) > _BESIDE and None in sections else "wrap cols"
    app = el("section", el("div", cls="wrap", id="samples"), cls="app", id="app", aria_label="Samples")
    return page(
        f"{found.name}: report",
        [head, el("main", el("div", sections, cls=cols), el("div", notes(found.notes), cls="wrap"), app), drawer()],
        scripts=("table.js", "sample.js", "report.js"),
        data=page_data(_columns(found), {"details": found.entries}, found.passages),
        after=plain_copy(found),
    )


def _lead(found: RunReport) -> list[object]:
    counts = [f"{', '.join(parts)}." for parts in embedded_counts(found.run, found.faults)]
    said = (
        " ".join(counts)
        or fault_sentence(found.faults)
        or f"{count(found.samples, 'sample')}, the lowest scores first."
    )
    if not found.entries:
        return [said]
    worst = found.entries[0]
    name = text(worst.question or worst.row.id)
    return [
        said,
        " The worst: ",
        el("a", name, href=f"#sample={quote(visible(worst.row.id), safe='')}", data_sample=True),
    ]


def _section(anchor: str, title: str, note: str, content: Markup | None) -> Markup | None:
    """Return a section of the head; None without content."""
    return (
        None if content is None else el("section", heading(title, note, anchor=anchor), content, aria_labelledby=anchor)
    )


def _fault_table(found: RunReport) -> Markup | None:
    """Return the table: what the contexts hold, against what the response does; None if neither was judged.

    A run with one half has its rows or its columns only.
    """
    names = {metric.partition("(")[0] for metric in found.run.manifest.metrics}
    contexts, responses = (bool({Answering.name, each} & names) for each in (SUFFICIENCY, FAITHFULNESS))
    if not contexts and not responses:
        return None
    answers = [*_ANSWER] if responses else [Answer.UNKNOWN]
    head = el("thead", el("tr", el("td"), [el("th", name, scope="col") for name in _ANSWER.values()]))
    rows = [
        el("tr", el("th", _HELD[held], scope="row"), [el("td", _cell(found, held, each)) for each in answers])
        for held in ((Held.ENOUGH, Held.SHORT) if contexts else (Held.UNKNOWN,))
        if found.faults.checked or any(found.faults[each.key] for each in FAULTS if each.held == held)
    ]
    apart = [FAULTS[PLACES[key]] for key in (CANNOT_TELL, _NOT_SUPPORTED) if found.faults[key]] if contexts else []
    apart = apart or [FAULTS[PLACES[CANNOT_TELL]]] * bool(found.faults[CANNOT_TELL])
    table = el("table", head if responses else None, el("tbody", rows), cls=f"faults{' narrow' * (not responses)}")
    return joined([*(_count(found, each) for each in apart), table])


def _cell(found: RunReport, held: Held, answer: Answer) -> list[Markup]:
    """Return the faults of a cell; without responses, contexts that do not hold the answer are all that is known."""
    if (held, answer) == (Held.SHORT, Answer.UNKNOWN):
        return [_count(found, FAULTS[PLACES[Category.EVIDENCE_MISSING]])]
    here = [each for each in reversed(FAULTS) if (each.held, each.answer) == (held, answer)]
    joint = any(metric.partition("(")[0] == Answering.name for metric in found.run.manifest.metrics)
    compared = joint and any(each.detail["ref"] is not None for each in found.entries)
    return [_count(found, each) for each in here if each.key != Category.WRONG or compared or found.faults[each.key]]


def _count(found: RunReport, fault: Fault) -> Markup:
    """Return the samples with a fault, as a link that filters them; with human labels, their share."""
    shared = fault.key in found.faults.corrected
    counted = fault_share(found.faults, fault.key) if shared else f"{found.faults[fault.key]:,}"
    amount, _, interval = counted.partition(" (")
    small = ", ".join(filter(None, (interval.rstrip(")"), fault.look if found.components else "")))
    name = el("span", f"{fault.glyph} {fault.name}", el("i", small) if small else None)
    zero = " zero" * (amount in {"0", "0 %"})
    return el("a", el("b", amount), name, cls=f"cell {fault.tone}{zero}", href="#samples", data_fault=PLACES[fault.key])


def _card(card: Card) -> Markup:
    found = card.aggregate
    counted = [f"of {', '.join(found.parts)}" if found.parts else f"{found.scored:,} scored"]
    counted += [f"{found.undefined:,} undefined"] if found.undefined else []
    failed = el("span", f" \u00b7 {found.failed:,} failed", cls="f") if found.failed else None
    interval = span(found.interval) if found.interval is not None else (found.note or "no interval")
    notes = [el("span", WEAK, cls="weaktag")] if card.weak else []
    notes += [] if card.scale.higher_is_better else [el("span", "lower is better", cls="weaktag")]
    return el(
        "a",
        el("span", breakable(card.name), cls="n"),
        el("span", number(found.mean), cls="v"),
        el("span", interval, cls="ci" if found.interval is not None else "ci why"),
        histogram(card),
        el("span", " \u00b7 ".join(counted), failed, " " if notes else None, notes, cls="c"),
        el("span", _parts(card), cls="c"),
        cls=f"metric{' weak' * card.weak}",
        href="#samples",
        data_metric=card.metric,
    )


def _parts(card: Card) -> str:
    """Return what the mean is a share of, such as `40 of 44 contexts relevant`.

    Empty for a corrected metric, as the judge counted.
    """
    counts, (part, _, whole) = card.aggregate.counts, next(iter(card.aggregate.shares), "").partition("/")
    some, every = counts.get(part), counts.get(whole)
    if some is None or every is None or card.name != card.metric:
        return ""
    shares = f"{some:,} of {every:,} {whole.removesuffix('s') if every == 1 else whole} {part}"
    return shares.replace("_", " ")


def _columns(found: RunReport) -> dict[str, Any]:  # Any: JSON
    entries, metrics = found.entries, list(found.run.manifest.metrics)
    cards = {card.metric: card for card in found.cards}
    return {
        "total": found.samples,
        "metrics": [
            metric_field(each.metric, each.scale, weak=each.weak, averaged=each.aggregate.averaged)
            for each in (cards[metric] for metric in metrics)
        ],
        "faults": fault_fields(components=found.components),
        "judged": has_faults(metrics),
        "by": slice_columns(found.slices, entries),
        "id": [each.row.id for each in entries],
        "q": [each.question for each in entries],
        "r": [each.response for each in entries],
        "f": [each.row.fault for each in entries],
        "k": [each.contexts for each in entries],
        "differs": [None if each.differs is None else round(each.differs, 4) for each in entries],
        "v": [[rounded(each.row.values[at]) for each in entries] for at in range(len(metrics))],
    }


# -- a comparison of runs ------------------------------------------------------------------------------

_HEAD: Final = ("Metric", "Means", "Difference", "Plot", "Verdict")


def comparison_page(found: RunComparison, samples: ComparedSamples | None = None) -> str:
    """Return the comparison as one HTML file; equal comparisons give equal bytes.

    `samples`: the common samples; None: they are read from the runs. Raises RunError if a run cannot be read.
    """
    shown = compared_samples(found) if samples is None else samples
    doc, title = comparison_doc(found), " against ".join(found.names)
    (size, *_, level), leads = doc.parts[0].head, [each for part in doc.parts for each in part.sentences]
    head = el(
        "header",
        el("h1", text(title)),
        el("p", el("span", size), el("span", level.replace("interval", "intervals")), cls="facts"),
        [el("p", each, cls="lead") for each in (*leads, doc.advice) if each],
        cautions([Caution("Note.", each) for each in doc.warnings]),
        cls="wrap head",
    )
    legend = el("p", doc.legend, cls="soft small")
    numbers = el("div", [_pair(part) for part in doc.parts], legend, notes(doc.notes), cls="wrap")
    title_of_samples = heading("Samples", "those that changed most first; open one to see the runs side by side")
    app = el(
        "section", el("div", title_of_samples, cls="wrap", id="samples"), cls="app", id="app", aria_label="Samples"
    )
    return page(
        f"{title}: comparison",
        [head, el("main", numbers, app), drawer("broad")],
        scripts=("table.js", "sample.js", "compare.js"),
        data=page_data(
            _compared_columns(found, shown),
            {f"details{place}": own for place, own in enumerate(shown.entries)},
            shown.passages,
        ),
        after=plain_pairs(found, shown),
    )


def _compared_columns(found: RunComparison, shown: ComparedSamples) -> dict[str, Any]:  # Any: JSON
    first, *_ = shown.entries
    averaged = {each.metric for side in found.sides for each in side.run.metrics.values() if each.averaged}
    unchecked, weak = {row.metric for row in found.rows if row.unchecked}, weak_of(found)
    return {
        "total": found.common,
        "names": list(found.names),
        "by": found.moved_by,
        "metrics": [
            metric_field(metric, scale, weak=metric in weak, averaged=metric in averaged)
            | {"unchecked": metric in unchecked}
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


def _pair(part: Part) -> Markup:
    reach = reach_of([each.estimate.interval for each in part.entries], [each.estimate.value for each in part.entries])
    shown = [
        el("tr", el("th", each, colspan=len(_HEAD), scope="rowgroup"), cls="grouphead")
        if isinstance(each, str)
        else _row(each, reach)
        for each in part.rows
    ]
    shown.append(scale_row(reach, before=_HEAD.index("Plot")))
    note = f"right of the line: {part.head[2]} is higher"
    counts = el("p", part.below, cls="small") if part.below else None
    return el("section", heading("Differences", note), table(_HEAD, shown, cls="forest"), counts, cls="gap")


def _row(entry: Entry, reach: float) -> Markup:
    value, ends = entry.estimate.value, between(entry.estimate.interval)
    tone, glyph = MARKS.get(entry.verdict, (Tone.PLAIN, "="))
    colour = "" if tone is Tone.PLAIN else tone.value
    drawn = forest_row(value, entry.estimate.interval, reach, colour, f"Difference {signed(value)}, interval {ends}")
    said = chip(colour or "none", glyph, entry.said) if entry.said else None
    why = el("p", entry.why, cls="small soft") if entry.why else None
    return el(
        "tr",
        el("th", el("a", entry.name, href="#samples", data_metric=entry.metric), scope="row"),
        el("td", " to ".join(entry.parts), el("p", entry.fewer, cls="small soft") if entry.fewer else None, cls="nw"),
        el("td", el("b", signed(value)), el("span", f" {ends}", cls="small soft nw")),
        el("td", drawn, cls="plot"),
        el("td", said, why, cls="read"),
    )
