"""A check as one JSON object; equal input gives equal bytes, except under `usage`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from merilo.commands.check.tables import MIN_OF_EACH, MIN_POOLED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.commands.check.run import Check
    from merilo.commands.check.tables import Figures, TaskTable
    from merilo.stats.agreement import Calibration, Confusion
    from merilo.stats.resampling import Measurement

    JSON = dict[str, Any]  # Any: JSON

_DIGITS = 6


def check_record(check: Check) -> JSON:
    """Return the check as a JSON-able object.

    `people` and `all` (null if records with rule-generated labels were skipped) map task → source → figures. `tasks`
    contains the figures over all sources of a task, except those marked `seen`.
    """
    return {
        "judge": {
            "name": check.judge.name,
            "fingerprint": dict(check.judge.fingerprint()),
            "rates": check.judge.agreement_note,
        },
        "labels": [{"file": each.name, "sha256": each.sha256, "records": each.records} for each in check.files],
        "constructed": {"records": check.constructed, "included": check.everything is not None},
        "rules": {
            "macro": f"mean over sources with at least {MIN_OF_EACH} of yes and of no",
            "clusters": "records of one source that share a query or a text are drawn together",
            "resampling": {
                "seed": check.resampling.seed,
                "resamples": check.resampling.resamples,
                "level": check.resampling.level,
            },
        },
        "people": _sources(check.people),
        "all": None if check.everything is None else _sources(check.everything),
        "tasks": {
            "people": _tasks(check.people),
            "all": None if check.everything is None else _tasks(check.everything),
        },
        "left_out": dict(check.left_out),
        "stopped": check.stopped,
        "usage": {task: {source: dict(each) for source, each in own.items()} for task, own in check.usage.items()},
    }


def _sources(tables: Sequence[TaskTable]) -> JSON:
    return {table.reading.name: {source: _figures(each) for source, each in table.sources.items()} for table in tables}


def _tasks(tables: Sequence[TaskTable]) -> JSON:
    return {
        table.reading.name: {
            "rule": table.reading.rule,
            "sources": [name for name, each in table.sources.items() if each.counts],
            "macro": {name: measured(each) for name, each in table.macro.items()},
            "pooled": _figures(table.pooled),
            "calibration": _calibration(table),
            "languages": {name: _figures(each) for name, each in table.languages.items()},
        }
        for table in tables
    }


def measured(each: Measurement) -> JSON:
    """Return a measure with its interval; `note`: why there is no interval, `remark`: a caveat on it."""
    ends = each.interval.ends
    record: JSON = {
        "value": _short(each.value),
        "interval": None if ends is None else [_short(end) for end in ends],
    }
    for name in ("note", "remark"):
        if text := getattr(each.interval, name):
            record[name] = text
    return record


def _figures(figures: Figures) -> JSON:
    found = figures.agreement
    record: JSON = {
        **({"seen": True} if figures.seen else {}),
        "n": found.items,
        "records": figures.records,
        "clusters": found.clusters,
        "yes": found.yes,
        "in_macro": figures.counts,
        "kappa": measured(found.kappa),
        "balanced_accuracy": measured(found.balanced_accuracy),
        "auroc": measured(found.auroc),
        "ece": measured(found.calibration_error) | _perfect(found.calibration),
        "undefined": {"count": figures.without, "failed": figures.failed} | measured(figures.undefined),
        "accuracy": measured(found.accuracy),
        "sensitivity": measured(found.sensitivity),
        "specificity": measured(found.specificity),
        "ac1": measured(found.ac1),
        "alpha": measured(found.alpha),
        "confusion": _confusion(found.confusion, ("no", "yes")),
    }
    if figures.grades is not None:
        record["grades"] = {
            "kappa_quadratic": measured(figures.grades.kappa),
            "kappa_linear": measured(figures.grades.kappa_linear),
            "alpha_ordinal": measured(figures.grades.alpha),
            "confusion": _confusion(figures.grades.confusion, figures.grades.confusion.labels),
        }
    if figures.systems is not None:
        record["systems_tau_b"] = measured(figures.systems)
    if figures.annotators is not None:
        record["annotators"] = {
            "items": figures.annotators.items,
            "ratings": figures.annotators.ratings,
            "alpha_ordinal": measured(figures.annotators.alpha),
            "ac1": measured(figures.annotators.ac1),
        }
    return record


def _perfect(found: Calibration | None) -> JSON:
    """Return the calibration error of a perfectly calibrated judge on as many items: its mean and 95 % quantile."""
    if found is None:
        return {"perfect": None, "perfect_95": None}
    return {"perfect": _short(found.perfect), "perfect_95": _short(found.perfect_high)}


def _calibration(table: TaskTable) -> JSON | None:
    """Return the bins of the task, pooled over its sources; None if the judge gives no probability."""
    found = table.pooled.agreement.calibration
    if found is None:
        return None
    record: JSON = measured(table.pooled.agreement.calibration_error) | _perfect(found)
    record["n"] = table.pooled.agreement.with_probability
    if record["n"] < MIN_POOLED:
        record["remark"] = f"fewer than {MIN_POOLED:,} items"
    record["bins"] = [
        {"n": each.items, "probability": _short(each.probability), "observed": _short(each.observed)}
        for each in found.bins
    ]
    return record


def _confusion(found: Confusion, labels: Sequence[object]) -> JSON:
    """Return the counts; rows are human labels, columns the judge's."""
    return {"labels": list(labels), "counts": [list(row) for row in found.counts]}


def _short(value: float | None) -> float | None:
    """Round to six digits, as further digits differ between machines."""
    return None if value is None else round(value, _DIGITS)
