"""The report on one run, or on a comparison of runs, as one HTML file: the values that its template shows.

It is readable without scripts. With them, samples are sorted, filtered and opened.
"""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from merilo.commands.compare.options import ComparisonRequest
from merilo.commands.compare.run import compare_runs
from merilo.commands.compare.text import comparison_doc, weak_of
from merilo.commands.diagnose.page import diagnosis_html, diagnosis_in
from merilo.commands.report.details import Card, Caution, Entry, RunReport, Value
from merilo.commands.report.run import ComparedSamples, compared_samples, report_run
from merilo.data.sanitize import visible
from merilo.engine.event_loop import rare_collections
from merilo.errors import UsageError
from merilo.metrics.answering import Answering, Category
from merilo.numbers import count, number
from merilo.rendering.doc import forest
from merilo.rendering.markup import packed, page, write_page
from merilo.rendering.run_doc import embedded_counts, fault_sentence, fault_share
from merilo.rendering.slices import Slices, mean_cell, shown_faults, slice_notes
from merilo.results.faults import (
    CANNOT_TELL,
    FAITHFULNESS,
    FAULTS,
    PLACES,
    SUFFICIENCY,
    Answer,
    Held,
    has_faults,
    judged_metrics,
)
from merilo.results.means import WEAK
from merilo.results.records import picked

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from merilo.commands.compare.result import RunComparison
    from merilo.results.faults import Fault
    from merilo.runs.run import Run
    from merilo.runs.run_metrics import Scale

_BESIDE: Final = 6
"""The number of metrics that fit next to the fault table."""
_IN_FULL: Final = 100
"""Number of samples whose texts and verdicts are in the plain copy."""
_NOT_SUPPORTED: Final = "not_supported"
_HELD: Final = {Held.ENOUGH: "contexts hold the answer", Held.SHORT: "they do not", Held.UNKNOWN: "responses"}
_ANSWER: Final = {Answer.SUPPORTED: "all supported", Answer.STRAYED: "not all supported", Answer.DECLINED: "declined"}
_Values = dict[str, Any]  # Any: JSON, or the values of a template
_Passages = tuple[tuple[str, "Sequence[str]"], ...]


def write_report(runs: Sequence[Run | str | PathLike[str]], out: Path, *, by: str | None = None) -> None:
    """Write the page of `report_text` to an HTML file.

    Raises its errors, UsageError for a file of another kind, and RunError if the file cannot be written.
    """
    _check_name(out)
    write_page(out, report_text(runs, by=by))


def write_comparison(found: RunComparison, out: str | PathLike[str]) -> Path:
    """Write the page of a comparison to an HTML file and return its path; see `write_report`."""
    path = Path(out)
    _check_name(path)
    write_page(path, comparison_page(found))
    return path


def _check_name(out: Path) -> None:
    if out.suffix not in {"", ".html", ".htm"}:
        raise UsageError(f"A report is one HTML file: name it {out.with_suffix('.html')}.")


@rare_collections()
def report_text(runs: Sequence[Run | str | PathLike[str]], *, by: str | None = None) -> str:
    """Return the report on a run, or the comparison of each other run with the first, as one HTML page.

    With a diagnosis after a run, the report on the run has the causes of its samples. `by`: the field whose slices a
    report on one run shows first. Raises the errors of `report_run` and `compare_runs`.
    """
    last = diagnosis_in(runs[-1])
    if last is not None and len(runs) < 3:
        causes = last.named
        return diagnosis_html(last) if len(runs) == 1 else run_page(report_run(runs[0], by=by, causes=causes))
    if len(runs) == 1:
        return run_page(report_run(runs[0], by=by))
    if by is not None:
        raise UsageError("The report on several runs has no slices. Name one run, or leave --by out.")
    return comparison_page(compare_runs(runs, ComparisonRequest(samples=0)))


