"""Variance between samples and within a sample, against known values and by simulation."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    assert (found.samples, found.draws) == (4, 2)


def test_equal_draws_have_no_noise() -> None:
    """Then the variance between samples is that of the scores, as without draws."""
    found = variance_components([[value] * 3 for value in (0.0, 0.25, 1.0)])
    assert found is not None
    assert found.within == 0.0
    assert found.between == pytest.approx(np.var([0.0, 0.25, 1.0], ddof=1))


def test_noise_alone_gives_no_negative_variance() -> None:
    """Samples with equal means differ less than their noise would make them; the estimate stops at 0."""
    found = variance_components([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    assert found == VarianceComponents(0.0, 0.5, 3, 2)


@pytest.mark.parametrize("values", [[], [[0.1, 0.2]], [[0.1], [0.2]]])
def test_too_little_data_gives_no_estimate(values: list[list[float]]) -> None:
    """One sample or one draw cannot separate the two variances."""
    assert variance_components(values) is None


def test_invalid_values_are_refused() -> None:
    """Rows of different lengths and values that are not finite are errors."""
    with pytest.raises(ValueError, match="same number of draws"):
        variance_components([[0.1, 0.2], [0.1]])
    with pytest.raises(ValueError, match="not a finite number"):
        variance_components([[0.1, float("nan")], [0.1, 0.2]])
    with pytest.raises(ValueError, match="at least 1"):
        VarianceComponents(0.1, 0.1, 2, 2).standard_error(0, 1)


def test_simulation_finds_the_true_variances_and_standard_error() -> None:
    """Over 400 runs of 50 samples x 4 draws the estimates average to the truth, and so does the predicted error."""
    random = np.random.default_rng(7)
    between, within, samples, draws = 0.21**2, 0.08**2, 50, 4
    found: list[VarianceComponents] = []
    means: list[float] = []
    for _ in range(400):
        scores = random.normal(0.6, sqrt(between), (samples, 1)) + random.normal(0.0, sqrt(within), (samples, draws))
        each = variance_components(scores.tolist())
        assert each is not None
        found.append(each)
        means.append(float(scores.mean()))
    # Standard errors of these averages are 1 % (between) and 0.6 % (within) of the truth.
    assert np.mean([each.between for each in found]) == pytest.approx(between, rel=0.05)
    assert np.mean([each.within for each in found]) == pytest.approx(within, rel=0.03)
    predicted = VarianceComponents(between, within, samples, draws).standard_error(samples, draws)
    assert np.std(means, ddof=1) == pytest.approx(predicted, rel=0.12)


variances = st.floats(0.0, 10.0)


@given(between=variances, within=variances, samples=st.integers(1, 10_000), draws=st.integers(1, 100))
def test_twice_the_samples_are_never_worse_than_twice_the_draws(
    between: float, within: float, samples: int, draws: int
) -> None:
    """Both cost the same requests; more draws approach a limit that only more samples lower."""
    split = VarianceComponents(between, within, 2, 2)
    more_samples, more_draws = split.standard_error(2 * samples, draws), split.standard_error(samples, 2 * draws)
    assert more_samples <= more_draws * (1 + 1e-12)
    assert more_draws >= sqrt(between / samples) * (1 - 1e-12)
