"""Reads a run for its report: every outcome once for the table, then the details of the samples that are shown.

Memory holds the samples that are shown, and counts of all others, so a run of any size can have a report.
"""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field
from itertools import groupby
from math import isfinite
from typing import TYPE_CHECKING

from merilo.commands.calibrate.people import labels_by_sample, next_step, readable_labels
from merilo.commands.calibrate.slices import faults_of, slices_by
from merilo.commands.report.details import (
    FAILED,
    MOST,
    WORST,
    Card,
    Caution,
    Entry,
    Passages,
    Row,
    RunReport,
    Value,
    detail_of,
)
from merilo.commands.show.summary import view_of
from merilo.errors import RunError
from merilo.metrics.registry import asks_judge
from merilo.numbers import count, percent, spent_text
from merilo.results.comparable import judged_by_embedded
from merilo.results.contents import chosen, has_order
from merilo.results.estimate import BY_JUDGE, Level
from merilo.results.faults import CANNOT_TELL, PLACES, Faults, judged_metrics
from merilo.results.means import judge_name, row_name
from merilo.results.measures import measures_of
from merilo.results.records import grouped
from merilo.results.sample_detail import SampleDetail
from merilo.results.slices import values_by_field
from merilo.runs.run import Run, opened
from merilo.runs.run_metrics import NO_SCALE, Scale, recorded_scale, weak_metrics
from merilo.stats.diagnosis import NO_CAUSES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from os import PathLike

    from merilo.commands.compare.result import RunComparison
    from merilo.rendering.run_doc import RunView
    from merilo.rendering.slices import Slices


_LIST_CHARS = 300
"""Characters of a question or response in the table; the opened sample has all of it."""
_BINS = 10
_FIELDS = 6
"""Number of fields that have slices."""
_REPLIES = 2_000
"""Reports on more samples leave the judge's raw replies out."""


def report_run(
    run: Run | str | PathLike[str],
    *,
    by: str | None = None,
    most: int = MOST,
    causes: Mapping[str, tuple[str, float, str]] | None = None,
) -> RunReport:
    """Return the report on a run. `most`: samples that are all shown.

    Of a larger run, the worst `WORST` samples are shown, or `most` if that is less. `by`: the field whose slices are
    shown first. `causes`: by question, the cause of a diagnosis, first of its fields. Raises RunError if the run cannot
    be read, UsageError if `by` cannot be used.
    """
    this = opened(run)
    metrics = tuple(this.manifest.metrics)
    scales = [recorded_scale(this.manifest, metric) for metric in metrics]
    view = view_of(this)
    faults = view.faults
    orders = faults.orders
    labelled = bool({*view.corrected} & {*judged_metrics(metrics)})
    all_rows, pages = RowTotals(scales), view.verdicts
    rows = heapq.nsmallest(
        most,
        all_rows.counted(rows_of(pages, metrics, faults)),
        key=lambda row: (row.fault, orders[row.id] if orders else _quality(row.values, scales), row.place),
    )
    shown = rows if all_rows.samples <= most else rows[: min(WORST, most)]
    passages = Passages()
    entries = entries_of(pages, shown, passages, replies=len(shown) <= _REPLIES)
    known = {each.detail["q"]: own[0] for each in entries if (own := (causes or {}).get(each.detail["q"]))}
    for each in entries:
        if (cause := known.get(each.detail["q"])) is not None:
            each.detail["meta"].append(["cause", cause])
    found = Counter(cause for cause in known.values() if cause not in NO_CAUSES)
    numbers = ", ".join(f"{many:,} {cause}" for cause, many in found.most_common())
    experiments = [Caution("Causes shown by experiments:", f"{numbers}.")] if numbers else []
    return RunReport(
        run=this,
        facts=_facts(this),
        cautions=(*_cautions(view), *experiments),
        cards=_cards(view, all_rows),
        faults=faults,
        components=labelled or not judged_by_embedded(this.manifest),
        slices=_slices(this, by),
        samples=all_rows.samples,
        entries=entries,
        passages=passages.listed(),
        notes=(("How to read the numbers", [("intervals", view.legend)]), *view.notes),
    )


def _slices(run: Run, by: str | None = None) -> tuple[Slices, ...]:
    """Return the slices of a run by each field that has 2 to 30 values. `by`: the field to show first.

    The others follow in the order of their spread: the largest difference between means with an interval. Raises
    UsageError if `by` cannot be used.
    """
    first = () if by is None else (by,)
    fields = list(dict.fromkeys((*first, *values_by_field(run))))[:_FIELDS]
    found = slices_by(run, fields) if fields else ()
    return tuple(sorted(found, key=lambda each: (each.field != by, -_spread(each))))


