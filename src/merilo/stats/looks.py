"""Confidence levels for a decision that may be made at several planned looks at growing data."""

from __future__ import annotations

from functools import lru_cache
from math import e, log, sqrt
from typing import TYPE_CHECKING

from merilo.stats.distributions import normal_cdf, normal_cdfs, normal_quantile, root
from merilo.stats.intervals import LEVEL, check_level

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

_POINTS = 601
_LOWEST = -8.0
"""Standard deviations below which a path has no weight."""


LABEL_LOOKS = (40, 80, 160, 320)
"""Labelled samples after which `merilo label --until-decided` looks whether the labels decide."""


def level_at_look(labelled: int, level: float = LEVEL) -> float:
    """Return the two-sided level of an interval for labels that were given until they decided.

    `labelled`: labelled samples; the level is that of the last planned look (`LABEL_LOOKS`) they reach, or of the
    first. The intervals of all looks together then have confidence `level`.
    """
    fractions = [each / LABEL_LOOKS[-1] for each in LABEL_LOOKS]
    reached = sum(each <= labelled for each in LABEL_LOOKS)
    return 2 * look_levels(fractions, (1 + level) / 2)[max(reached, 1) - 1] - 1


def look_levels(fractions: Sequence[float], level: float = LEVEL) -> tuple[float, ...]:
    """Return the one-sided confidence level of a limit at each planned look.

    `fractions`: of the planned data that each look has, increasing, in (0, 1]. With these levels a limit is wrong at
    one look or another with a probability of at most 1 - level, so the first look that decides may decide.

    Pocock-like alpha spending: by the fraction t, (1 - level) · ln(1 + (e - 1) · t) is spent. It lets early looks
    decide, as each label costs a person's time. The boundaries are exact for a normal mean with independent
    increments, by recursive integration. Sources: Lan & DeMets, Biometrika 70 (1983); Armitage, McPherson & Rowe,
    JRSS A 132 (1969). Raises ValueError for other fractions.
    """
    check_level(level)
    if not fractions or any(not 0 < each <= 1 for each in fractions) or list(fractions) != sorted(set(fractions)):
        raise ValueError(f"Looks need increasing fractions above 0 and at most 1, got {list(fractions)}.")
    return _levels(tuple(fractions), level)


@lru_cache(maxsize=32)
def _levels(fractions: tuple[float, ...], level: float) -> tuple[float, ...]:
    import numpy as np

    found: list[float] = []
    spent = before = 0.0
    # The density of the sum so far among the paths that have not crossed, on a grid; at the start all are at 0.
    grid, density = np.zeros(1), np.ones(1)
    for fraction in fractions:
        target = (1 - level) * log(1 + (e - 1) * fraction)
        step, scale = sqrt(fraction - before), sqrt(fraction)
        bound = _boundary(grid, density, step, scale, target - spent)
        found.append(normal_cdf(bound))
        points = np.linspace(_LOWEST * scale, bound * scale, _POINTS)
        moved = (points[:, None] - grid[None, :]) / step
        kernel = np.exp(-0.5 * moved**2) / (step * sqrt(2 * np.pi))
        width = (points[-1] - points[0]) / (_POINTS - 1)
        weights = np.full(_POINTS, width)
        weights[[0, -1]] /= 2  # trapezoid rule
        grid, density, spent, before = points, (kernel @ density) * weights, target, fraction
    return tuple(found)


def _boundary(grid: NDArray[np.float64], density: NDArray[np.float64], step: float, scale: float, mass: float) -> float:
    """Return the boundary, in standard deviations, that paths cross at this look with the probability `mass`."""

    def excess(bound: float) -> float:
        return float(density @ normal_cdfs((grid - bound * scale) / step)) - mass

    return root(excess, 0.0, 10.0) if excess(0.0) > 0 else normal_quantile(0.5)