def run_page(found: RunReport) -> str:
    """Return the report as one HTML file; equal reports give equal bytes."""
    table, full = _fault_table(found), found.entries[:_IN_FULL]
    listed = f"{count(len(found.entries), 'sample')}, the worst first"
    if len(found.entries) < found.samples:
        listed = f"the worst {len(found.entries):,} of {count(found.samples, 'sample')}"
    worst = found.entries[0] if found.entries else None
    return page(
        "run.html",
        {"rows": _columns(found), "blocks": _blocks({"details": found.entries}, found.passages)},
        scripts=("table.js", "sample.js", "report.js"),
        found=found,
        lead=_lead(found),
        worst=worst,
        anchor=quote(visible(worst.row.id), safe="") if worst else "",
        stacked=len(found.cards) > _BESIDE and not (table and found.slices),
        table=table,
        slices=[_slice_table(each, at, corrected=found.faults.checked) for at, each in enumerate(found.slices)],
        cards=[_card(each) for each in sorted(found.cards, key=lambda card: card.weak)],
        listed=listed,
        full=full,
        **_samples(tuple(found.run.manifest.metrics), found.passages, components=found.components),
    )


def _samples(metrics: Sequence[str], passages: _Passages, *, components: bool = False) -> _Values:
    """Return what the plain copy needs to draw any sample."""
    return {
        "metrics": metrics,
        "judged": has_faults(metrics),
        "faults": [(each, _cause(each, components=components)) for each in FAULTS],
        "passages": passages,
        "score": _score_text,
    }


def _score_text(value: Value) -> str:
    return "undefined" if value is None else "failed" if value is False else number(value)


def _lead(found: RunReport) -> str:
    counts = [", ".join(parts) for parts in embedded_counts(found.run, found.faults)]
    said = " ".join(f"{each[:1].upper()}{each[1:]}." for each in counts)
    return said or fault_sentence(found.faults) or f"{count(found.samples, 'sample')}, the lowest scores first."


def _fault_table(found: RunReport) -> _Values | None:
    """Return the table: what the contexts hold, against what the response does; None if neither was judged.

    A run with one half has its rows or its columns only.
    """
    names = {metric.partition("(")[0] for metric in found.run.manifest.metrics}
    contexts, responses = (bool({Answering.name, each} & names) for each in (SUFFICIENCY, FAITHFULNESS))
    if not contexts and not responses:
        return None
    compared = Answering.name in names and any(each.detail["ref"] is not None for each in found.entries)

    def cell(held: Held, answer: Answer) -> list[_Values]:
        if (held, answer) == (Held.SHORT, Answer.UNKNOWN):  # all that is known without responses
            return [_counted(found, FAULTS[PLACES[Category.EVIDENCE_MISSING]])]
        here = [each for each in reversed(FAULTS) if (each.held, each.answer) == (held, answer)]
        known = [each for each in here if each.key != Category.WRONG or compared or found.faults[each.key]]
        return [_counted(found, each) for each in known]

    rows = [
        (_HELD[held], [cell(held, each) for each in (_ANSWER if responses else [Answer.UNKNOWN])])
        for held in ((Held.ENOUGH, Held.SHORT) if contexts else (Held.UNKNOWN,))
        if found.faults.checked or any(found.faults[each.key] for each in FAULTS if each.held == held)
    ]
    apart = [key for key in ((CANNOT_TELL, _NOT_SUPPORTED) if contexts else (CANNOT_TELL,)) if found.faults[key]]
    return {
        "head": [*_ANSWER.values()] if responses else [],
        "rows": rows,
        "apart": [_counted(found, FAULTS[PLACES[key]]) for key in apart],
    }


def _counted(found: RunReport, fault: Fault) -> _Values:
    """Return the number of samples with a fault; with human labels, their share."""
    shared = fault.key in found.faults.corrected
    counted = fault_share(found.faults, fault.key) if shared else f"{found.faults[fault.key]:,}"
    amount, _, interval = counted.partition(" (")
    small = filter(None, (interval.rstrip(")"), fault.look if found.components else ""))
    return {
        "fault": fault,
        "place": PLACES[fault.key],
        "amount": amount,
        "small": ", ".join(small),
        "zero": amount in {"0", "0 %"},
    }


