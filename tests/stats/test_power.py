"""How many samples a difference needs."""

import numpy as np
import pytest

from merilo.stats.power import detectable_effect, samples_needed, t_power

PILOT = np.random.default_rng(6).normal(0.05, 0.3, 40)


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


def test_so_many_samples_and_no_fewer() -> None:
    """If the pilot's deviation were exact, the power is reached, and with one sample less it is not."""
    found = samples_needed(PILOT, 0.1)
    assert found.if_exact is not None
    assert found.deviation == pytest.approx(PILOT.std(ddof=1))
    effects = [0.1 / PILOT.std(ddof=1) * np.sqrt(count) for count in (found.if_exact - 1, found.if_exact)]
    assert t_power(effects[0], found.if_exact - 2) < 0.8 <= t_power(effects[1], found.if_exact - 1)


@pytest.mark.parametrize("long_tails", [False, True])
def test_the_promised_power_is_reached_after_most_pilots(long_tails: bool) -> None:
    """After about four of five pilots of 40 pairs the true power is at least 80 %, and so it is on average."""
    source = np.random.default_rng(16)
    found: list[float] = []
    for _ in range(60):
        pilot = source.standard_normal(40)
        if long_tails:
            pilot *= np.where(source.random(40) < 0.2, 2, 0.5)
        samples = samples_needed(pilot, 0.9).samples
        assert samples is not None
        found.append(t_power(0.9 * np.sqrt(samples), samples - 1))
    assert np.mean(found) > 0.8
    assert np.mean(np.array(found) > 0.795) > 0.7


def test_the_sign_does_not_matter_and_halves_need_four_times() -> None:
    """A drop needs as many samples as a rise; half the difference about four times as many."""
    found, half = samples_needed(PILOT, -0.1), samples_needed(PILOT, 0.05)
    assert found.samples == samples_needed(PILOT, 0.1).samples
    assert half.samples == pytest.approx(4 * (found.samples or 0), rel=0.05)


def test_a_small_pilot_is_taken_with_caution() -> None:
    """The number uses the upper 80 % limit of the deviation, by chi-square; differences without long tails."""
    from scipy import stats

    pilot = np.clip(PILOT, -0.2, 0.3)
    found = samples_needed(pilot, 0.1)
    upper = np.sqrt(39 / stats.chi2.ppf(0.2, 39))
    assert found.samples == samples_needed(pilot * upper, 0.1).if_exact


def test_clusters_need_more() -> None:
    """Where clusters move as one, ten copies of a sample are worth one: ten times as many are needed."""
    names = np.repeat(np.arange(40), 10).tolist()
    found = samples_needed(np.repeat(PILOT, 10), 0.1, clusters=names)
    single = samples_needed(PILOT, 0.1)
    assert found.if_exact == 10 * (single.if_exact or 0)
    assert found.samples == 10 * (found.clusters or 0) == 10 * (single.samples or 0)


@pytest.mark.parametrize(
    ("pilot", "note"),
    [
        ([0.1] * 5 + [0.0] * 20, "5 of the pilot's 25 differences are not 0"),
        ([], "0 of the pilot's 0"),
        ([0.1] * 20, "all 20 differences of the pilot are equal"),
    ],
)
def test_a_pilot_that_tells_nothing(pilot: list[float], note: str) -> None:
    """Too few or equal differences: cannot tell."""
    found = samples_needed(pilot, 0.1)
    assert (found.samples, found.if_exact) == (None, None)
    assert note in found.note


def test_a_difference_of_nothing_is_refused() -> None:
    """No number of samples shows a difference of 0; a power below the level is none."""
    with pytest.raises(ValueError, match="other than 0"):
        samples_needed(PILOT, 0.0)
    with pytest.raises(ValueError, match="power"):
        samples_needed(PILOT, 0.1, power=0.01)
