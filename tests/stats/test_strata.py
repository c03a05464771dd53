"""Limits of a mean over strata: against Wilson's interval, the normal one, and a direct maximisation."""

from math import inf, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from merilo.stats.correction import Stratum, stratified_limits
from merilo.stats.intervals import wilson_ends

Z = 1.959963984540054


def stratum(values: list[float], share: float = 1.0, count: float | None = None) -> Stratum:
    """A stratum whose estimate is the mean of the values."""
    found = np.array(values)
    return Stratum(share, float(found.mean()), found, len(found) if count is None else count)


@given(st.integers(0, 60), st.integers(0, 60))
def test_one_stratum_of_yes_and_no_has_wilsons_interval(yes: int, no: int) -> None:
    """Zeros and ones alone give Wilson's interval, also if all are equal."""
    if yes + no:
        found = stratified_limits([stratum([1.0] * yes + [0.0] * no)], 0.0, Z)
        assert found == pytest.approx(wilson_ends(yes / (yes + no), yes + no, (0.0, 1.0)), abs=1e-8)


def test_many_numbers_within_the_range_have_the_normal_interval() -> None:
    """Far from the ends the limits are mean ± z · standard error."""
    values = np.random.default_rng(1).normal(0.5, 0.1, 5_000)
    low, high = stratified_limits([stratum(values.tolist())], 0.0, Z)
    half = Z * float(values.std()) / sqrt(5_000)
    assert high - values.mean() == pytest.approx(half, rel=5e-3)
    assert values.mean() - low == pytest.approx(half, rel=5e-3)


def test_a_few_graded_numbers_have_limits_that_can_be_found_directly() -> None:
    """A general optimiser finds the same largest mean under the same bound on Pearson's statistic."""
    from scipy.optimize import minimize

    values, counts = np.array([0.4, 0.8, 1.0, 0.0]), np.array([2.0, 3.0, 7.0, 0.0])

    def statistic(p: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        return float(((counts - 12 * p) ** 2 / (12 * p)).sum())

    for sign, place in ((1, 0), (-1, 1)):
        best = minimize(
            lambda p, sign=sign: sign * (p @ values),
            np.array([0.2, 0.25, 0.5, 0.05]),
            bounds=[(1e-9, 1)] * 4,
            constraints=[
                {"type": "eq", "fun": lambda p: p.sum() - 1},
                {"type": "ineq", "fun": lambda p: Z * Z - statistic(p)},
            ],
            options={"ftol": 1e-12, "maxiter": 500},
        )
        found = stratified_limits([stratum([0.4] * 2 + [0.8] * 3 + [1.0] * 7)], 0.0, Z)
        assert found[place] == pytest.approx(sign * best.fun, abs=1e-5)


def test_a_stratum_that_nobody_labelled_may_have_any_mean() -> None:
    """An empty stratum of a tenth widens the interval by that tenth."""
    values = [1.0] * 15 + [0.0] * 5
    empty = Stratum(0.1, 0.25, np.zeros(0), 0.0)
    known = stratified_limits([stratum(values)], 0.0, Z)
    low, high = stratified_limits([stratum(values, 0.9), empty], 0.0, Z)
    centre = 0.9 * 0.75 + 0.1 * 0.25
    assert low == pytest.approx(centre - 0.9 * (0.75 - known[0]) - 0.025, abs=1e-2)
    assert high == pytest.approx(centre + 0.9 * (known[1] - 0.75) + 0.075, abs=1e-2)


@given(
    st.lists(
        st.lists(st.integers(0, 10).map(lambda tenth: tenth / 10), min_size=1, max_size=12), min_size=1, max_size=3
    )
)
def test_limits_are_ordered_and_mirror(groups: list[list[float]]) -> None:
    """The estimate is between the limits, these are in the range, and 1 - values gives 1 - limits."""
    share = 1 / len(groups)
    strata = [stratum(each, share) for each in groups]
    low, high = stratified_limits(strata, 0.0, Z)
    value = sum(each.share * each.mean for each in strata)
    assert 0 <= low <= value + 1e-12 < inf
    assert value - 1e-12 <= high <= 1
    mirrored = stratified_limits([stratum([1 - x for x in each], share) for each in groups], 0.0, Z)
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=1e-9)
