"""Predict what a watch finds: delays of drops of a mean, and the smallest change of a judge."""

from __future__ import annotations

from collections import Counter
from functools import partial
from math import comb, exp, fsum
from typing import TYPE_CHECKING

from merilo.stats.distributions import root
from merilo.stats.drift import DriftDetector
from merilo.stats.exchange import Anchor, exchange_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.stats.drift import Line

_STREAMS = 100
_QUIET_DAYS = 5
"""Days before the drop, in which evidence reaches its usual level."""
_STEEPEST = 60.0
POWER = 0.95


def lowered(scores: Sequence[float], drop: float) -> dict[float, float]:
    """Return the probability of each score after a drop of the mean: p(y) · exp(-slope · y), scaled to sum to 1."""
    counts = Counter(scores)
    target = fsum(scores) / len(scores) - drop

    def tilted(slope: float) -> dict[float, float]:
        parts = {score: count * exp(-slope * score) for score, count in counts.items()}
        total = fsum(parts.values())
        return {score: part / total for score, part in parts.items()}

    if not min(counts) < target:
        raise ValueError(f"No drop of {drop}: the mean would be {target}, and the lowest score is {min(counts)}.")
    slope = root(lambda at: fsum(score * p for score, p in tilted(at).items()) - target, 0.0, _STEEPEST)
    return tilted(slope)


def delays(
    scores: Sequence[float], line: Line, drop: float, *, alpha: float, per_day: int, limit: int, seed: int = 0
) -> list[int]:
    """Return the judged units from a drop to its alarm in 100 simulated streams, ascending; `limit` if not by then.

    `scores`: those of the reference; the drop is `lowered`. `line` does not rise. `per_day`: judged units a day.
    """
    import numpy as np

    source, after, found = np.random.default_rng(seed), lowered(scores, drop), list[int]()
    for _ in range(_STREAMS):
        detector, count = DriftDetector.of(line.variance, line.value), 0
        quiet = source.choice(list(scores), _QUIET_DAYS * per_day).tolist()
        fallen = source.choice(list(after), limit, p=list(after.values())).tolist()
        for count, score in enumerate(quiet + fallen):
            if count % per_day == 0:
                detector.start(1 / 365)
            detector.add(score, line.value)
            if detector.value >= 1 / alpha and count >= _QUIET_DAYS * per_day:
                break
        found.append(count + 1 - _QUIET_DAYS * per_day)
    return sorted(found)


def smallest_change(anchors: int, *, weight: float, alpha: float) -> float | None:
    """Return the smallest fraction of flipped answers that one pass finds with 95 %; None if it finds no change.

    For anchors with three old and three new answers of 0 or 1, and a judge that repeats its answers. `weight`: that of
    the pass.
    """
    flipped, same = Anchor((1.0,) * 3, (0.0,) * 3), Anchor((1.0,) * 3, (1.0,) * 3)
    for needed in range(1, anchors + 1):
        if weight * exchange_value([flipped] * needed + [same] * (anchors - needed)) >= 1 / alpha:
            return root(partial(_missed, needed, anchors), 0.0, 1.0)
    return None


def _missed(needed: int, anchors: int, p: float) -> float:
    """Return the probability of fewer than `needed` successes, less the one that is allowed."""
    return fsum(comb(anchors, k) * p**k * (1 - p) ** (anchors - k) for k in range(needed)) - (1 - POWER)
