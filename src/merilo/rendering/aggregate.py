"""The means of a run: as rows of a table, as JSON objects, and the notes on them that pages share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from merilo.metrics.registry import known_metric
from merilo.rendering.correction import correction_record, row_name
from merilo.rendering.page import GAP, Page, Span, Tone, cells_of, columns, cut_id
from merilo.rendering.sanitize import clean
from merilo.rendering.weak import WEAK, WeakMarks, unread_note
from merilo.rendering.wording import NONE, count, covers, covers_imported, number, percent, span
from merilo.results.basis import basis_of
from merilo.results.faults import CANNOT_TELL, FAULTS, PLACES
from merilo.results.records import picked
from merilo.results.slices import MIN_SAMPLES
from merilo.results.summary import LEFT_OPEN
from merilo.runs.run_metrics import recorded_scale, weak_metrics

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from merilo.results.slices import Slice, Slices
    from merilo.runs.manifest import Aggregate, Manifest, Share
    from merilo.stats.correction import Correction

_GAPS: Final = (2, 2, 1, 1)  # the headings of the last three columns keep them apart already


def less_is_better(manifest: Manifest, aggregates: Sequence[Aggregate]) -> str:
    """Return a sentence that names the run's metrics with lower scores as better; empty if there are none."""
    names = [each.metric for each in aggregates if not recorded_scale(manifest, each.metric).higher_is_better]
    return f"Lower is better: {', '.join(map(clean, names))}." if names else ""


def averaging(aggregates: Sequence[Aggregate]) -> str:
    """Return a sentence that names the metrics that average the judge's probabilities; empty if there are none."""
    names = [clean(each.metric) for each in aggregates if each.averaged]
    return f"Averages of the judge's probabilities: {', '.join(names)}." if names else ""


def short_rows(
    manifest: Manifest, aggregates: Sequence[Aggregate], corrections: Mapping[str, Correction], *, meanings: bool
) -> tuple[list[tuple[str, ...]], list[str]]:
    """Return the short table of means, and a note for each row: parts that are divided by semicolons.

    `meanings`: begin each note with the meaning of the metric.
    """
    weak = weak_metrics(manifest)
    rows = [(each.metric, number(each.mean), span(each.interval), f"{each.scored:,}") for each in aggregates]
    notes = [""]
    for each in aggregates:
        known = known_metric(each.metric)
        correction, left = corrections.get(each.metric), each.reasons.get(LEFT_OPEN, 0)
        labelled = correction is not None and correction.estimate is not None
        parts = (
            known.card.meaning if known is not None and meanings else "",
            "" if recorded_scale(manifest, each.metric).higher_is_better else "lower is better",
            f"corrected by {count(correction.labelled, 'labelled sample')}" if correction and labelled else "",
            WEAK if each.metric in weak else "",
            *(
                f"{amount:,} {name}"
                for amount, name in (
                    (left, "not judged"),
                    (each.undefined - left, "undefined"),
                    (each.failed, "failed"),
                )
                if amount
            ),
        )
        notes.append("; ".join(filter(None, parts)))
    return [("metric", "mean", interval_heading(aggregates), "scored"), *rows], notes


def mean_rows(
    aggregates: Sequence[Aggregate], marks: WeakMarks, corrections: Mapping[str, Correction] | None = None
) -> list[tuple[str, ...]]:
    """Return the table of means: its headings, then one row per metric.

    `marks`: marks the names of weak metrics; `means_notes` explains the marker. `corrections`: note in the names which
    means human labels correct.
    """
    known = corrections or {}
    rows = [
        (
            marks.name(each.metric, row_name(each.metric, known.get(each.metric))),
            number(each.mean),
            span(each.interval),
            *(f"{amount:,}" for amount in (each.scored, each.undefined, each.failed)),
        )
        for each in aggregates
    ]
    return [("metric", "mean", interval_heading(aggregates), "scored", "undefined", "failed"), *rows]


