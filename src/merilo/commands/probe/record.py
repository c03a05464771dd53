"""The results of probes as one JSON object; equal input gives equal bytes, except under `usage`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from merilo.commands.probe.probes import Effect

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.commands.probe.figures import Part, Result
    from merilo.commands.probe.run import ProbeReport

    JSON = dict[str, Any]  # Any: JSON

_DIGITS = 6


def probing_record(found: ProbeReport) -> JSON:
    """Return the results as a JSON-able object; `probes` maps name → effect, its limits and the verdict."""
    wanted = found.wanted
    return {
        "judge": {
            "name": found.judge.name,
            "fingerprint": dict(found.judge.fingerprint()),
            "rates": found.judge.agreement_note,
        },
        "verdict": found.verdict.value,
        "labels": [{"file": each.name, "sha256": each.sha256, "records": each.records} for each in found.files],
        "data": None if wanted.data is None else str(wanted.data),
        "cases": found.cases,
        "sample": wanted.sample,
        "seed": wanted.seed,
        "probes": {result.probe.name: _result(result) for result in found.results},
        "left_out": dict(found.left_out),
        "stopped": found.stopped,
        "usage": dict(found.usage),
    }


def _result(result: Result) -> JSON:
    ends = result.interval.ends
    record: JSON = {
        "summary": result.probe.summary,
        "effect": result.probe.effect.value,
        "value": _short(result.value),
        "interval": None if ends is None else [_short(end) for end in ends],
        "lower": _short(result.limits.lower),
        "upper": _short(result.limits.upper),
        "limit": result.limit,
        "verdict": result.verdict.value,
        "trials": result.trials,
        "counted": result.counted,
        "unfit": result.unfit,
        "failed": result.failed,
    }
    for name in ("note", "remark"):
        if text := getattr(result.interval, name):
            record[name] = text
    if result.probe.effect is Effect.NET:
        record |= {"changed_by_it": _short(result.changed), "changed_by_neutral_text": _short(result.neutral)}
    record["by_kind"] = _parts(result.by_kind)
    if result.by_language is not None:
        record["by_language"] = _parts(result.by_language)
    return record


def _parts(parts: Mapping[str, Part] | None) -> JSON:
    return {name: {"trials": each.trials, "value": _short(each.value)} for name, each in (parts or {}).items()}


def _short(value: float | None) -> float | None:
    """Round to six digits, as further digits differ between machines."""
    return None if value is None else round(value, _DIGITS) + 0.0
