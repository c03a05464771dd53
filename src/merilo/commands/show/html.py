"""A run as a static page: its summary, and the worst samples with their evidence."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from typing import TYPE_CHECKING

from merilo.commands.compare.wording import ComparisonNotes, with_entries
from merilo.rendering.aggregate import averaging, less_is_better, missing_text
from merilo.rendering.correction import corrected_aggregates, counts_heading, label_rows, row_name
from merilo.rendering.html import plot, rendered
from merilo.rendering.html_evidence import EvidencePart, TextPart, evidence_part, text_part, value_cell
from merilo.rendering.overview import agreement, counts_text, intervals_text, judge_name
from merilo.rendering.spent import spent_text
from merilo.rendering.weak import WeakMarks, left_out_note
from merilo.rendering.wording import HUMAN_LABELS, NONE, REMARKS, STOPPED, UNSEALED, count, number, percent, span
from merilo.results.sample_details import cases_of
from merilo.runs.scales import recorded_scale

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from merilo.results.sample_detail import SampleDetail
    from merilo.runs.manifest import Aggregate
    from merilo.runs.run import Run
    from merilo.stats.correction import Correction

SHOWN = 20
_HEAD = ("metric", "mean", "interval", "scored", "undefined", "failed")


@dataclass(frozen=True, slots=True)
class SamplePart:
    """A sample on the page, and the reason why it was chosen."""

    sample: str
    why: str
    text: TextPart
    rows: tuple[tuple[str, str], ...]
    side: EvidencePart


def run_html(
    run: Run,
    *,
    metric: str | None = None,
    samples: int = SHOWN,
    corrections: Mapping[str, Correction] | None = None,
) -> str:
    """Return the run as one HTML file with its `samples` worst samples: of each metric in turn, or of `metric` only.

    `metric`: the full text of one of the run's metrics. `corrections`: corrections by human labels, by metric; a
    corrected mean replaces the judge's own. Raises RunError if the run cannot be read.
    """
    known, marks = corrections or {}, WeakMarks.of(run.manifest)
    aggregates = corrected_aggregates(tuple(run.metrics.values()), known)
    chosen = _chosen(run, list(run.manifest.metrics) if metric is None else [metric], samples)
    cases = cases_of(run, list(chosen))
    return rendered(
        "run",
        title=_title(run),
        beware=[*([] if run.complete else [f"This run was {STOPPED}."]), *([] if run.sealed else [UNSEALED])],
        head=_HEAD,
        rows=[_cells(each, known.get(each.metric), marks) for each in aggregates],
        plot=plot("plot, 0 to 1", ((each.mean, each.interval) for each in aggregates), ends=(0.0, 1.0))
        if all(_on_unit_scale(each) for each in aggregates)
        else None,
        basis=_basis(run, aggregates, {text for text, each in known.items() if each.estimate is not None}),
        notes=_notes(run, aggregates, known),
        samples=[_sample(cases[sample], why, marks) for sample, why in chosen.items()],
        samples_title=f"{count(len(chosen), 'sample')} to inspect first",
        chosen=f"The worst by {marks.name(metric)}."
        if metric
        else "The worst of each metric in turn; each sample appears once.",
    )


def _title(run: Run) -> str:
    judge, origin = judge_name(run), run.manifest.origin
    if origin is not None:
        return f"{run.manifest.data}: {count(run.manifest.samples, 'sample')}, scores of {origin}"
    by = "" if judge == NONE else f", judged by {judge}"
    return f"{run.manifest.data}: {count(run.manifest.samples, 'sample')}{by}"


def _cells(aggregate: Aggregate, correction: Correction | None, marks: WeakMarks) -> tuple[str, ...]:
    counted = (aggregate.scored, aggregate.undefined, aggregate.failed)
    return (
        marks.name(aggregate.metric, row_name(aggregate.metric, correction)),
        number(aggregate.mean),
        span(aggregate.interval),
        *(f"{amount:,}" for amount in counted),
    )


def _on_unit_scale(aggregate: Aggregate) -> bool:
    ends = (aggregate.mean, *(aggregate.interval or ()))
    return all(end is None or 0 <= end <= 1 for end in ends)


def _basis(run: Run, aggregates: Sequence[Aggregate], corrected: Collection[str]) -> str:
    levels = ", ".join(dict.fromkeys(percent(each.level) for each in aggregates))
    covered = intervals_text(aggregates, run.manifest.cluster, corrected=corrected, origin=run.manifest.origin)
    weak = WeakMarks.of(run.manifest).legend(each.metric for each in aggregates)
    notes = (less_is_better(run.manifest, aggregates), averaging(aggregates), weak, left_out_note(run.manifest))
    parts = (*notes, f"Confidence level: {levels}." if levels else "", covered)
    return " ".join(filter(None, parts))


def _notes(run: Run, aggregates: Sequence[Aggregate], corrections: Mapping[str, Correction]) -> list[ComparisonNotes]:
    manifest, name = run.manifest, WeakMarks.of(run.manifest).name
    # samples that a composite lacks are listed at its parts
    missing = [each for each in aggregates if not each.parts and (each.undefined or each.failed)]
    groups = (
        (HUMAN_LABELS, [(name(metric), text) for metric, text in label_rows(corrections)]),
        (counts_heading(corrections), [(name(each.metric), counts_text(each.counts)) for each in aggregates]),
        ("Not scored (excluded from the means)", [(name(each.metric), missing_text(each)) for each in missing]),
        (REMARKS, [(each.metric, each.remark) for each in aggregates]),
        ("No interval", [(each.metric, each.note) for each in aggregates if each.scored]),
        ("Left out", list(manifest.left_out.items())),
        (
            "This run",
            [
                *_made_by(run),
                ("data", "; ".join(manifest.notes)),
                ("skipped", count(len(manifest.skipped), "invalid record") if manifest.skipped else ""),
            ],
        ),
    )
    return with_entries(groups)


def _made_by(run: Run) -> list[tuple[str, str]]:
    if run.manifest.origin is not None:
        return [("scores", f"imported from {run.manifest.origin}; no judge was asked")]
    judge = "; ".join(filter(None, (judge_name(run), agreement(run))))
    return [("judge", judge), ("cost", spent_text(run.usage))]


def _sample(case: SampleDetail, why: str, marks: WeakMarks) -> SamplePart:
    rows = tuple((marks.name(name), value_cell(outcome, counts=True)) for name, outcome in case.result.outcomes.items())
    return SamplePart(case.result.sample.id, why, text_part(case), rows, evidence_part(case))


# -- which samples ------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Worst:
    """Collects the worst scores of one metric; equal scores in the order of the data."""

    shown: str
    """The name of the metric as the page shows it."""
    sign: int
    """1 if higher is better, -1 if lower is better."""
    best: float
    most: int
    found: list[tuple[float, int, str]] = field(default_factory=list[tuple[float, int, str]])
    """A heap with the best of these scores on top, so that a worse one replaces it."""

    def add(self, value: float, place: int, sample: str) -> None:
        """Add one score, unless it is the best possible."""
        if value == self.best:
            return
        entry = (-self.sign * value, -place, sample)
        if len(self.found) < self.most:
            heapq.heappush(self.found, entry)
        elif entry > self.found[0]:
            heapq.heapreplace(self.found, entry)

    def samples(self) -> Iterator[tuple[str, str]]:
        """Yield each sample with the reason why it was chosen, the worst first."""
        for value, _, sample in sorted(self.found, reverse=True):
            yield sample, f"{self.shown} {number(-self.sign * value)}"


def _chosen(run: Run, metrics: Sequence[str], most: int) -> dict[str, str]:
    """Return at most `most` samples, each with its reason: the worst of each metric in turn."""
    if most < 1:
        return {}
    worst: dict[str, _Worst] = {}
    for metric in metrics:
        scale = recorded_scale(run.manifest, metric)
        sign = 1 if scale.higher_is_better else -1
        worst[metric] = _Worst(
            WeakMarks.of(run.manifest).name(metric), sign, scale.span[1] if sign > 0 else scale.span[0], most
        )
    for place, record in enumerate(run.records()):
        value = record.get("value")
        if value is not None and record["metric"] in worst:
            worst[record["metric"]].add(value, place, record["sample"])
    found: dict[str, str] = {}
    for turn in zip_longest(*(each.samples() for each in worst.values())):
        for sample, why in filter(None, turn):
            found.setdefault(sample, why)
    return dict(islice(found.items(), most))
