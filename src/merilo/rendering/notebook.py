"""A run in a notebook: its table of means, and its outcomes as a data frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from merilo.rendering.frames import frame
from merilo.rendering.html import rendered
from merilo.rendering.overview import interval_heading, intervals_text, judge_name
from merilo.rendering.weak import WeakMarks, left_out_note
from merilo.rendering.wording import NONE, STOPPED, count, number, span

if TYPE_CHECKING:
    import pandas as pd

    from merilo.runs.outcomes import OutcomeRecord
    from merilo.runs.run import Run


def run_frame(run: Run) -> pd.DataFrame:
    """Return one row for each sample and metric, in the run's order: sample, metric, outcome, value, reason.

    `value` is empty unless `outcome` is "score"; `reason` explains why. Raises UsageError if pandas is not installed.
    """
    return frame([_row(record) for record in run.records()])


def run_table(run: Run) -> str:
    """Return the run's means as an HTML table, everything in it escaped."""
    manifest, aggregates = run.manifest, tuple(run.metrics.values())
    by = manifest.origin or judge_name(run)
    made_by = "" if by == NONE else f", {'scores of' if manifest.origin else 'judged by'} {by}"
    marks = WeakMarks.of(manifest)
    basis = (
        marks.legend(each.metric for each in aggregates),
        left_out_note(manifest),
        intervals_text(aggregates, manifest.cluster, origin=manifest.origin),
    )
    stopped = "" if run.complete else f"; {STOPPED}"
    return rendered(
        "table",
        caption=f"{manifest.data}: {count(manifest.samples, 'sample')}{made_by}{stopped}",
        head=("metric", "mean", interval_heading(aggregates), "scored", "undefined", "failed"),
        rows=tuple(
            (
                marks.name(each.metric),
                number(each.mean),
                span(each.interval),
                *(f"{amount:,}" for amount in (each.scored, each.undefined, each.failed)),
            )
            for each in aggregates
        ),
        text=(),
        basis=" ".join(filter(None, basis)),
    )


def _row(record: OutcomeRecord) -> dict[str, object]:
    return {
        "sample": record["sample"],
        "metric": record["metric"],
        "outcome": record["outcome"],
        "value": record.get("value"),
        "reason": record.get("reason") or record.get("error", {}).get("message", ""),
    }
