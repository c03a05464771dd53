"""Splits the variance of repeated scores into that between samples and that within a sample (judge noise)."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class VarianceComponents:
    """Variances of scores between samples and within a sample, and the standard errors that follow from them."""

    between: float
    """Variance of the true means of samples, without judge noise; at least 0."""
    within: float
    """Variance of the draws of one sample: judge noise."""
    samples: int
    draws: int

    def standard_error(self, samples: int, draws: int) -> float:
        """Return the standard error of a mean over this many samples with this many draws each.

        sqrt((between + within / draws) / samples). With more and more draws it approaches sqrt(between / samples).
        Raises ValueError for a number below 1.
        """
        if samples < 1 or draws < 1:
            raise ValueError(f"samples and draws must be at least 1, got {samples} and {draws}.")
        return sqrt((self.between + self.within / draws) / samples)


def variance_components(values: Sequence[Sequence[float]]) -> VarianceComponents | None:
    """Return the variance components of scores, one row per sample and one value per draw.

    Model: score = mean + sample + noise, with independent samples and draws (one-way random effects). With n samples,
    K draws, sample means m_i and their mean m:

        within  = sum (x_ij - m_i)^2 / (n (K - 1))
        between = max(0, (K sum (m_i - m)^2 / (n - 1) - within) / K)

    These are the ANOVA estimates, unbiased except for the limit at 0. None (cannot tell) with fewer than two samples
    or two draws. Raises ValueError if the rows have different lengths or a value is not finite.
    Source: Searle, Casella and McCulloch, "Variance Components" (1992), 3.5.
    """
    import numpy as np

    samples, draws = len(values), len(values[0]) if len(values) else 0
    if any(len(row) != draws for row in values):
        raise ValueError("Each sample must have the same number of draws.")
    scores = np.asarray(values, dtype=np.float64)
    if not np.isfinite(scores).all():
        raise ValueError("A score of a draw is not a finite number.")
    if samples < 2 or draws < 2:
        return None
    means = scores.mean(axis=1)
    within = float(((scores - means[:, None]) ** 2).sum() / (samples * (draws - 1)))
    of_means = float(((means - means.mean()) ** 2).sum() / (samples - 1))
    return VarianceComponents(max(0.0, of_means - within / draws), within, samples, draws)