def _card(card: Card) -> _Values:
    """Return a metric with what its mean is a share of, such as `40 of 44 contexts relevant`.

    A corrected metric has no such share, as the judge counted.
    """
    found = card.aggregate
    counts, (part, _, whole) = found.counts, next(iter(found.shares), "").partition("/")
    some, every, shares = counts.get(part), counts.get(whole), ""
    if some is not None and every is not None and card.name == card.metric:
        shares = f"{some:,} of {every:,} {whole.removesuffix('s') if every == 1 else whole} {part}".replace("_", " ")
    tags = [*([WEAK] if card.weak else []), *([] if card.scale.higher_is_better else ["lower is better"])]
    return {"card": card, "shares": shares, "tags": tags, "drawn": _histogram(card)}


_WIDTH, _TALL = 72, 24
"""The sizes of the drawings in the templates."""


def _histogram(card: Card) -> _Values | None:
    """Return the distribution of a metric's scores with its mean and interval; None for an infinite range.

    In the worse half of a verdict bars are bad. Other scores are neither good nor bad, nor is an average of
    probabilities: the judge's thresholds are not at its middle.
    """
    low, high = card.scale.span
    if not card.bins or not isfinite(high - low):
        return None
    step, tall = _WIDTH / len(card.bins), _TALL / max(card.bins)

    def at(value: float) -> str:
        return f"{(min(max(value, low), high) - low) / (high - low) * _WIDTH:.1f}"

    def tone(place: int) -> str:
        if card.aggregate.averaged or not judged_metrics([card.metric]):
            return " other"
        return " lo" if (place < len(card.bins) / 2) == card.scale.higher_is_better else ""

    interval, mean = card.aggregate.interval, card.aggregate.mean
    return {
        "bars": [
            (tone(place), *map("{:.1f}".format, (place * step + 0.5, step - 1, _TALL - tall * amount, tall * amount)))
            for place, amount in enumerate(card.bins)
            if amount
        ],
        "interval": interval and [*map(at, interval)],
        "mean": None if mean is None else at(mean),
        "counts": ", ".join(f"{amount:,}" for amount in card.bins),
    }


_FAULTS, _COLUMNS = 3, 4
"""The number of faults with a column in a table of slices, and of columns for faults and means together."""


def _slice_table(found: Slices, at: int, *, corrected: bool) -> _Values:
    """Return a table of slices: first the metrics in which one differs from the rest, then those of the fault table.

    `corrected`: human labels correct other numbers of the page.
    """
    faults = shown_faults(found, _FAULTS)
    starred = {metric for each in found.values() for metric in each.differs}
    means = next(iter(found.values())).means
    metrics = sorted(means, key=lambda metric: (metric not in starred, not judged_metrics([metric])))
    metrics = metrics[: _COLUMNS - len(faults)]
    notes = [*slice_notes(found), *(["Other numbers of this table are by the judge alone."] if corrected else [])]
    rows: list[tuple[str, str, list[str]]] = []
    for place, (value, each) in enumerate(found.items()):
        counts = map("{:,}".format, (len(each), *(each.faults[key] for key in faults)))
        rows.append((f"{at}/{place}", value, [*counts, *(mean_cell(each, metric) for metric in metrics)]))
    head = [found.field, "n", *(FAULTS[PLACES[key]].name for key in faults), *metrics]
    return {"field": found.field, "head": head, "rows": rows, "notes": " ".join(notes)}


# -- data of the scripts -------------------------------------------------------------------------------

_BLOCK: Final = 50
_LARGE: Final = 2_000
_LARGE_BLOCK: Final = 200


def _blocks(details: Mapping[str, Sequence[Entry]], passages: _Passages) -> _Values:
    """Return details (by name) and passages in packed blocks that the page opens when needed."""
    size = _BLOCK if max(map(len, details.values())) < _LARGE else _LARGE_BLOCK
    parts: dict[str, list[object]] = {name: [each.detail for each in entries] for name, entries in details.items()}
    parts["passages"] = [[name, *texts] for name, texts in passages]
    return {
        "size": size,
        **{name: [packed(all_[at : at + size]) for at in range(0, len(all_), size)] for name, all_ in parts.items()},
    }


