"""A run in a notebook: its table of means, and its outcomes as a data frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from merilo.errors import UsageError
from merilo.rendering.frames import FLOAT, INTEGER, TEXT, frame_of
from merilo.rendering.html import rendered
from merilo.rendering.overview import interval_heading, intervals_text, judge_name
from merilo.rendering.weak import WeakMarks, left_out_note, unread_note
from merilo.rendering.wording import NONE, STOPPED, count, number, span
from merilo.results.sample_table import Kind, SampleTable, cell_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from merilo.runs.outcomes import OutcomeRecord
    from merilo.runs.run import Run

_TYPES: Final = {Kind.COUNT: INTEGER, Kind.SCORE: FLOAT}


def run_frame(run: Run, *, backend: str = "pandas", rows: str = "samples") -> Any:  # Any: a frame of the backend
    """Return the run as a data frame; see `Run.to_frame`."""
    if rows == "samples":
        table = SampleTable.of(run)
        names = [column.name for column in table.columns]
        types = {column.name: _TYPES.get(column.kind, TEXT) for column in table.columns}
        cells: Iterable[Sequence[object]] = (
            [cell_text(cell, column.kind) for cell, column in zip(row, table.columns, strict=True)]
            for row in table.rows()
        )
    elif rows == "outcomes":
        names = ["sample", "metric", "outcome", "value", "reason"]
        types = {name: FLOAT if name == "value" else TEXT for name in names}
        cells = map(_row, run.records())
    else:
        raise UsageError(f"rows must be samples or outcomes, got {rows!r}.")
    columns: dict[str, list[object]] = {name: [] for name in names}
    for row in cells:
        for name, cell in zip(names, row, strict=True):
            columns[name].append(cell)
    return frame_of(columns, types, backend)


def run_table(run: Run) -> str:
    """Return the run's means as an HTML table, everything in it escaped."""
    manifest, aggregates = run.manifest, tuple(run.metrics.values())
    by = manifest.origin or judge_name(run)
    made_by = "" if by == NONE else f", {'scores of' if manifest.origin else 'judged by'} {by}"
    marks = WeakMarks.of(manifest)
    basis = (
        marks.legend(each.metric for each in aggregates),
        left_out_note(manifest),
        unread_note(manifest),
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


def _row(record: OutcomeRecord) -> list[object]:
    return [
        record["sample"],
        record["metric"],
        record["outcome"],
        record.get("value"),
        record.get("reason") or record.get("error", {}).get("message", ""),
    ]
