"""A comparison as JSON, as flat records for a data frame, and as the tables that a notebook shows.

In the JSON `first` is the base, and differences are second minus first; in `stats` the run is the first of a pair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from merilo.commands.compare import wording as words
from merilo.commands.compare.result import Verdict
from merilo.rendering.explain import evidence_groups
from merilo.rendering.frames import frame
from merilo.results.records import picked
from merilo.stats.intervals import LEVEL

SCHEMA: Final = 2
"""Number of the format of the JSON: from 2 on, differences are the run minus the base."""
_SIDE: Final = (
    "name run=run.path data=run.manifest.data samples=scored complete not_common=absences not_common_ids=absent"
)
_SAME: Final = "first_mean=second second_mean=first difference interval=interval.ends p pairs=counts.pairs"
_NESTED: Final = ("interval", "least", "most", "one_sided_ids", "labels", "same_contexts", "judge_errors")
"""Fields of a comparison that a flat record leaves out."""

if TYPE_CHECKING:
    import pandas as pd

    from merilo.commands.compare.result import ContextNumbers, Moved, Row, RunComparison
    from merilo.stats.compare import Comparison, ExtremeCase


def comparison_record(found: RunComparison) -> dict[str, Any]:  # Any: JSON
    """Return the comparison as a JSON-able object."""
    return {
        "schema": SCHEMA,
        **picked(found, "verdict conclusion"),
        "runs": [picked(side, _SIDE) for side in found.sides],
        "level": LEVEL,
        **picked(found, "common other_questions undefined cluster primary by_judge_alone left_out differing"),
        "contexts": [_contexts(found, each) for each in found.contexts],
        **picked(found, "notes"),
        "comparisons": [_row(found, row) for row in found.rows],
        **picked(found, "moved_by movers"),
        "moved": [_moved(found, each) for each in found.moved],
    }


def _contexts(found: RunComparison, each: ContextNumbers) -> dict[str, Any]:  # Any: JSON
    names = {"first": found.names[0], "second": found.names[each.other]}
    return {**names, **picked(each, "first_mean=first second_mean=second samples")}


def flat_row(found: RunComparison, row: Row) -> dict[str, object]:
    """Return one comparison as a flat record, without nested values; the interval's ends are `low` and `high`."""
    record = _row(found, row)
    low, high = record["interval"] or (None, None)
    return {**{name: value for name, value in record.items() if name not in _NESTED}, "low": low, "high": high}


def _row(found: RunComparison, row: Row) -> dict[str, Any]:  # Any: JSON
    each, first, second = row.comparison, found.names[0], found.names[row.other]
    better = {Verdict.BETTER: second, Verdict.WORSE: first}
    return {
        **picked(row, "metric weak basis"),
        "first": first,
        "second": second,
        **picked(row, "higher_is_better"),
        "primary": row.verdict is not None,
        **picked(row, "verdict"),
        "reason": row.reason or None,
        **picked(row, "unchecked first_mean=base_mean second_mean=run_mean"),
        **picked(each, "difference interval=interval.ends method=interval.method remark=interval.remark"),
        **picked(each, "p p_corrected=adjusted"),
        "better": better.get(row.verdict or Verdict.NOT_SHOWN),
        "said": ": ".join(filter(None, (words.verdict_text(row), words.why(found, row)))),
        **picked(each, "pairs=counts.pairs higher=counts.wins equal=counts.ties lower=counts.losses standardised"),
        "p_first_higher": None if each.superiority is None else 1 - each.superiority,
        **picked(each, "detectable clusters"),
        **picked(each.counts, "first_undefined second_undefined first_failed second_failed"),
        **picked(each.counts, "scored_in_one_only=left_out scored_in_none=neither"),
        **picked(row, "one_sided_ids=one_sided"),
        "least": _extreme(each.least),
        "most": _extreme(each.most),
        "labels": _labels(each),
        "same_contexts": None if row.same_contexts is None else picked(row.same_contexts, _SAME),
        "judge_errors": _errors(found, row),
    }


def _errors(found: RunComparison, row: Row) -> dict[str, Any] | None:  # Any: JSON
    """Return the judge's mean errors, judge minus human; `kinder_to`: the run it favours, None if none is shown."""
    if row.errors is None:
        return None
    return {
        **picked(row.errors, "first=second second=first difference interval=interval.ends note=interval.note labelled"),
        "kinder_to": None if row.kinder_to is None else found.names[row.kinder_to],
    }


def _labels(each: Comparison) -> dict[str, Any] | None:  # Any: JSON
    """Return the labelled pairs and the numbers by the judge alone; None without labels."""
    if each.correction is None:
        return None
    means = each.by_judge or (each.first, each.second)
    return {
        **picked(each.correction, "labelled human_difference=human tuning"),
        "by_judge": {
            "first_mean": means[1],
            "second_mean": means[0],
            **picked(each.correction.judged, "difference interval=interval.ends p"),
        },
    }


def _extreme(end: ExtremeCase | None) -> dict[str, Any] | None:  # Any: JSON
    if end is None:
        return None
    return picked(end, "difference interval=interval.ends p p_corrected=adjusted")


def _moved(found: RunComparison, each: Moved) -> dict[str, Any]:  # Any: JSON
    return {
        "sample": each.sample,
        "user_input": each.cases[0].result.sample.user_input,
        "difference": each.step,
        "runs": [
            {
                "name": name,
                "value": value,
                "verdicts": [
                    picked(piece, "about said text evidence=quotes")
                    for piece in evidence_groups(case, found.moved_by or "")
                ],
            }
            for name, value, case in zip(found.names, each.values, each.cases, strict=True)
        ],
    }


def comparison_frame(comparison: RunComparison) -> pd.DataFrame:
    """Return one row for each metric and other run. Raises UsageError if pandas is not installed."""
    return frame([flat_row(comparison, row) for row in comparison.rows])
