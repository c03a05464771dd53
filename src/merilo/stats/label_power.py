"""Power analysis of human labels: the number of labelled samples that decide a comparison or a gate."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from merilo.stats.correction import DECIDING_LABELLED
from merilo.stats.distributions import normal_cdf, normal_quantile
from merilo.stats.intervals import LEVEL, check_level
from merilo.stats.power import POWER


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

    @classmethod
    def corrected(cls, error: float, judged: float, labelled: int, samples: int) -> LabelSpread:
        """Return the spread from the standard errors of a corrected number and of the judge's own number."""
        return cls.of(error, labelled, samples, judged**2 * samples)

    def error(self, labelled: int) -> float:
        """Return the standard error with this number of labelled samples."""
        return sqrt(self.residual / labelled + self.explained / self.samples)

    def power(self, effect: float, labelled: int, *, level: float = LEVEL) -> float:
        """Return the probability that a comparison with this number of labelled samples shows a true difference.

        Normal approximation, both tails.
        """
        error = self.error(labelled)
        if not error:
            return float(effect != 0)
        limit = normal_quantile((1 + level) / 2)
        return normal_cdf(abs(effect) / error - limit) + normal_cdf(-abs(effect) / error - limit)


def labels_needed(
    effect: float, spread: LabelSpread, *, two_sided: bool, power: float = POWER, level: float = LEVEL
) -> int | None:
    """Return the labelled samples from which an effect is decided with this power; None if all samples are too few.

    `effect`: the distance of the true number from the one that decides: 0 for a comparison, the target for a gate.
    `two_sided`: True for a comparison. At least 20, from which merilo decides by labels. Normal approximation: the
    effect must be (z(level) + z(power)) standard errors.
    """
    check_level(level)
    quantile = normal_quantile((1 + level) / 2 if two_sided else level) + normal_quantile(power)
    wanted = (abs(effect) / quantile) ** 2 - spread.explained / spread.samples
    if wanted <= 0:
        return None
    count = max(DECIDING_LABELLED, -int(-spread.residual / wanted // 1))
    return count if count <= spread.samples else None
