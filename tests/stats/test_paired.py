"""Paired differences: exact sign flips for few, t for many, and never a p-value that the interval contradicts."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from robust import bell_mccaffrey

from merilo.stats.intervals import Method
from merilo.stats.paired import paired_test

SPAN = (-1.0, 1.0)
SOURCE = np.random.default_rng(4)
FEW = SOURCE.normal(0.1, 0.2, 12).round(2)
MIN_UNITS_FOR_T = SOURCE.normal(0.02, 0.1, 80)


def test_few_pairs_are_flipped_as_scipy_flips_them() -> None:
    """Up to 20 pairs the p-value is that of scipy's exact permutation test of paired samples."""
    from scipy import stats

    known = stats.permutation_test((FEW,), np.mean, permutation_type="samples", n_resamples=np.inf)
    found = paired_test(FEW, SPAN)
    assert found.interval.method is Method.FLIPS
    assert found.p == pytest.approx(known.pvalue, abs=1e-12)


def test_flips_of_the_studentised_statistic_by_hand() -> None:
    """Counting |t| over all 2^n flips, t recomputed for each, gives the same p-value."""

    def t(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        return float(abs(values.mean()) / (values.std(ddof=1) / np.sqrt(len(values))))

    values = FEW[:9]
    flips = [t(values * np.array(signs)) for signs in product((-1, 1), repeat=9)]
    assert paired_test(values, SPAN).p == pytest.approx(np.mean(np.array(flips) >= t(values) - 1e-9), abs=1e-12)


def test_the_interval_is_the_test_inverted() -> None:
    """A difference just inside an end is not refuted at 5 %, one just outside is."""
    ends = paired_test(FEW, SPAN).interval.ends
    assert ends is not None
    for end, out in ((ends[0], -1e-6), (ends[1], 1e-6)):
        inside, outside = (paired_test(FEW - end - step, (-2, 2)).p for step in (-out, out))
        assert inside is not None
        assert outside is not None
        assert outside <= 0.05 < inside


def test_many_pairs_get_the_t_test_of_scipy() -> None:
    """Above 20 pairs: the paired t test and its interval."""
    from scipy import stats

    error = stats.sem(MIN_UNITS_FOR_T)
    found = paired_test(MIN_UNITS_FOR_T, SPAN)
    assert found.p == pytest.approx(2 * stats.t.sf(abs(MIN_UNITS_FOR_T.mean()) / error, 79), abs=1e-9)
    assert found.interval.ends == pytest.approx(stats.t.interval(0.95, 79, MIN_UNITS_FOR_T.mean(), error), abs=1e-9)


def test_clusters_get_the_test_of_bell_and_mccaffrey() -> None:
    """Above 20 clusters: t with Satterthwaite's degrees of freedom on the bias-reduced cluster-robust error."""
    from scipy import stats

    names = np.random.default_rng(5).integers(0, 24, 80).tolist()
    error, freedom = bell_mccaffrey(MIN_UNITS_FOR_T, names, np.ones(80))
    found = paired_test(MIN_UNITS_FOR_T, SPAN, clusters=names)
    assert (found.error, found.freedom) == pytest.approx((error, freedom), rel=1e-9)
    assert found.p == pytest.approx(2 * stats.t.sf(abs(MIN_UNITS_FOR_T.mean()) / error, freedom), abs=1e-9)
    assert found.interval.ends == pytest.approx(
        stats.t.interval(0.95, freedom, MIN_UNITS_FOR_T.mean(), error), abs=1e-9
    )


def test_whole_clusters_are_flipped() -> None:
    """Copies of each pair in its own cluster change neither p-value nor interval."""
    single, tripled = (
        paired_test(FEW, SPAN),
        paired_test(np.repeat(FEW, 3), SPAN, clusters=np.repeat(range(12), 3).tolist()),
    )
    assert tripled.p == single.p
    assert tripled.interval.ends == pytest.approx(single.interval.ends, abs=1e-12)
    assert tripled.units == 12


@pytest.mark.parametrize(("different", "told"), [(5, False), (6, True)])
def test_few_differences_tell_nothing(different: int, told: bool) -> None:
    """With fewer than 6 differences that are not 0 nothing is told, however many pairs there are."""
    found = paired_test([0.1 + place / 50 for place in range(different)] + [0.0] * 40, SPAN)
    assert (found.p is not None) is told
    assert (found.interval.ends is not None) is told
    assert (f"cannot tell: {different} of {different + 40} differences are not 0" in found.interval.note) is not told


def test_six_equal_signs_just_reach_five_percent() -> None:
    """6 differences of one sign: p = 2/64, the interval from the smallest to the largest."""
    found = paired_test([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], SPAN)
    assert found.p == 2 / 64
    assert found.interval.ends == pytest.approx((0.1, 0.6))


def test_equal_differences_have_a_width() -> None:
    """All differences equal: Wilson's interval over the range of a difference, and its own score test."""
    for value, clear in ((0.02, False), (1.0, True)):
        found = paired_test([value] * 30, SPAN)
        assert found.interval.ends is not None
        assert found.p is not None
        assert found.interval.ends[1] - found.interval.ends[0] > 0.1
        assert (found.p <= 0.05) is (found.interval.ends[0] > 0) is clear
        assert found.error is None
    assert paired_test([0.1] * 30, (-np.inf, np.inf)).interval.ends is None


def test_no_pair_is_no_difference() -> None:
    """Without a pair there is no mean, no p-value, and a sentence."""
    found = paired_test([], SPAN)
    assert (found.difference, found.p, found.interval.ends) == (None, None, None)
    assert found.interval.note == "cannot tell: there is no pair of scores"


@given(
    st.lists(st.integers(-3, 3).map(lambda step: step / 4), min_size=6, max_size=45),
    st.sampled_from([0.9, 0.95, 0.99]),
    st.integers(1, 4),
)
def test_p_value_and_interval_never_disagree(values: list[float], level: float, members: int) -> None:
    """The p-value is at most 1 - level if, and only if, 0 lies outside the interval, by whatever method."""
    names = [place // members for place in range(len(values))]
    found = paired_test(values, SPAN, clusters=names if members > 1 else None, level=level)
    if found.p is None or found.interval.ends is None:
        return
    low, high = found.interval.ends
    assert (found.p <= 1 - level + 1e-12) is not (low <= 0 <= high)
    assert low <= (found.difference or 0) + 1e-12
    assert (found.difference or 0) <= high + 1e-12
