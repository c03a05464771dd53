"""The error of one comparison of several runs at which all comparisons hold together (design/statistics.md).

Source: the multiplier bootstrap of Chernozhukov, Chetverikov & Kato, Annals of Statistics 41 (2013), for means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.stats.distributions import normal_cdfs
from merilo.stats.intervals import LEVEL, SEED
from merilo.stats.means import FEWEST_DIFFERENT
from merilo.stats.sums import coded, summed

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from merilo.stats.column import Column

DRAWS: Final = 10_000
_NO_ERROR: Final = 1e-9


class Errors(NamedTuple):
    """The errors of the comparisons of K runs, each at most 1 - level."""

    pair: float
    """Two-sided, of each pair: all K (K - 1) / 2 intervals hold together."""
    against: tuple[float, ...]
    """One-sided, by run: the bounds of all others minus this run hold together (Hsu, "Multiple Comparisons", 1996)."""


def simultaneous_errors(
    columns: Sequence[Column],
    clusters: Sequence[Hashable] | None = None,
    *,
    apart: Collection[tuple[int, int]] = (),
    level: float = LEVEL,
) -> Errors:
    """Return the errors at which all comparisons of these runs hold together with probability `level`.

    `columns`: of the same samples, of which those count that all runs scored. `apart`: pairs of places that enter by
    Bonferroni, as labels correct their difference; so do pairs with fewer than six unlike samples.
    """
    import numpy as np

    count, alpha = len(columns), 1 - level
    if count == 2:
        return Errors(alpha, (alpha, alpha))
    shared = np.logical_and.reduce([each.scored for each in columns])
    values = np.stack([each.values[shared] for each in columns], axis=1)
    means = values - values.mean(axis=0) if len(values) else values
    unlike = [(abs(values - column[:, None]) > _NO_ERROR).sum(axis=0) for column in values.T]
    if clusters is not None:
        codes = np.unique(coded(clusters)[shared], return_inverse=True)[1]
        means = np.stack([summed(codes, column) for column in means.T], axis=1)
    units = max(len(means), 2)
    covariance = means.T @ means * (units / (units - 1)) / max(len(values), 1) ** 2
    variances = np.diag(covariance)
    errors = np.sqrt(np.maximum(variances[:, None] + variances - 2 * covariance, 0))
    usable = (np.array(unlike) >= FEWEST_DIFFERENT) & (errors > _NO_ERROR)
    for one, two in apart:
        usable[one, two] = usable[two, one] = False
    weights, vectors = np.linalg.eigh(covariance)
    drawn = np.random.default_rng(SEED).standard_normal((DRAWS, count))
    drawn = drawn @ (vectors * np.sqrt(np.maximum(weights, 0))) @ vectors.T  # the root that is unique
    largest, against = np.full(DRAWS, -np.inf), list[float]()
    for place in range(count):
        own = usable[:, place]
        steps = (drawn[:, own] - drawn[:, [place]]) / errors[own, place]
        most = steps.max(axis=1, initial=-np.inf)
        largest = np.maximum(largest, most)
        against.append(_error(most, int((~own).sum()) - 1, 1, alpha))
    rest = (int((~usable).sum()) - count) // 2
    return Errors(_error(largest, rest, 2, alpha), tuple(against))


def _error(largest: NDArray[np.float64], rest: int, sides: int, alpha: float) -> float:
    """Return the largest error of a comparison with P(`largest` > its quantile) + rest · error ≤ α; at least α / rest.

    `rest`: the comparisons that enter by Bonferroni.
    """
    import numpy as np

    found = np.sort(largest[np.isfinite(largest)])
    tails = np.append(sides * (1 - normal_cdfs(found)), 0.0)
    exceeding = np.arange(len(found), -1, -1) / len(largest)
    held = tails[exceeding + rest * tails <= alpha]
    return float(min(max(held) or alpha / max(rest, 1), alpha))
