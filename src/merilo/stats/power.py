"""Power analysis: the samples that a difference needs, and the smallest difference that a sample size detects."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, lgamma, sqrt
from typing import TYPE_CHECKING

from merilo.stats.correction import DECIDING_LABELLED
from merilo.stats.distributions import gamma_quantile, normal_cdf, normal_cdfs, normal_quantile, root
from merilo.stats.intervals import LEVEL, t_quantile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

POWER = 0.8
MOST = 10_000_000
"""Maximum number of samples considered; more are unrealistic."""


def t_power(effect: float, freedom: float, *, level: float = LEVEL) -> float:
    """Return the probability that a two-sided t test detects a difference of `effect` standard errors, in (0, 1).

    `effect`: true difference / true standard error of the difference; `freedom` > 0 degrees of freedom. Both tails
    count. Source: Cohen, "Statistical Power Analysis" (2nd ed., 1988), 2.3; noncentral t by quadrature over the
    standard deviation, to about 1e-12.
    """
    import numpy as np

    spread, weight = _spreads(freedom)
    limit = t_quantile(freedom, level)
    found = normal_cdfs(effect - limit * spread) + normal_cdfs(-effect - limit * spread)
    return float(np.dot(weight, found))


def detectable_effect(freedom: float, *, level: float = LEVEL) -> float:
    """Return the true difference, in standard errors, that a two-sided t test detects with a power of 80 %."""
    high = 4.0
    # Power grows with the effect, so doubling finds a bracket for the root.
    while t_power(high, freedom, level=level) < POWER:
        high *= 2
    return root(lambda effect: t_power(effect, freedom, level=level) - POWER, 0.0, high)


def samples_for(effect: float, detectable: float, samples: int) -> int | None:
    """Return the number of samples that detect `effect`, if `samples` detect `detectable`; None if too many.

    The smallest detectable difference shrinks with the square root of the number of samples.
    """
    if not effect or (needed := samples * (detectable / effect) ** 2) > MOST:
        return None
    return ceil(needed)


@lru_cache(maxsize=64)
def _spreads(freedom: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return nodes and weights of the estimated over the true standard deviation, sqrt(chi-square / freedom)."""
    import numpy as np

    low, high = (sqrt(2 * gamma_quantile(freedom / 2, tail) / freedom) for tail in (1e-15, 1 - 1e-15))
    nodes, weights = np.polynomial.legendre.leggauss(200)
    spread = low + (high - low) * (nodes + 1) / 2
    log = (freedom - 1) * np.log(spread) - freedom * spread**2 / 2
    constant = np.log(2.0) + freedom / 2 * np.log(freedom / 2) - lgamma(freedom / 2)
    return spread, weights * (high - low) / 2 * np.exp(log + constant)


# Power analysis of human labels: the number of labelled samples that decide a comparison or a gate.


@dataclass(frozen=True, slots=True)
class LabelSpread:
    """The variance of a corrected mean or difference, by number of labelled samples."""

    residual: float
    """Variance per labelled sample of what the judge does not explain."""
    explained: float
    """Variance per sample of what the judge explains; all samples share it."""
    samples: int
    """Judged samples (pairs for a difference)."""

    @classmethod
    def of(cls, error: float, labelled: int, samples: int, variance: float) -> LabelSpread:
        """Return the spread that gives a corrected number from `labelled` labels this standard error.

        `variance`: of the labels themselves, which bounds both parts.
        """
        if labelled >= samples:
            return cls(variance, 0.0, samples)
        # error² = residual / labelled + (variance - residual) / samples, solved for the residual variance.
        residual = (error**2 - variance / samples) / (1 / labelled - 1 / samples)
        residual = min(max(residual, 0.0), max(variance, error**2 * labelled))
        return cls(residual, max(variance - residual, 0.0), samples)

    def error(self, labelled: int) -> float:
        """Return the standard error with this number of labelled samples."""
        return sqrt(self.residual / labelled + self.explained / self.samples)

    def power(self, effect: float, labelled: int) -> float:
        """Return the probability that a comparison with this number of labelled samples shows a true difference.

        Normal approximation at 95 %, both tails.
        """
        error = self.error(labelled)
        if not error:
            return float(effect != 0)
        limit = normal_quantile((1 + LEVEL) / 2)
        return normal_cdf(abs(effect) / error - limit) + normal_cdf(-abs(effect) / error - limit)


def labels_needed(effect: float, spread: LabelSpread) -> int | None:
    """Return the labelled samples from which a comparison shows a true difference; None if all samples are too few.

    At least 20, from which merilo decides by labels. Normal approximation, two-sided: the effect must be
    (z(95 %) + z(80 %)) standard errors.
    """
    quantile = normal_quantile((1 + LEVEL) / 2) + normal_quantile(POWER)
    wanted = (abs(effect) / quantile) ** 2 - spread.explained / spread.samples
    if wanted <= 0:
        return None
    count = max(DECIDING_LABELLED, -int(-spread.residual / wanted // 1))
    return count if count <= spread.samples else None
