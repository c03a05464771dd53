"""The power of a paired t test."""

import numpy as np
import pytest

from merilo.stats.power import detectable_effect, t_power


@pytest.mark.parametrize("count", [3, 8, 30, 200, 5_000])
def test_power_is_that_of_statsmodels(count: int) -> None:
    """The power of a paired t test by the noncentral t, both tails."""
    known = pytest.importorskip("statsmodels.stats.power").TTestPower()
    for effect in (0.0, 0.5, 2.8, 4.0):
        assert t_power(effect, count - 1) == pytest.approx(known.power(effect / np.sqrt(count), count, 0.05), abs=1e-9)


def test_power_without_scipy_stats_by_simulation() -> None:
    """A true difference of the detectable size is found in 80 % of made-up studies."""
    effect = detectable_effect(14)
    assert t_power(effect, 14) == pytest.approx(0.8, abs=1e-10)
    data = np.random.default_rng(7).normal(effect / np.sqrt(15), 1, (20_000, 15))
    t = data.mean(axis=1) / (data.std(axis=1, ddof=1) / np.sqrt(15))
    assert (abs(t) >= 2.1447866879169273).mean() == pytest.approx(0.8, abs=0.01)
