"""Distribution functions and tau-b agree with scipy over the range in use."""

from math import inf, isnan

import numpy as np
import pytest
from each_case import each_case
from scipy import special

from merilo.stats.distributions import (
    gamma_quantile,
    normal_cdfs,
    normal_quantile,
    root,
    student_quantile,
    t_cdf,
)

CLOSE = 1e-9
FREEDOMS = (0.5, 1.0, 1.5, 2.0, 2.999, 3.0, 5.0, 7.3, 19.0, 20.0, 30.0, 99.5, 1e3, 1e5, 1e7)
LEVELS = (1e-8, 1e-4, 0.025, 0.1, 0.6, 0.9, 0.975, 0.995, 0.9999)


def test_the_normal_distribution() -> None:
    """Cumulative probabilities to 37 standard deviations, and quantiles down to 1e-300."""
    points = np.linspace(-37, 37, 741)
    np.testing.assert_allclose(normal_cdfs(points), special.ndtr(points), rtol=1e-12)
    for p in (*10.0 ** np.linspace(-300, -0.4, 100), 0.5, 0.975, 1 - 1e-12):
        assert normal_quantile(float(p)) == pytest.approx(float(special.ndtri(p)), rel=CLOSE)
    assert (normal_quantile(0), normal_quantile(1)) == (-inf, inf)
    assert isnan(normal_quantile(1.5))


@each_case("freedom", FREEDOMS)
def test_student_s_t(freedom: float) -> None:
    """Tails and quantiles, from half a degree of freedom to ten millions."""
    for t in (-40.0, -10.0, -4.5, -2.0, -0.5, 0.0, 0.7, 3.0):
        assert t_cdf(freedom, t) == pytest.approx(float(special.stdtr(freedom, t)), rel=CLOSE)
    for p in LEVELS:
        assert student_quantile(freedom, p) == pytest.approx(float(special.stdtrit(freedom, p)), rel=CLOSE)
    assert student_quantile(freedom, 0.5) == 0


@each_case("shape", [0.25, 0.5, 1, 2.5, 9.5, 20, 499.5, 5e4, 5e5])
def test_the_gamma_distribution(shape: float) -> None:
    """Quantiles from 1e-15 to 1 - 1e-15."""
    for p in (1e-15, 1e-8, 0.01, 0.2, 0.5, 0.8, 0.99, 1 - 1e-8, 1 - 1e-15):
        assert gamma_quantile(shape, p) == pytest.approx(float(special.gammaincinv(shape, p)), rel=CLOSE)


def test_a_root_is_found_where_interpolation_is_slow() -> None:
    """A function that is flat at one end of the bracket, and one with the root at an end."""
    assert root(lambda x: x**9 - 1e-9, 0.0, 10.0) == pytest.approx(0.1, rel=1e-9)
    assert root(lambda x: x, 0.0, 1.0) == 0
    assert root(lambda x: 1 - x, 0.0, 1.0) == 1
