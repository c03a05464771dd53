"""Notes on the numbers of a run: labels, counts, missing scores, remarks on intervals, and the origin of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from merilo.commands.compare.notes import ComparisonNotes, with_entries
from merilo.rendering.aggregate import averaging, less_is_better, missing_text
from merilo.rendering.correction import corrected_aggregates, counts_heading, label_rows
from merilo.rendering.overview import agreement, counts_text, intervals_text, judge_name
from merilo.rendering.spent import spent_text
from merilo.rendering.weak import WeakMarks, left_out_note
from merilo.rendering.wording import HUMAN_LABELS, REMARKS, count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.runs.run import Run
    from merilo.stats.correction import Correction


def run_notes(run: Run, corrections: Mapping[str, Correction]) -> list[ComparisonNotes]:
    """Return the notes in groups; groups without an entry are left out."""
    manifest, name = run.manifest, WeakMarks.of(run.manifest).name
    aggregates = corrected_aggregates(tuple(run.metrics.values()), corrections)
    # samples that a composite lacks are listed at its parts
    missing = [each for each in aggregates if not each.parts and (each.undefined or each.failed)]
    groups = (
        ("How to read the numbers", [("means and intervals", basis_text(run, corrections))]),
        (HUMAN_LABELS, [(name(metric), text) for metric, text in label_rows(corrections)]),
        (counts_heading(corrections), [(name(each.metric), counts_text(each.counts)) for each in aggregates]),
        ("Not scored (excluded from the means)", [(name(each.metric), missing_text(each)) for each in missing]),
        (REMARKS, [(each.metric, each.remark) for each in aggregates]),
        ("No interval", [(each.metric, each.note) for each in aggregates if each.scored]),
        ("Left out", list(manifest.left_out.items())),
        ("This run", [*_made_by(run), ("data", "; ".join(manifest.notes)), ("skipped", _skipped(run))]),
    )
    return with_entries(groups)


def basis_text(run: Run, corrections: Mapping[str, Correction]) -> str:
    """Return what the intervals cover, which metrics are better if lower, averaged or weak, and what was left out."""
    aggregates = corrected_aggregates(tuple(run.metrics.values()), corrections)
    corrected = {text for text, each in corrections.items() if each.estimate is not None}
    covered = intervals_text(aggregates, run.manifest.cluster, corrected=corrected, origin=run.manifest.origin)
    weak = WeakMarks.of(run.manifest).legend(each.metric for each in aggregates)
    parts = (less_is_better(run.manifest, aggregates), averaging(aggregates), weak, left_out_note(run.manifest))
    return " ".join(filter(None, (*parts, covered)))


def _made_by(run: Run) -> list[tuple[str, str]]:
    if run.manifest.origin is not None:
        return [("scores", f"imported from {run.manifest.origin}; no judge was asked")]
    judge = "; ".join(filter(None, (judge_name(run), agreement(run))))
    return [("judge", judge), ("cost", spent_text(run.usage))]


def _skipped(run: Run) -> str:
    skipped = run.manifest.skipped
    return count(len(skipped), "invalid record") if skipped else ""
