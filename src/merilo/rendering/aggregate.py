"""The means of a run: as rows of a table, as JSON objects, and the notes on them that pages share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from merilo.metrics.registry import known_metric
from merilo.records import picked
from merilo.rendering.correction import correction_record, row_name
from merilo.rendering.page import Tone
from merilo.rendering.sanitize import clean
from merilo.rendering.weak import WEAK, WeakMarks, unread_note
from merilo.rendering.wording import count, covers, covers_imported, number, percent, span
from merilo.results.basis import basis_of
from merilo.runs.scales import recorded_scale
from merilo.runs.weak import weak_metrics

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from merilo.rendering.page import Page
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
        correction, left = corrections.get(each.metric), each.counts.get("not_judged")
        labelled = correction is not None and correction.estimate is not None
        parts = (
            known.card.meaning if known is not None and meanings else "",
            "" if recorded_scale(manifest, each.metric).higher_is_better else "lower is better",
            f"corrected by {count(correction.labelled, 'labelled sample')}" if correction and labelled else "",
            WEAK if each.metric in weak else "",
            f"{left:,} of {left + (each.counts.get('statements') or 0):,} not judged" if left else "",
            *(
                f"{amount:,} {name}"
                for amount, name in ((each.undefined, "undefined"), (each.failed, "failed"))
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
    """Return the sentences below the table of means: directions, averages, what is not judged, languages, intervals.

    `corrected`: metrics whose means human labels correct.
    """
    notes = (
        less_is_better(manifest, aggregates),
        averaging(aggregates),
        not_judged(aggregates),
        WeakMarks.of(manifest).legend(each.metric for each in aggregates),
        unread_note(manifest),
        intervals_text(aggregates, manifest.cluster, corrected=corrected, origin=manifest.origin),
    )
    return [each for each in notes if each]


def not_judged(aggregates: Sequence[Aggregate]) -> str:
    """Return how many statements of which metrics the judge cannot judge; empty if there are none."""
    found = [
        f"{left:,} of {left + (each.counts.get('statements') or 0):,} for {each.metric}"
        for each in aggregates
        if (left := each.counts.get("not_judged"))
    ]
    return f"Statements that the judge cannot judge, left out of the mean: {', '.join(found)}." if found else ""


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
