"""Variance between samples and within a sample, against known values and by simulation."""

from math import sqrt

import numpy as np
import pytest

from merilo.stats import variance_components
from merilo.stats.corrected_pairs import VarianceComponents

MEASURED = [[3.28, 3.09], [3.52, 3.48], [2.88, 2.80], [3.34, 3.38]]


def test_known_values() -> None:
    """By hand: means 3.185, 3.50, 2.84, 3.36; within = 0.02285 / 4, between = var(means) - within / 2."""
    found = variance_components(MEASURED)
    assert found is not None
    squares = (0.19**2 + 0.04**2 + 0.08**2 + 0.04**2) / 2
    means = [3.185, 3.50, 2.84, 3.36]
    of_means = sum((mean - 3.22125) ** 2 for mean in means) / 3
    assert found.within == pytest.approx(squares / 4, abs=1e-12)
    assert found.between == pytest.approx(of_means - squares / 8, abs=1e-12)
    assert found.samples == 4


def test_equal_draws_have_no_noise() -> None:
    """Then the variance between samples is that of the scores, as without draws."""
    found = variance_components([[value] * 3 for value in (0.0, 0.25, 1.0)])
    assert found is not None
    assert found.within == 0.0
    assert found.between == pytest.approx(np.var([0.0, 0.25, 1.0], ddof=1))


def test_noise_alone_gives_no_negative_variance() -> None:
    """Samples with equal means differ less than their noise would make them; the estimate stops at 0."""
    found = variance_components([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    assert found == VarianceComponents(0.0, 0.5, 3)


@pytest.mark.parametrize("values", [[], [[0.1, 0.2]], [[0.1], [0.2]]])
def test_too_little_data_gives_no_estimate(values: list[list[float]]) -> None:
    """One sample or one draw cannot separate the two variances."""
    assert variance_components(values) is None


def test_simulation_finds_the_true_variances() -> None:
    """Over 400 runs of 50 samples x 4 draws the estimates average to the truth."""
    random = np.random.default_rng(7)
    between, within, samples, draws = 0.21**2, 0.08**2, 50, 4
    found: list[VarianceComponents] = []
    for _ in range(400):
        scores = random.normal(0.6, sqrt(between), (samples, 1)) + random.normal(0.0, sqrt(within), (samples, draws))
        each = variance_components(scores.tolist())
        assert each is not None
        found.append(each)
    # Standard errors of these averages are 1 % (between) and 0.6 % (within) of the truth.
    assert np.mean([each.between for each in found]) == pytest.approx(between, rel=0.05)
    assert np.mean([each.within for each in found]) == pytest.approx(within, rel=0.03)