def _metric(metric: str, scale: Scale, *, weak: bool, averaged: bool) -> _Values:
    """Return what the table knows of a metric; an infinite end of its range is None.

    `averaged`: its scores average probabilities of the judge, so they are not verdicts and have no colour.
    """
    span = [end if isfinite(end) else None for end in scale.span]
    verdict = not averaged and bool(judged_metrics([metric]))
    return {"id": metric, "weak": weak, "span": span, "up": scale.higher_is_better, "verdict": verdict}


def _faults(*, components: bool = False) -> list[_Values]:
    """Return what the table knows of each fault; `components`: also the component to look at first."""
    return [{**picked(each, "tone glyph name likely"), "cause": _cause(each, components=components)} for each in FAULTS]


def _cause(fault: Fault, *, components: bool) -> str:
    return f"{fault.cause} Look first at the {fault.look}." if components and fault.look else fault.cause


def _values(entries: Sequence[Entry], at: int) -> list[Value]:
    """Return the scores of a metric with four decimals; None and False for outcomes that are not scores."""
    found = (each.row.values[at] for each in entries)
    return [each if each is None or each is False else round(each, 4) for each in found]


def _columns(found: RunReport) -> _Values:
    entries, metrics = found.entries, list(found.run.manifest.metrics)
    cards = {card.metric: card for card in found.cards}
    return {
        "total": found.samples,
        "metrics": [
            _metric(each.metric, each.scale, weak=each.weak, averaged=each.aggregate.averaged)
            for each in (cards[metric] for metric in metrics)
        ],
        "faults": _faults(components=found.components),
        "judged": has_faults(metrics),
        "by": [_slice_column(each, entries) for each in found.slices],
        "id": [each.row.id for each in entries],
        "q": [each.question for each in entries],
        "r": [each.response for each in entries],
        "f": [each.row.fault for each in entries],
        "k": [each.contexts for each in entries],
        "differs": [None if each.differs is None else round(each.differs, 4) for each in entries],
        "v": [_values(entries, at) for at in range(len(metrics))],
    }


def _slice_column(found: Slices, entries: Sequence[Entry]) -> _Values:
    """Return what the page knows of a field: its name, its values, and which of them each sample has."""
    places = {sample: at for at, own in enumerate(found.values()) for sample in own.samples}
    return {"field": found.field, "values": [*found], "of": [places[entry.row.id] for entry in entries]}


# -- a comparison of runs ------------------------------------------------------------------------------


def comparison_page(found: RunComparison, samples: ComparedSamples | None = None) -> str:
    """Return the comparison as one HTML file; equal comparisons give equal bytes.

    `samples`: the common samples; None: they are read from the runs. Raises RunError if a run cannot be read.
    """
    shown = compared_samples(found) if samples is None else samples
    doc = comparison_doc(found, full=True)
    (size, *_, level), leads = doc.parts[0].head, [each for part in doc.parts for each in part.sentences]
    by = shown.metrics.index(found.moved_by) if found.moved_by in shown.metrics else 0
    pairs = list(zip(*shown.entries, strict=True))[:_IN_FULL]
    return page(
        "comparison.html",
        {
            "rows": _compared_columns(found, shown),
            "blocks": _blocks({f"details{at}": own for at, own in enumerate(shown.entries)}, shown.passages),
        },
        scripts=("table.js", "sample.js", "compare.js"),
        title=doc.title.rpartition(":")[0],
        names=found.names,
        facts=[size, level.replace("interval", "intervals")],
        leads=[each for each in (*leads, doc.advice) if each],
        cautions=[Caution("Note.", each) for each in doc.warnings],
        doc=doc,
        tables=[(part, forest(part)) for part in doc.parts],
        dots=_dots(found) if found.rankings else None,
        listed=f"the first {len(pairs):,} of {found.common:,}, those that changed most first",
        pairs=[(each, " and ".join(_score_text(own.row.values[by]) for own in each), _ranks(each)) for each in pairs],
        **_samples(shown.metrics, shown.passages),
    )


