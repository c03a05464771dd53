"""Power analysis: the samples that a difference needs, and the smallest difference that a sample size detects."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, lgamma, sqrt
from typing import TYPE_CHECKING

from merilo.stats.correction import DECIDING_LABELLED
from merilo.stats.distributions import gamma_quantile, normal_cdf, normal_cdfs, normal_quantile, root
from merilo.stats.intervals import LEVEL, check_level, t_quantile
from merilo.stats.means import FEWEST_DIFFERENT
from merilo.stats.sums import Sums, codes_of, numbers

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    import numpy as np
    from numpy.typing import NDArray

POWER = 0.8
PILOT_LEVEL = 0.8
"""Level of the upper limit of a pilot's standard deviation."""
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


def detectable_effect(freedom: float, *, power: float = POWER, level: float = LEVEL) -> float:
    """Return the true difference, in standard errors, that a two-sided t test detects with this power."""
    _check_power(power, level)
    high = 4.0
    # Power grows with the effect, so doubling finds a bracket for the root.
    while t_power(high, freedom, level=level) < power:
        high *= 2
    return root(lambda effect: t_power(effect, freedom, level=level) - power, 0.0, high)


def samples_for(effect: float, detectable: float, samples: int) -> int | None:
    """Return the number of samples that detect `effect`, if `samples` detect `detectable`; None if too many.

    The smallest detectable difference shrinks with the square root of the number of samples.
    """
    if not effect or (needed := samples * (detectable / effect) ** 2) > MOST:
        return None
    return ceil(needed)


@dataclass(frozen=True, slots=True)
class SamplesNeeded:
    """The number of samples that a difference needs, estimated from a pilot."""

    samples: int | None
    """The number of samples, from the upper 80 % limit of the standard deviation; None if it cannot be estimated."""
    if_exact: int | None
    """The same if the standard deviation of the pilot were exact; it has less power than promised in half of all
    pilots."""
    difference: float
    deviation: float | None
    """Standard deviation of the pilot's differences; with clusters, the equivalent for single samples."""
    power: float
    level: float
    clusters: int | None = None
    """The number of clusters, of the pilot's mean size, for `samples`; None without clusters."""
    note: str = ""
    """The reason if there is no estimate; otherwise empty."""


def samples_needed(
    differences: Sequence[float] | NDArray[np.float64],
    difference: float,
    *,
    clusters: Sequence[Hashable] | None = None,
    power: float = POWER,
    level: float = LEVEL,
) -> SamplesNeeded:
    """Return the number of samples with which a paired comparison detects a true `difference` at this power or more.

    The pilot's standard deviation is an estimate. Its upper 80 % limit gives a number that suffices after four of five
    pilots. With the estimate itself the power would be below the promised one after half of them.

    `differences`: of a pilot's pairs, one for each sample; `difference`: not 0, in the same unit; its sign does not
    matter. Assumes more samples (and clusters of the same sizes) like the pilot's and an approximately normal mean.
    There is no estimate from a pilot with fewer than 6 nonzero differences or with equal differences. Source: the
    noncentral t of `t_power`; upper limit of a variance: chi-square, with fewer degrees of freedom for long tails.
    """
    import numpy as np

    _check_power(power, level)
    found = numbers(differences, "differences")
    codes = codes_of(clusters, len(found))
    if difference == 0 or not np.isfinite(difference):
        raise ValueError(f"The difference must be a finite number other than 0, got {difference}.")
    sums = Sums.of(found, np.ones(len(found)), codes)
    unlike = int((abs(sums.tops) > 1e-12).sum())
    spread = sums.spread if unlike >= FEWEST_DIFFERENT else None
    error = 0.0 if spread is None else spread.error
    if spread is None or error <= 1e-12 * max(1.0, abs(difference)):
        note = (
            f"cannot tell: {unlike} of the pilot's {sums.count} differences are not 0, {FEWEST_DIFFERENT} needed"
            if unlike < FEWEST_DIFFERENT
            else f"cannot tell: all {sums.count} differences of the pilot are equal"
        )
        return SamplesNeeded(None, None, difference, None, power, level, note=note)
    freedom = min(spread.freedom, _variance_freedom(sums))
    unit, size = error * sqrt(sums.count), len(found) / sums.count
    # chi-square(freedom) is twice a gamma variable with shape freedom / 2.
    upper = unit * sqrt(freedom / (2 * gamma_quantile(freedom / 2, 1 - PILOT_LEVEL)))
    needed, if_exact = (_units(abs(difference) / each, power, level) for each in (upper, unit))
    return SamplesNeeded(
        None if needed is None else ceil(needed * size),
        None if if_exact is None else ceil(if_exact * size),
        difference,
        unit * sqrt(size),
        power,
        level,
        clusters=needed if codes is not None else None,
        note="" if needed is not None else f"cannot tell: more than {MOST:,} samples would be needed",
    )


def _variance_freedom(sums: Sums) -> float:
    """Return the degrees of freedom of a chi-square with the relative variance of the units' estimated variance.

    The variance of an estimated variance is (2 / (n - 1) + excess kurtosis / n) · variance². Differences that are
    mostly 0 have a large kurtosis. Source: Cramer, "Mathematical Methods of Statistics" (1946), 27.4.
    """
    parts = sums.tops - sums.value * sums.bottoms
    excess = float((parts**4).mean() / (parts**2).mean() ** 2) - 3
    return 2 / (2 / (sums.count - 1) + max(excess, 0.0) / sums.count)


def _units(effect: float, power: float, level: float) -> int | None:
    """Return the smallest number of units, from 6, that detect a difference of `effect` standard deviations of a
    unit.
    """
    low, high = FEWEST_DIFFERENT, FEWEST_DIFFERENT
    while t_power(effect * sqrt(high), high - 1, level=level) < power:
        if high >= MOST:
            return None
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        if t_power(effect * sqrt(middle), middle - 1, level=level) < power:
            low = middle + 1
        else:
            high = middle
    return high


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


def _check_power(power: float, level: float) -> None:
    check_level(level)
    if not 1 - level < power < 1:
        raise ValueError(f"The power must be between {1 - level:.3g} and 1, got {power}; write 0.8 for 80 %.")


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
