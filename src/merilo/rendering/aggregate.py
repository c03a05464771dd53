"""The aggregate of one metric: as a JSON object, and the notes on it that pages share."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from merilo.rendering.correction import correction_record
from merilo.rendering.sanitize import clean
from merilo.rendering.wording import count, number, span
from merilo.results.basis import basis_of
from merilo.runs.scales import recorded_scale

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.runs.manifest import Aggregate, Manifest, Share
    from merilo.stats.correction import Correction


def less_is_better(manifest: Manifest, aggregates: Sequence[Aggregate]) -> str:
    """Return a sentence that names the run's metrics with lower scores as better; empty if there are none."""
    names = [each.metric for each in aggregates if not recorded_scale(manifest, each.metric).higher_is_better]
    return f"Lower is better: {', '.join(map(clean, names))}." if names else ""


def averaging(aggregates: Sequence[Aggregate], *, width: int | None = None) -> str:
    """Return a sentence that names the metrics that average the judge's probabilities; empty if there are none.

    `width`: a longer sentence only counts the metrics; None for no limit.
    """
    names = [clean(each.metric) for each in aggregates if each.averaged]
    if not names:
        return ""
    found = f"Averages of the judge's probabilities: {', '.join(names)}."
    if width is None or len(found) <= width:
        return found
    return f"Averages of the judge's probabilities: {len(names)} of {count(len(aggregates), 'metric')} (merilo show)."


def aggregate_record(aggregate: Aggregate, correction: Correction | None, *, weak: bool) -> dict[str, Any]:  # Any: JSON
    """Return the aggregate as a JSON-able object.

    `correction`: the correction of its mean by human labels. `weak`: True if the metric is weak with the judge.
    """
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
        "averaged": aggregate.averaged,
        "made_of": list(aggregate.parts),
        "weak": weak,
        "basis": basis_of(aggregate.metric, corrected=correction is not None and correction.estimate is not None).value,
        "correction": None if correction is None else correction_record(correction),
    }


def share_text(share: Share) -> str:
    """Return a share with its interval, or with the reason that there is none."""
    return f"{number(share.value)} ({share.note if share.interval is None else span(share.interval)})"


def missing_text(aggregate: Aggregate) -> str:
    """Return the numbers of undefined and failed samples with their reasons.

    Example: `2 undefined, 1 failed: the response is blank (2); ...`.
    """
    missing = aggregate.undefined + aggregate.failed
    parts = [("undefined", aggregate.undefined), ("failed", aggregate.failed)]
    reasons = [f"{reason.rstrip('.')} ({amount:,})" for reason, amount in aggregate.reasons.items()]
    if (others := missing - sum(aggregate.reasons.values())) > 0:
        reasons.append(f"other reasons ({others:,})")
    return f"{', '.join(f'{amount:,} {name}' for name, amount in parts if amount)}: {'; '.join(reasons)}"


def _listed(ends: tuple[float | None, float | None] | None) -> list[float | None] | None:
    return None if ends is None else list(ends)
