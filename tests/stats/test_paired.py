"""Paired differences: the wider of t and exact limits, and never a p-value that the interval contradicts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from robust import bell_mccaffrey

from merilo.stats.means import exact_limits, own_ends, paired_of, paired_test
from merilo.stats.sums import Histogram

SPAN = (-1.0, 1.0)
SOURCE = np.random.default_rng(4)
FEW = SOURCE.normal(0.1, 0.2, 12).round(2)
MANY = SOURCE.normal(0.08, 0.4, 80).clip(-1, 1)


def exact(values: "np.ndarray[tuple[int], np.dtype[np.float64]]", level: float = 0.95) -> tuple[float, float]:
    """The exact limits of pairs that stand alone."""
    return exact_limits(Histogram.of(values, SPAN).points(), SPAN, len(values), level)


def test_few_pairs_have_exact_limits() -> None:
    """Twelve differences do not exclude that a few of other questions get much worse: t would."""
    from scipy import stats

    found = paired_test(FEW, SPAN)
    assert found.interval.ends == pytest.approx(exact(FEW))
    assert found.p is not None
    assert found.p > stats.ttest_1samp(FEW, 0).pvalue


def test_each_end_is_the_farther_one_of_t_and_the_exact_limit() -> None:
    """The p-value is the larger one of the paired t test of scipy and of the exact one."""
    from scipy import stats

    found = paired_test(MANY, SPAN)
    student = stats.t.interval(0.95, 79, MANY.mean(), stats.sem(MANY))
    limits = exact(MANY)
    assert found.interval.ends == pytest.approx((min(limits[0], student[0]), max(limits[1], student[1])), abs=1e-9)
    assert found.p is not None
    assert found.p >= stats.ttest_1samp(MANY, 0).pvalue - 1e-9


def test_many_pairs_get_the_t_test_of_scipy() -> None:
    """With 800 pairs: the paired t test and its interval."""
    from scipy import stats

    many = np.concatenate([MANY + shift for shift in np.linspace(-0.01, 0.01, 10)]).clip(-1, 1)
    found = paired_test(many, SPAN)
    assert found.p == pytest.approx(stats.ttest_1samp(many, 0).pvalue, rel=1e-6)
    assert found.interval.ends == pytest.approx(stats.t.interval(0.95, 799, many.mean(), stats.sem(many)), abs=1e-9)


def test_clusters_get_the_test_of_bell_and_mccaffrey() -> None:
    """Above 20 clusters: t with Satterthwaite's degrees of freedom on the bias-reduced cluster-robust error."""
    from scipy import stats

    names = np.random.default_rng(5).integers(0, 24, 80).tolist()
    error, freedom = bell_mccaffrey(MANY, names, np.ones(80))
    found = paired_test(MANY, SPAN, clusters=names)
    assert (found.error, found.freedom) == pytest.approx((error, freedom), rel=1e-9)
    assert found.interval.ends is not None
    assert found.p is not None
    known = stats.t.interval(0.95, freedom, MANY.mean(), error)
    assert found.interval.ends[0] <= known[0] + 1e-9
    assert found.interval.ends[1] >= known[1] - 1e-9
    assert found.p >= 2 * stats.t.sf(abs(MANY.mean()) / error, freedom) - 1e-9


def test_copies_in_clusters_change_little() -> None:
    """Copies of each pair in its own cluster are worth no more than the pairs."""
    single, tripled = (
        paired_test(FEW, SPAN),
        paired_test(np.repeat(FEW, 3), SPAN, clusters=np.repeat(range(12), 3).tolist()),
    )
    assert tripled.units == 12
    assert tripled.error == pytest.approx(single.error)
    assert tripled.p is not None
    assert tripled.p >= (single.p or 0)


@pytest.mark.parametrize(
    ("first", "second", "span", "expected"),
    [
        ([0.5, 0.7], [0.4, 0.6], (0, 1), (-0.9, 0.9)),
        ([0.98, 0.98], [0.97, 0.99], (0, 1), (-0.98, 0.98)),
        ([0.5, 0.5], [0.04, 0.06], (0, 1), (-0.9, 0.95)),
        ([3.0, 3.0], [4.8, 5.0], (1, 5), (-3.9, 3.6)),
        ([0.0, 1.0], [1.0, 1.0], (0, 1), None),
    ],
)
def test_the_next_pair_may_break(
    first: list[float], second: list[float], span: tuple[float, float], expected: tuple[float, float] | None
) -> None:
    """A broken answer costs the mean of the other side, at least .9 of the range; 0/1 scores keep the range."""
    found = own_ends(np.array(first), np.array(second), span)
    assert found == (expected if expected is None else pytest.approx(expected))


def test_a_pair_that_broke_is_the_place_of_the_next() -> None:
    """One loss of 0.99: limits are those of the range from -0.99 to 0.9."""
    first, second = np.append(np.linspace(0.3, 0.6, 30), 0.0), np.append(np.full(30, 0.4), 0.99)
    values, ends = first - second, own_ends(first, second, (0.0, 1.0))
    assert ends == pytest.approx((-0.99, 0.9))
    found = paired_of(values, None, SPAN, 0.95, ends).interval.ends
    low, high = exact_limits(Histogram.of(values, SPAN).points(), (-0.99, 0.9), 31, 0.95)
    assert found is not None
    assert found[0] <= low + 1e-9
    assert found[1] == pytest.approx(high)


@pytest.mark.parametrize(("different", "told"), [(5, False), (6, True)])
def test_few_differences_have_no_p_value(different: int, told: bool) -> None:
    """With fewer than 6 differences that are not 0 there is no p-value, and an interval that holds 0."""
    found = paired_test([1.0] * different + [0.0] * 40, SPAN)
    assert (found.p is not None) is told
    assert (f"cannot tell: {different} of {different + 40} differences are not 0" in found.reason) is not told
    assert found.interval.ends is not None
    assert (found.interval.ends[0] > 0) is told


def test_equal_scores_bound_a_difference() -> None:
    """60 pairs without a difference exclude one beyond 1 - 0.025^(1/60) of the largest, either way."""
    found = paired_test([0.0] * 60, SPAN)
    end = 1 - 0.025 ** (1 / 60)
    assert found.interval.ends == pytest.approx((-end, end), rel=1e-6)
    assert paired_test([0.0] * 60, (-np.inf, np.inf)).interval.ends is None


@pytest.mark.parametrize(
    ("value", "size", "clear"), [(0.2, 60, True), (0.02, 6, False), (0.02, 30, False), (1.0, 6, True)]
)
def test_equal_differences_have_a_width(value: float, size: int, clear: bool) -> None:
    """60 pairs of 60 that differ by 0.2 are shown to differ, and 6 of 6 by 0.02 are not."""
    found = paired_test([value] * size, SPAN)
    assert found.interval.ends is not None
    assert found.p is not None
    assert found.interval.ends[1] - found.interval.ends[0] > 0.09
    assert (found.p <= 0.05) is (found.interval.ends[0] > 0) is clear
    assert found.error is None
    assert paired_test([value] * size, (-np.inf, np.inf)).interval.ends is None


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
