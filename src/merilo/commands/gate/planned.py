"""The gates of a run that could stop at planned looks: each decides at the first look that decides."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from merilo.rendering.wording import count
from merilo.stats.planned import planned_drop, planned_minimum

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.commands.gate.pairing import PairedRuns
    from merilo.commands.gate.result import Gate
    from merilo.commands.gate.suite import Suite
    from merilo.results.planned_stopping import PlannedStop
    from merilo.results.scores import RunScores
    from merilo.stats.compare import Policy
    from merilo.stats.planned import Looked


def minimum_at_looks(
    scores: RunScores, text: str, asked: float, planned: PlannedStop, *, policy: Policy | None, level: float
) -> Looked:
    """Return the decision on a minimum, at the level of the look that it was made at."""
    looks = planned.looks.reached(len(scores.ids), level)
    return planned_minimum(scores.columns[text], asked, looks, clusters=scores.clusters, undefined=policy)


def drop_at_looks(
    pair: PairedRuns, text: str, asked: float, planned: PlannedStop, *, policy: Policy | None, suite: Suite
) -> Looked:
    """Return the decision on a drop, at the level of the look that it was made at."""
    looks = [
        look._replace(size=bisect_left(pair.run_places, look.size))  # pairs among the samples of that look
        for look in planned.looks.reached(pair.run_samples, suite.level)
    ]
    return planned_drop(
        pair.base.columns[text],
        pair.new.columns[text],
        asked,
        looks,
        strict=suite.strict,
        clusters=pair.new.clusters,
        undefined=policy,
    )


def looks_note(planned: PlannedStop, gates: Sequence[Gate], level: float) -> str:
    """Return a sentence on the looks at which the gates decided, and their levels."""
    unit = "sample" if planned.cluster is None else "cluster"
    levels = planned.looks.levels(level)
    used = sorted({gate.look for gate in gates})
    listed = ", ".join(
        f"look {number} (after {count(planned.looks.units[number - 1], unit)}, level {levels[number - 1]:.4f})"
        for number in used
    )
    return (
        f"The run could stop at {count(len(levels), 'planned look')}. Limits are those of {listed}, so that all looks "
        f"together have level {level:g}."
    )
