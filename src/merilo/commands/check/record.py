"""The results of `merilo judge check` as one JSON object; equal input gives equal bytes, except under `usage`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from merilo.commands.check.probes import Effect
from merilo.commands.check.tables import MIN_OF_EACH, MIN_POOLED
from merilo.metrics.base import Failed, Score
from merilo.results.records import picked

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.commands.check.probes import Part, Result
    from merilo.commands.check.run import JudgeCheck
    from merilo.commands.check.tables import Figures, TaskTable
    from merilo.metrics.base import Outcome
    from merilo.stats.agreement import Calibration, Confusion
    from merilo.stats.intervals import Interval
    from merilo.stats.resampling import Measurement

    JSON = dict[str, Any]  # Any: JSON

_DIGITS = 6


def check_record(check: JudgeCheck) -> JSON:
    """Return a check as a JSON-able object.

    `people` maps task → source → figures. `tasks` contains the figures over all sources of a task, except those marked
    `seen`. `probes` maps an edit → its effect, the limits of the effect and the verdict.
    """
    tables = check.tables.values()
    return {
        "judge": {
            "name": check.judge.name,
            "fingerprint": dict(check.judge.fingerprint()),
            "rates": check.judge.agreement_note,
        },
        "against": check.against,
        "works": check.works,
        "kinds": {kind: _trial(each) for kind, each in check.kinds.items()},
        **({} if check.golden is None else {"golden": {"pairs": check.golden.pairs, "agree": check.golden.agree}}),
        "verdict": check.verdict.value,
        "labels": [each._asdict() for each in check.files],
        "constructed": {"records": check.constructed, "included": False},
        "rules": {
            "macro": f"mean over sources with at least {MIN_OF_EACH} of yes and of no",
            "clusters": "records of one source that share a query or a text are drawn together",
            "resampling": picked(check.resampling, "seed resamples level"),
        },
        "people": {each.name: {name: _figures(own) for name, own in each.sources.items()} for each in tables},
        "tasks": {"people": {each.name: _task(each) for each in tables}},
        "cases": check.cases,
        "probes": {result.probe.name: _effect(result) for result in check.edits},
        **picked(check, "left_out stopped usage"),
    }


def _trial(outcome: Outcome) -> JSON:
    if isinstance(outcome, Score):
        return {"works": True, "verdict": outcome.evidence[0].verdict.to_fields()}
    return {"works": False, "failure": outcome.error.to_fields() if isinstance(outcome, Failed) else None}


def _task(table: TaskTable) -> JSON:
    record: JSON = {
        "rule": table.reading.rule,
        "sources": [name for name, each in table.sources.items() if each.counts],
        "macro": {name: _measured(each) for name, each in table.macro.items()},
        "pooled": _figures(table.pooled),
        "calibration": _calibration(table),
        "languages": {name: _figures(each) for name, each in table.languages.items()},
    }
    if table.difference is not None:
        record["against"] = {"kappa": _measured(table.difference), "verdict": table.verdict}
    return record


def _measured(each: Measurement) -> JSON:
    return {"value": _short(each.value)} | _interval(each.interval)


def _interval(interval: Interval) -> JSON:
    """Return an interval; `note`: why there is none, `remark`: a caveat on it."""
    record: JSON = {"interval": None if interval.ends is None else [_short(end) for end in interval.ends]}
    return record | {name: text for name in ("note", "remark") if (text := getattr(interval, name))}


def _figures(figures: Figures) -> JSON:
    found = figures.agreement
    measures = ("accuracy", "sensitivity", "specificity", "ac1", "alpha")
    record: JSON = {
        **({"seen": True} if figures.seen else {}),
        "n": found.items,
        "records": figures.records,
        "clusters": found.clusters,
        "yes": found.yes,
        "in_macro": figures.counts,
        "kappa": _measured(found.kappa),
        "balanced_accuracy": _measured(found.balanced_accuracy),
        "auroc": _measured(found.auroc),
        "ece": _measured(found.calibration_error) | _perfect(found.calibration),
        "undefined": {"count": figures.without, "failed": figures.failed} | _measured(figures.undefined),
        **{name: _measured(getattr(found, name)) for name in measures},
        "confusion": _confusion(found.confusion, ("no", "yes")),
    }
    if figures.grades is not None:
        record["grades"] = {
            "kappa_quadratic": _measured(figures.grades.kappa),
            "kappa_linear": _measured(figures.grades.kappa_linear),
            "alpha_ordinal": _measured(figures.grades.alpha),
            "confusion": _confusion(figures.grades.confusion, figures.grades.confusion.labels),
        }
    return record


def _perfect(found: Calibration | None) -> JSON:
    """Return the calibration error of a perfectly calibrated judge on as many items: its mean and 95 % quantile."""
    if found is None:
        return {"perfect": None, "perfect_95": None}
    return {"perfect": _short(found.perfect), "perfect_95": _short(found.perfect_high)}


def _calibration(table: TaskTable) -> JSON | None:
    """Return the bins of the task, pooled over its sources; None if the judge gives no probability."""
    agreement = table.pooled.agreement
    found, size = agreement.calibration, agreement.with_probability
    if found is None:
        return None
    few = {"remark": f"fewer than {MIN_POOLED:,} items"} if size < MIN_POOLED else {}
    bins = [
        {"n": each.items, "probability": _short(each.probability), "observed": _short(each.observed)}
        for each in found.bins
    ]
    return _measured(agreement.calibration_error) | _perfect(found) | {"n": size} | few | {"bins": bins}


def _confusion(found: Confusion, labels: Sequence[object]) -> JSON:
    """Return the counts; rows are human labels, columns the judge's."""
    return {"labels": list(labels), "counts": [list(row) for row in found.counts]}


def _effect(result: Result) -> JSON:
    record: JSON = {
        "summary": result.probe.shown,
        "effect": result.probe.effect.value,
        "value": _short(result.value),
        **_interval(result.interval),
        "lower": _short(result.lower),
        "upper": _short(result.upper),
        "limit": result.probe.limit,
        **picked(result, "verdict trials counted unfit failed"),
    }
    if result.probe.effect is Effect.NET:
        changed = None if result.value is None or result.neutral is None else result.value + result.neutral
        record |= {"changed_by_it": _short(changed), "changed_by_neutral_text": _short(result.neutral)}
        record |= picked(result, "turned obeys")
    record["by_kind"] = _parts(result.by_kind)
    if result.by_language is not None:
        record["by_language"] = _parts(result.by_language)
    return record


def _parts(parts: Mapping[str, Part] | None) -> JSON:
    return {name: {"trials": each.trials, "value": _short(each.value)} for name, each in (parts or {}).items()}


def _short(value: float | None) -> float | None:
    """Round to six digits, as further digits differ between machines."""
    return None if value is None else round(value, _DIGITS) + 0.0
