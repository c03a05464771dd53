"""A comparison as JSON, as flat records for a data frame, and as the tables that a notebook shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from merilo.commands.compare import wording as words
from merilo.commands.compare.result import Verdict
from merilo.rendering.explain import evidence_groups
from merilo.rendering.frames import frame
from merilo.results.records import picked
from merilo.stats.intervals import LEVEL

SCHEMA = 2
"""Number of the format of the JSON: from 2 on, differences are the run minus the base."""

if TYPE_CHECKING:
    import pandas as pd

    from merilo.commands.compare.result import Moved, Row, RunComparison
    from merilo.stats.compare import Comparison, ExtremeCase
    from merilo.stats.corrected_pairs import ErrorDifference


def comparison_record(found: RunComparison) -> dict[str, Any]:  # Any: JSON
    """Return the comparison as a JSON-able object: `first` is the base, differences are second minus first."""
    return {
        "schema": SCHEMA,
        "verdict": found.verdict.value,
        "conclusion": found.conclusion,
        "runs": [
            {
                "name": side.name,
                "run": str(side.run.path),
                "data": side.run.manifest.data,
                "samples": side.scored,
                "complete": side.complete,
                "not_common": side.absences,
                "not_common_ids": list(side.absent),
            }
            for side in found.sides
        ],
        "level": LEVEL,
        **picked(found, "common other_questions undefined cluster primary by_judge_alone left_out differing"),
        "contexts": [
            {
                "first": found.names[0],
                "second": found.names[each.other],
                "first_mean": each.first,
                "second_mean": each.second,
                "samples": each.samples,
            }
            for each in found.contexts
        ],
        "notes": list(found.notes),
        "comparisons": [_row(found, row) for row in found.rows],
        **picked(found, "moved_by movers"),
        "moved": [_moved(found, each) for each in found.moved],
    }


def flat_row(found: RunComparison, row: Row) -> dict[str, object]:
    """Return one comparison as a flat record, without nested values; the interval's ends are `low` and `high`."""
    record = _row(found, row)
    low, high = record.pop("interval") or (None, None)
    for name in ("least", "most", "one_sided_ids", "labels", "same_contexts", "judge_errors"):
        record.pop(name)
    return {**record, "low": low, "high": high}


def _row(found: RunComparison, row: Row) -> dict[str, Any]:  # Any: JSON
    each, counts = row.comparison, row.comparison.counts
    better = {Verdict.BETTER: found.names[row.other], Verdict.WORSE: found.names[0]}
    return {
        **picked(row, "metric weak basis"),
        "first": found.names[0],
        "second": found.names[row.other],
        "higher_is_better": row.higher_is_better,
        "primary": row.verdict is not None,
        "verdict": None if row.verdict is None else row.verdict.value,
        "reason": row.reason or None,
        "unchecked": row.unchecked,
        "first_mean": row.base_mean,
        "second_mean": row.run_mean,
        "difference": each.difference,
        "interval": None if each.interval.ends is None else list(each.interval.ends),
        "method": None if each.interval.method is None else each.interval.method.value,
        "remark": each.interval.remark,
        "p": each.p,
        "p_corrected": each.adjusted,
        "better": better.get(row.verdict or Verdict.NOT_SHOWN),
        "said": ": ".join(filter(None, (words.verdict_text(row), words.why(found, row)))),
        "pairs": counts.pairs,
        "higher": counts.wins,
        "equal": counts.ties,
        "lower": counts.losses,
        "standardised": each.standardised,
        "p_first_higher": None if each.superiority is None else 1 - each.superiority,
        "detectable": each.detectable,
        "clusters": each.clusters,
        **picked(counts, "first_undefined second_undefined first_failed second_failed"),
        "scored_in_one_only": counts.left_out,
        "scored_in_none": counts.neither,
        "one_sided_ids": list(row.one_sided),
        "least": _extreme(each.least),
        "most": _extreme(each.most),
        "labels": _labels(each),
        "same_contexts": _same_contexts(row.same_contexts),
        "judge_errors": None if row.errors is None else _errors(found, row, row.errors),
    }


def _same_contexts(each: Comparison | None) -> dict[str, Any] | None:  # Any: JSON
    """Return the comparison over the same number of contexts; None if there is none."""
    if each is None:
        return None
    return {
        "first_mean": each.second,
        "second_mean": each.first,
        "difference": each.difference,
        "interval": None if each.interval.ends is None else list(each.interval.ends),
        "p": each.p,
        "pairs": each.counts.pairs,
    }


def _labels(each: Comparison) -> dict[str, Any] | None:  # Any: JSON
    """Return the labelled pairs and the numbers by the judge alone; None without labels."""
    if each.correction is None:
        return None
    alone = each.correction.judged
    means = each.by_judge or (each.first, each.second)
    return {
        "labelled": each.correction.labelled,
        "human_difference": each.correction.human,
        "tuning": each.correction.tuning,
        "by_judge": {
            "first_mean": means[1],
            "second_mean": means[0],
            "difference": alone.difference,
            "interval": None if alone.interval.ends is None else list(alone.interval.ends),
            "p": alone.p,
        },
    }


def _errors(found: RunComparison, row: Row, errors: ErrorDifference) -> dict[str, Any]:  # Any: JSON
    """Return the judge's mean errors, judge minus human; `kinder_to`: the run it favours, None if none is shown."""
    kinder = row.kinder_to
    return {
        "first": errors.second,
        "second": errors.first,
        "difference": errors.difference,
        "interval": None if errors.interval.ends is None else list(errors.interval.ends),
        "note": errors.interval.note,
        "labelled": errors.labelled,
        "kinder_to": None if kinder is None else found.names[kinder],
    }


def _extreme(end: ExtremeCase | None) -> dict[str, Any] | None:  # Any: JSON
    if end is None:
        return None
    return {
        "difference": end.difference,
        "interval": None if end.interval.ends is None else list(end.interval.ends),
        "p": end.p,
        "p_corrected": end.adjusted,
    }


def _moved(found: RunComparison, each: Moved) -> dict[str, Any]:  # Any: JSON
    sample = each.cases[0].result.sample
    return {
        "sample": each.sample,
        "user_input": sample.user_input,
        "difference": each.step,
        "runs": [
            {
                "name": name,
                "value": value,
                "verdicts": [
                    {**picked(piece, "about said text"), "evidence": list(piece.quotes)}
                    for piece in evidence_groups(case, found.moved_by or "")
                ],
            }
            for name, value, case in zip(found.names, each.values, each.cases, strict=True)
        ],
    }


def comparison_frame(comparison: RunComparison) -> pd.DataFrame:
    """Return one row for each metric and other run. Raises UsageError if pandas is not installed."""
    return frame([flat_row(comparison, row) for row in comparison.rows])