def _ranks(entries: Sequence[Entry]) -> list[list[str]]:
    """Return by run the place of each context in the other run; empty with more than two runs."""
    places = [[each["p"] for each in entry.detail["cx"]] for entry in entries]
    if len(places) != 2:
        return []

    def rank(at: int, passage: int, other: Sequence[int]) -> str:
        if passage not in other:
            return "only here"
        return "same rank" if (place := other.index(passage)) == at else f"there: {place + 1}"

    both = zip(places, reversed(places), strict=True)
    return [[rank(at, each, other) for at, each in enumerate(own)] for own, other in both]


def _compared_columns(found: RunComparison, shown: ComparedSamples) -> _Values:
    first, *_ = shown.entries
    averaged = {each.metric for side in found.sides for each in side.run.metrics.values() if each.averaged}
    unchecked, weak = {row.metric for row in found.rows if row.unchecked}, weak_of(found)
    return {
        "total": found.common,
        "names": list(found.names),
        "base": found.rankings[0].best if found.rankings else 0,
        "by": found.moved_by,
        "metrics": [
            _metric(metric, scale, weak=metric in weak, averaged=metric in averaged)
            | {"unchecked": metric in unchecked}
            for metric, scale in zip(shown.metrics, shown.scales, strict=True)
        ],
        "faults": _faults(),
        "chips": any(each.response for own in shown.entries for each in own),
        "id": [each.row.id for each in first],
        "q": [each.question for each in first],
        "r": [[each.response for each in own] for own in shown.entries],
        "f": [[each.row.fault for each in own] for own in shown.entries],
        "v": [[_values(own, at) for own in shown.entries] for at in range(len(shown.metrics))],
    }


_DOTS, _DOTS_TALL, _MARGIN = 720, 240, 100
_NAMED: Final = 8
"""Number of runs up to which the drawing has all names; of more, only those of the best and of the run to take."""


def _dots(found: RunComparison) -> _Values:
    """Return the drawing of several runs: the differences from the best, upwards, against the preferred measure.

    Without one, the runs are next to each other, the best first.
    """
    ranking, name = found.rankings[0], found.preferred
    costs = {place: float(at) for at, place in enumerate(ranking.means)}
    if name is not None:
        costs = {place: found.measures[place][name].typical for place in costs}
    least, most = min(costs, key=costs.__getitem__), max(costs, key=costs.__getitem__)
    ends = [end for row in ranking.rows for end in (row.difference, *(row.interval or ())) if end is not None]
    low, high = min(0.0, *ends, 0.0), max(1e-6, *ends, 0.0)

    def up(value: float) -> float:
        return float(round(_DOTS_TALL - 12 - (value - low) / (high - low) * (_DOTS_TALL - 24), 1))

    shown: list[_Values] = []
    for place, cost in costs.items():
        row, share = ranking.row_of(place), (cost - costs[least]) / ((costs[most] - costs[least]) or 1.0)
        y, interval = up((row.difference if row else 0.0) or 0.0), row and row.interval
        named = len(costs) <= _NAMED or place in {ranking.best, found.chosen}
        dot = {"x": round(_MARGIN + share * (_DOTS - 2 * _MARGIN), 1), "y": y, "name": found.names[place]}
        shown.append({**dot, "named": named, "interval": interval and [*map(up, interval)]})
    texts = {f"{each:+.3f}": up(each) for each in (low, 0.0, high)}
    across = [] if name is None else [found.measures[place][name] for place in (least, most)]
    return {
        "title": f"{ranking.metric}: difference from {found.names[ranking.best]}",
        "dots": shown,
        "texts": texts,
        "zero": up(0.0),
        "across": [f"{each.title} {each.text(each.typical)}" for each in across],
    }