def means_notes(manifest: Manifest, aggregates: Sequence[Aggregate], *, corrected: Collection[str] = ()) -> list[str]:
    """Return the sentences below the table of means: directions, averages, languages, intervals.

    `corrected`: metrics whose means human labels correct.
    """
    notes = (
        less_is_better(manifest, aggregates),
        averaging(aggregates),
        WeakMarks.of(manifest).legend(each.metric for each in aggregates),
        unread_note(manifest),
        intervals_text(aggregates, manifest.cluster, corrected=corrected, origin=manifest.origin),
    )
    return [each for each in notes if each]


def table(page: Page, rows: Sequence[tuple[str, ...]], aggregates: Sequence[Aggregate]) -> None:
    """Add the `rows` that `mean_rows` returns to a page."""
    tones = [Tone.STRONG, *(Tone.BAD if each.failed else Tone.PLAIN for each in aggregates)]
    page.table([(*rows[0][:4], "undef", *rows[0][5:]), *rows[1:]], tones, gaps=_GAPS)


def interval_heading(aggregates: Sequence[Aggregate]) -> str:
    """Return the heading of the column of their intervals."""
    return f"{percent(aggregates[0].level if aggregates else 0.95)} interval"


def intervals_text(
    aggregates: Sequence[Aggregate], cluster: str | None, *, corrected: Collection[str] = (), origin: str | None = None
) -> str:
    """Return a sentence on the errors that the intervals cover; empty if there are no intervals.

    `corrected`: metrics whose means human labels correct. `origin`: the program that computed imported scores.
    """
    if all(each.interval is None for each in aggregates):
        return ""
    clusters = max((each.clusters for each in aggregates if each.clusters is not None), default=None)
    sampled = "questions"
    if clusters is not None:
        sampled = f"{count(clusters, 'cluster')} of questions{f' by {cluster}' if cluster else ''}"
    own = [clean(each.metric) for each in aggregates if each.interval is not None and each.metric in corrected]
    if len(own) == sum(each.interval is not None for each in aggregates):
        return f"Intervals cover sampling of {sampled} and, based on human labels, judge error."
    if own:
        return (
            f"Intervals cover sampling of {sampled}. Only those of {', '.join(own)} also cover judge error, based on "
            "human labels."
        )
    return f"Intervals {covers(sampled) if origin is None else covers_imported(clean(origin), sampled)}."


def aggregate_record(aggregate: Aggregate, correction: Correction | None, *, weak: bool) -> dict[str, Any]:  # Any: JSON
    """Return the aggregate as a JSON-able object.

    `correction`: the correction of its mean by human labels. `weak`: True if the metric is weak with the judge.
    """
    shares = aggregate.shares.items()
    return {
        **picked(aggregate, "mean interval level method seed clusters remark bounds bounds_with_undefined"),
        **picked(aggregate, "scored undefined failed counts"),
        "shares": {name: picked(share, "value interval note remark method") for name, share in shares},
        **picked(aggregate, "reasons note flagged flags averaged"),
        "made_of": list(aggregate.parts),
        "weak": weak,
        "basis": basis_of(aggregate.metric, corrected=correction is not None and correction.estimate is not None).value,
        "correction": None if correction is None else correction_record(correction),
    }


def share_text(share: Share) -> str:
    """Return a share with its interval, or with the reason that there is none."""
    return f"{number(share.value)} ({share.note if share.interval is None else span(share.interval)})"


def missing_text(aggregate: Aggregate) -> str:
    """Return the numbers of undefined and failed samples with their reasons.

    Example: `2 undefined, 1 failed: the response is blank (2); ...`.
    """
    missing = aggregate.undefined + aggregate.failed
    parts = [("undefined", aggregate.undefined), ("failed", aggregate.failed)]
    reasons = [f"{reason.rstrip('.')} ({amount:,})" for reason, amount in aggregate.reasons.items()]
    if (others := missing - sum(aggregate.reasons.values())) > 0:
        reasons.append(f"other reasons ({others:,})")
    return f"{', '.join(f'{amount:,} {name}' for name, amount in parts if amount)}: {'; '.join(reasons)}"


