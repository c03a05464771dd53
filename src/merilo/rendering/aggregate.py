"""One metric's aggregate: as a JSON object, and which direction is the good one."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from merilo.rendering.correction import correction_record
from merilo.rendering.sanitize import clean
from merilo.runs.scales import recorded_scale

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.runs.run import Aggregate, Manifest
    from merilo.stats.correction import Correction


def less_is_better(manifest: Manifest, aggregates: Sequence[Aggregate]) -> str:
    """Which of the run's metrics are better the lower they are, as a sentence; empty where none is."""
    names = [each.metric for each in aggregates if not recorded_scale(manifest, each.metric).higher_is_better]
    return f"Less is better: {', '.join(map(clean, names))}." if names else ""


def weak_with_judge(manifest: Manifest, aggregates: Sequence[Aggregate]) -> str:
    """Which of the run's metrics the judge itself calls weak, as a sentence; empty where it names none."""
    named = manifest.judges.get("judge", {}).get("weak")
    weak = [each.metric for each in aggregates if isinstance(named, list) and each.metric in named]
    return f"Weak with this judge, as it says below: {', '.join(map(clean, weak))}." if weak else ""


def aggregate_record(aggregate: Aggregate, correction: Correction | None) -> dict[str, Any]:  # Any: JSON
    """The aggregate as a JSON-able object; `correction` is what labels of people make of its mean."""
    shares = aggregate.shares.items()
    return {
        "mean": aggregate.mean,
        "interval": _listed(aggregate.interval),
        "level": aggregate.level,
        "method": aggregate.method,
        "seed": aggregate.seed,
        "clusters": aggregate.clusters,
        "remark": aggregate.remark,
        "bounds": _listed(aggregate.bounds),
        "bounds_with_undefined": _listed(aggregate.bounds_with_undefined),
        "scored": aggregate.scored,
        "undefined": aggregate.undefined,
        "failed": aggregate.failed,
        "counts": dict(aggregate.counts),
        "shares": {name: {**asdict(share), "interval": _listed(share.interval)} for name, share in shares},
        "reasons": dict(aggregate.reasons),
        "note": aggregate.note,
        "flagged": aggregate.flagged,
        "flags": dict(aggregate.flags),
        "made_of": list(aggregate.parts),
        "correction": None if correction is None else correction_record(correction),
    }


def missing_text(aggregate: Aggregate) -> str:
    """How many samples are undefined and failed, and why: `2 undefined, 1 failed: the response is blank (2); ...`."""
    missing = aggregate.undefined + aggregate.failed
    parts = [("undefined", aggregate.undefined), ("failed", aggregate.failed)]
    reasons = [f"{reason.rstrip('.')} ({amount:,})" for reason, amount in aggregate.reasons.items()]
    if (others := missing - sum(aggregate.reasons.values())) > 0:
        reasons.append(f"other reasons ({others:,})")
    return f"{', '.join(f'{amount:,} {name}' for name, amount in parts if amount)}: {'; '.join(reasons)}"


def _listed(ends: tuple[float | None, float | None] | None) -> list[float | None] | None:
    return None if ends is None else list(ends)
