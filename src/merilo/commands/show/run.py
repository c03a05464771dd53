"""The aggregates of a finished run with other clusters, another level or another treatment of undefined samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from merilo.errors import UsageError
from merilo.results.early_stopping import stop_of
from merilo.results.recomputed import Recomputed
from merilo.results.scores import read_scores
from merilo.runs.run import ByMetric
from merilo.stats.compare import Policy
from merilo.stats.intervals import LEVEL

if TYPE_CHECKING:
    from pathlib import Path

    from merilo.runs.manifest import Aggregate
    from merilo.runs.run import Run


def summarise(
    run: Run | str | Path, *, cluster: str | None = None, level: float = LEVEL, undefined: Policy | str = Policy.DROP
) -> ByMetric[Aggregate]:
    """Return the aggregates of a run computed from its outcomes; by default equal to `Run.metrics`, up to rounding.

    `cluster`: as in `read_scores`. `undefined`: leave undefined samples out, or count them as the worst value.
    Raises UsageError for a level outside (0, 1), and for "worst" if a metric's range has no worst value.
    """
    if not 0 < level < 1:
        raise UsageError(f"The confidence level must be between 0 and 1, got {level}; write 0.95 for 95 %.")
    if undefined not in set(Policy):
        raise UsageError(f"undefined must be drop (left out) or worst (counted as worst), got {undefined!r}.")
    scores = read_scores(run, cluster=cluster, with_counts=True)
    recomputed = Recomputed(scores, level, Policy(undefined))
    found = {
        text: recomputed.composite(stored) if stored.parts else recomputed.metric(stored)
        for text, stored in scores.run.metrics.items()
    }
    if (stop := stop_of(scores.run.manifest)) is not None:
        found = {text: recomputed.after_stopping(each, stop) for text, each in found.items()}
    return ByMetric(found)