# -- slices --------------------------------------------------------------------------------------------

_WIDTH: Final = 100
_WIDEST: Final = 24
_MOST_FAULTS: Final = 4


def slices_text(found: Slices) -> str:
    """Return the table, at most 100 columns wide."""
    page = Page(_WIDTH)
    add_slices(page, found)
    return str(page)


def add_slices(page: Page, found: Slices) -> None:
    """Add the table; metrics that do not fit the width are left out."""
    rows = slice_rows(found)
    rows = [[cut_id(row[0], _WIDEST), *row[1:]] for row in rows]
    shown = len(rows[0])
    while shown > 2 and cells_of(columns([row[:shown] for row in rows], left=frozenset({0}))[0]) > page.width:
        shown -= 1
    for place, line in enumerate(columns([row[:shown] for row in rows], left=frozenset({0}))):
        page.line(Span(line, Tone.PLAIN if place else Tone.STRONG))
    for note in slice_notes(found):
        page.text(note, tone=Tone.QUIET)
    if shown < len(rows[0]):
        page.text(f"{' ' * GAP}Some metrics do not fit: use a wider terminal.", tone=Tone.QUIET)


def slice_rows(found: Slices) -> list[list[str]]:
    """Return the head and one row for each slice: value, samples, the most frequent faults, means."""
    faults, metrics = shown_faults(found), shown_metrics(found)
    head = [found.field, "n", *(FAULTS[PLACES[key]].name for key in faults), *metrics]
    return [head, *([each.value, f"{len(each):,}", *_cells(each, faults, metrics)] for each in found.values())]


def shown_metrics(found: Slices) -> list[str]:
    """Return the metrics, those first in which a slice differs from the rest, since a narrow page cuts the last."""
    starred = {metric for each in found.values() for metric in each.differs}
    return sorted(next(iter(found.values())).means, key=lambda metric: metric not in starred)


def shown_faults(found: Slices, most: int = _MOST_FAULTS) -> list[str]:
    """Return the faults with a column: the `most` most frequent ones of the run, without "cannot tell"."""
    totals: dict[str, int] = {}
    for each in found.values():
        for key, amount in each.faults.counts.items():
            totals[key] = totals.get(key, 0) + amount
    known = [key for key in sorted(totals, key=lambda key: -totals[key]) if key != CANNOT_TELL]
    return sorted(known[:most], key=lambda key: -PLACES[key])


def _cells(each: Slice, faults: Sequence[str], metrics: Sequence[str]) -> list[str]:
    return [*(f"{each.faults[key]:,}" for key in faults), *(mean_cell(each, metric) for metric in metrics)]


def mean_cell(each: Slice, metric: str) -> str:
    """Return a mean with its interval, and a star if it differs from the rest."""
    mean = each.means[metric]
    interval = f" ({span(mean.interval.ends)})" if mean.interval.ends is not None else ""
    return f"{number(mean.value)}{interval}{' *' * (metric in each.differs)}" if mean.value is not None else NONE


def slice_notes(found: Slices) -> list[str]:
    """Return what stars and missing intervals mean, and which means labels correct."""
    notes: list[str] = []
    if any(each.differs for each in found.values()):
        notes.append(f"* differs from all other samples (95 %, corrected for {len(found)} values).")
    if any(mean.units < MIN_SAMPLES for each in found.values() for mean in each.means.values()):
        notes.append(f"Fewer than {MIN_SAMPLES} scored samples: no interval.")
    corrected = {value: max(each.labelled.values()) for value, each in found.items() if each.labelled}
    if corrected:
        named = ", ".join(f"{value} ({count(amount, 'label')})" for value, amount in corrected.items())
        notes.append(f"Corrected by human labels: {named}.")
    return notes
