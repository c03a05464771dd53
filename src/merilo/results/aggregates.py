"""Builds the aggregate of a metric or composite: for a run while it streams, and for a finished run from its columns.

Both forms of input end here: `summary` sums outcomes up as they arrive, `recomputed` reads columns of a finished run.
"""

from __future__ import annotations

from dataclasses import replace
from math import fsum, isfinite
from typing import TYPE_CHECKING, TypedDict

from merilo.judging.digests import digest_of
from merilo.results.shares import ends
from merilo.stats.bootstrap import percentile_interval
from merilo.stats.column import bounds
from merilo.stats.intervals import LEVEL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from merilo.metrics.base import Composite
    from merilo.runs.manifest import Aggregate, Share
    from merilo.stats.intervals import Interval
    from merilo.stats.means import MeanEstimate


def with_estimate(
    aggregate: Aggregate,
    estimate: MeanEstimate,
    span: tuple[float, float],
    *,
    shares: Mapping[str, Share],
    level: float = LEVEL,
) -> Aggregate:
    """Return a metric's aggregate with this mean and interval, and with the bounds for the outcomes without a score.

    `aggregate`: provides the numbers of undefined and failed outcomes, and all that does not depend on the mean.
    """
    scored, failed, undefined = estimate.units, aggregate.failed, aggregate.undefined
    limits = bounds(estimate.value, span, scored=scored, failed=failed, undefined=undefined)
    return replace(
        aggregate,
        mean=estimate.value,
        scored=scored,
        level=level,
        bounds=limits.failed,
        bounds_with_undefined=limits.undefined,
        clusters=estimate.clusters,
        shares=shares,
        **_interval_fields(estimate.interval),
    )


def with_composite(
    aggregate: Aggregate,
    columns: Sequence[Sequence[float]],
    combine: Callable[[Sequence[float]], float | None],
    *,
    seed: int,
    clusters: Sequence[int] | None,
    level: float = LEVEL,
) -> Aggregate:
    """Return a composite's aggregate with the value of these columns; unchanged if their means give none.

    `columns`: the scores of each part, one for every sample. `clusters`: the number of each sample's cluster.
    """
    samples = len(columns[0])
    value = combine([fsum(column) / samples for column in columns])
    if value is None:
        return aggregate
    interval = percentile_interval(columns, combine, seed=seed, clusters=clusters, level=level)
    return replace(
        aggregate,
        mean=value,
        scored=samples,
        undefined=0,
        level=level,
        bounds=(value, value),
        bounds_with_undefined=(value, value),
        clusters=None if clusters is None else len(set(clusters)),
        **_interval_fields(interval),
    )


def composite_seed(fingerprint: str, text: str) -> int:
    """Return a seed derived from the data and the composite, so that its interval is reproducible."""
    return int.from_bytes(digest_of(fingerprint.encode(), text.encode())[:8], "little")


def combined(composite: Composite, means: Sequence[float]) -> float | None:
    """Return the composite's value from the means of its parts; None also if it is infinite or divides by zero."""
    try:
        value = composite.combine(means)
    except ArithmeticError:
        return None
    return value if value is not None and isfinite(value) else None


class _IntervalFields(TypedDict):
    """The fields of an interval in an aggregate."""

    interval: tuple[float, float] | None
    note: str
    remark: str
    method: str | None
    seed: int | None


def _interval_fields(interval: Interval) -> _IntervalFields:
    return {
        "interval": ends(interval),
        "note": interval.note,
        "remark": interval.remark,
        "method": interval.method,
        "seed": interval.seed,
    }