def _spread(found: Slices) -> float:
    """Return the largest difference between two slices' means of one metric; 0 without two that have intervals."""
    known = grouped(
        (metric, mean.value or 0.0) for each in found.values() for metric, mean in each.means.items() if mean.interval
    )
    return max((max(values) - min(values) for values in known.values()), default=0.0)


@dataclass(slots=True)
class RowTotals:
    """Counts over all samples of a run."""

    scales: Sequence[Scale]
    """One per metric."""
    samples: int = 0
    _bins: list[list[int]] = field(init=False)

    def __post_init__(self) -> None:
        self._bins = [[0] * _BINS for _ in self.scales]

    def counted(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the rows unchanged, and count each."""
        for row in rows:
            self.samples += 1
            for value, scale, bins in zip(row.values, self.scales, self._bins, strict=True):
                if (part := _position(value, scale)) is not None:
                    bins[min(_BINS - 1, max(0, int(part * _BINS)))] += 1
            yield row

    def bins_of(self, metric: int) -> tuple[int, ...]:
        """Return the number of scores in each tenth of a metric's range; empty without scores or a range."""
        return tuple(self._bins[metric]) if any(self._bins[metric]) else ()


def _position(value: Value, scale: Scale) -> float | None:
    """Return where a score is in its range, from 0 to 1; None without a score or a finite range."""
    low, high = scale.span
    if value is None or value is FAILED or not isfinite(high - low) or high <= low:
        return None
    return (value - low) / (high - low)


def rows_of(run: Run, metrics: Sequence[str], faults: Faults) -> Iterator[Row]:
    """Yield each sample with its values of these metrics and its fault, in the order of the data."""
    outcomes = run.brief_records(metrics)
    for place, (sample, group) in enumerate(groupby(outcomes, key=lambda record: record["sample"])):
        records = {record["metric"]: record for record in group}
        if lacking := [metric for metric in metrics if metric not in records]:
            raise RunError(f"{run.path} is damaged: sample {sample!r} has no outcome of {lacking[0]}.")
        values = tuple(
            FAILED if (each := records[metric])["outcome"] == "failed" else each.get("value") for metric in metrics
        )
        yield Row(sample, place, values, PLACES[faults.samples.get(sample, CANNOT_TELL)])


def _quality(values: Sequence[Value], scales: Sequence[Scale]) -> float:
    """Return the mean of the scores, on a scale from 0 (worst) to 1; 0 without one."""
    found = [
        part if scale.higher_is_better else 1 - part
        for value, scale in zip(values, scales, strict=True)
        if (part := _position(value, scale)) is not None
    ]
    return sum(found) / len(found) if found else 0.0


def entries_of(run: Run, rows: Sequence[Row], passages: Passages, *, replies: bool) -> tuple[Entry, ...]:
    """Return the rows with their texts and details, in their order; passages are numbered in the order of the data.

    `replies`: with the judge's raw replies. Of at most `_REPLIES` rows, verdicts name the text that was checked.
    """
    wanted = {row.id: row for row in rows}
    found: dict[str, Entry] = {}
    labels = labels_by_sample(readable_labels(run))
    for result in run.read_samples(wanted):
        row, own = wanted[result.sample.id], labels.get(result.sample.id, ())
        keys = dict.fromkeys(key for record in result.records.values() for key in record.get("trail", ()))
        asked = tuple(run.asked(list(keys))) if own or len(wanted) <= _REPLIES else ()
        found[row.id] = _entry(row, SampleDetail(result, asked, tuple(own)), passages, replies=replies)
    return tuple(found[row.id] for row in rows)


def _entry(row: Row, case: SampleDetail, passages: Passages, *, replies: bool) -> Entry:
    sample = case.result.sample
    return Entry(
        row=row,
        question=(sample.user_input or "")[:_LIST_CHARS],
        response=(sample.response or "")[:_LIST_CHARS],
        contexts=len(sample.retrieved_contexts or ()),
        differs=max((0.0 if each.agrees else each.certainty for each in case.people), default=None),
        detail=detail_of(case, passages, replies=replies),
    )


def _cards(view: RunView, rows: RowTotals) -> tuple[Card, ...]:
    run, corrections = view.run, view.corrections
    weak, places = weak_metrics(run.manifest), {metric: at for at, metric in enumerate(run.manifest.metrics)}
    found: list[Card] = []
    for each in view.aggregates:
        at = places.get(each.metric)  # None for a composite, which has no value per sample
        scale = NO_SCALE if at is None else recorded_scale(run.manifest, each.metric)
        bins = () if at is None else rows.bins_of(at)
        name = row_name(each.metric, corrections.get(each.metric))
        found.append(Card(each.metric, name, each, scale, each.metric in weak, bins))
    return tuple(found)


def _facts(run: Run) -> tuple[str, ...]:
    manifest, judge = run.manifest, judge_name(run)
    levels = ", ".join(dict.fromkeys(percent(each.level) for each in run.metrics.values()))
    by = f"judge {judge}" if manifest.judges else judge
    if manifest.origin is not None:
        by = f"scores of {manifest.origin}"
    facts = (
        f"{manifest.data}: {count(run.done, 'sample')}",
        by,
        "" if manifest.origin is not None else spent_text(run.usage),
        f"{levels} intervals" if levels else "",
        f"clusters by {manifest.cluster}" if manifest.cluster else "",
        *(each.brief for each in run.kept(measures_of).values()),
        f"merilo {manifest.merilo}",
    )
    return tuple(filter(None, facts))


def _cautions(view: RunView) -> tuple[Caution, ...]:
    """Return what limits the numbers: warnings, a judge without human labels, cautions."""
    run, manifest = view.run, view.run.manifest
    alone = [metric for metric in manifest.metrics if asks_judge(metric) and metric not in view.corrected]
    found = [Caution("Unfinished.", each.full) for each in view.caveats if each.level is Level.WARNS]
    if view.corrected:
        own = f" {BY_JUDGE[0].upper()}{BY_JUDGE[1:]}: {', '.join(alone)}." if alone else ""
        found.append(Caution("Corrected by human labels:", f"{', '.join(view.corrected)}.{own}"))
    elif alone and manifest.origin is None:
        found.append(Caution("Not checked on this data.", next_step([run])))
    return (*found, *(Caution("Note.", each) for each in view.cautions()))


# -- samples that compared runs share -----------------------------------------------------------------


@dataclass(frozen=True)
class ComparedSamples:
    """The samples that all runs have, those that changed most first, and their contexts."""

    metrics: tuple[str, ...]
    scales: tuple[Scale, ...]
    """One per metric."""
    entries: tuple[tuple[Entry, ...], ...]
    """By run, the samples in one order."""
    passages: tuple[tuple[str, Sequence[str]], ...]


def compared_samples(found: RunComparison, *, most: int = MOST) -> ComparedSamples:
    """Return the common samples; with more than `most`, the `WORST` that changed most. Raises RunError.

    Of more than two runs, all samples are returned up to a smaller number, so that the file stays as small.
    """
    metrics = tuple(dict.fromkeys(row.metric for row in found.rows))
    scales = tuple(recorded_scale(found.sides[0].run.manifest, metric) for metric in metrics)
    by = metrics.index(found.moved_by) if found.moved_by in metrics else 0

    def change(rows: Sequence[Row]) -> tuple[float, float]:
        changes = _changes(rows, scales)
        return -changes[by], -max(changes)

    fitting = most * 2 // len(found.sides)
    wanted = len(found.ids) if len(found.ids) <= fitting else min(WORST, fitting)
    together = zip(*(_rows_in_order(side.run, metrics, found.ids) for side in found.sides), strict=True)
    shown = heapq.nsmallest(wanted, together, key=change)  # equal changes stay in the order of the data
    passages = Passages()
    entries = tuple(
        entries_of(side.run, [rows[at] for rows in shown], passages, replies=False)
        for at, side in enumerate(found.sides)
    )
    return ComparedSamples(metrics, scales, entries, passages.listed())


def _rows_in_order(run: Run, metrics: Sequence[str], ids: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of these samples, in this order.

    Rows are held in memory only if the run has these samples in another order, which is rare.
    """
    faults = faults_of(run, judge_only=True)
    if has_order((sample for sample, _ in groupby(each["sample"] for each in run.brief_records(metrics[:1]))), ids):
        yield from chosen(rows_of(run, metrics, faults), lambda row: row.id, ids)
    else:
        known = frozenset(ids)
        found = {row.id: row for row in rows_of(run, metrics, faults) if row.id in known}
        yield from (found[sample] for sample in ids)


def _changes(rows: Sequence[Row], scales: Sequence[Scale]) -> list[float]:
    """Return the largest distance from the first run, by metric, as a part of its range; 0 if it is not known."""
    return [
        max(_distance(rows[0].values[at], other.values[at], scale) for other in rows[1:])
        for at, scale in enumerate(scales)
    ]


def _distance(first: Value, second: Value, scale: Scale) -> float:
    low, high = scale.span
    if first is None or first is FAILED or second is None or second is FAILED:
        return 0.0
    width = high - low
    return abs(first - second) / (width if isfinite(width) and width > 0 else 1.0)
