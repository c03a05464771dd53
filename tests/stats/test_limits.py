"""Limits of a mean: known values, laws, and how often they are wrong."""

from math import sqrt

import numpy as np
import pytest
import simulated_gates
from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betaincinv

from merilo.stats.means import exact_limits, exact_p, mean_interval
from merilo.stats.sums import GRID, Histogram

UNIT, BOTH = (0.0, 1.0), (-1.0, 1.0)
STUDIES = 80
VALUES = st.lists(st.sampled_from([0.0, 0.2, 0.5, 0.75, 0.8, 1.0]), min_size=1, max_size=60)


def limits(
    values: list[float] | np.ndarray[tuple[int], np.dtype[np.float64]],
    span: tuple[float, float] = UNIT,
    level: float = 0.95,
) -> tuple[float, float]:
    """The exact limits of values that stand alone."""
    return exact_limits(Histogram.of(np.asarray(values), span).points(), span, len(values), level)


@each_case("size", [1, 2, 20, 200, 1_000, 100_000])
@each_case("level", [0.6, 0.95, 0.999])
def test_limits_of_0_1_scores_are_those_of_clopper_and_pearson(size: int, level: float) -> None:
    """The closed form, a quantile of a beta distribution, is met to eight digits."""
    for ones in sorted({0, 1, size // 3, size - 1, size}):
        found = limits(np.repeat([1.0, 0.0], [ones, size - ones]), level=level)
        low = betaincinv(ones, size - ones + 1, 1 - level) if ones else 0.0
        high = betaincinv(ones + 1, size - ones, level) if ones < size else 1.0
        assert found == pytest.approx((low, high), rel=1e-8)


@each_case(
    "values", [[0.3, 0.9], [0.5] * 4, [1.0] * 30 + [0.5], np.linspace(0.2, 0.9, 40).tolist(), [0.0] * 50 + [0.001, 0.5]]
)
def test_a_limit_is_a_quantile_of_dirichlet_means(values: list[float]) -> None:
    """One in twenty of 200,000 randomly weighted means, with one more value at the end, lies beyond the limit."""
    source, size = np.random.default_rng(1), 200_000
    weights = source.exponential(size=(size, len(values) + 1))
    weights /= weights.sum(axis=1, keepdims=True)
    low, high = limits(values)
    below, above = (weights @ np.array([end, *values]) for end in UNIT)
    slack = 4 * sqrt(0.05 * 0.95 / size)
    assert (below <= low).mean() == pytest.approx(0.05, abs=slack)
    assert (above >= high).mean() == pytest.approx(0.05, abs=slack)


@given(VALUES)
def test_limits_hold_the_mean_and_ignore_order_and_scale(values: list[float]) -> None:
    """The mean lies between the limits; another order, or another unit, gives the same ones."""
    found = limits(values)
    assert found == limits(values[::-1])
    assert found[0] <= np.mean(values) <= found[1]
    stretched = limits(10 * np.array(values) - 5, (-5.0, 5.0))
    assert stretched == pytest.approx([10 * end - 5 for end in found], abs=1e-7)


@given(VALUES, st.integers(0, 59), st.sampled_from([0.0, 0.2, 0.5]))
def test_a_lower_score_never_raises_a_limit(values: list[float], place: int, other: float) -> None:
    """Limits rise with every score."""
    place %= len(values)
    lowered = [min(value, other) if at == place else value for at, value in enumerate(values)]
    assert limits(lowered)[0] <= limits(values)[0] + 1e-9


@given(st.lists(st.integers(-4, 4).map(lambda step: step / 4), min_size=1, max_size=30), st.sampled_from([0.8, 0.95]))
def test_the_exact_p_value_is_the_inverted_limit(values: list[float], level: float) -> None:
    """It is below 1 - level if, and only if, the limit on the side of 0 is beyond 0."""
    low, high = limits(values, BOTH, level)
    p = exact_p(Histogram.of(np.array(values), BOTH).points(), BOTH, len(values))
    if abs(p - (1 - level)) > 1e-6:
        assert (p < 1 - level) == (low > 0 or high < 0)


def test_many_distinct_values_move_no_limit_by_much() -> None:
    """Values on the grid have the limits of the values themselves, to 2 % of the distance from the mean."""
    values = np.random.default_rng(2).beta(20, 1, GRID)
    exact, spread = limits(np.repeat(values, 2)), limits(np.concatenate((values, values + 1e-9)))
    assert spread == pytest.approx(exact, abs=0.02 * (values.mean() - exact[0]))


def test_equal_clusters_of_equal_scores_count_once_a_cluster() -> None:
    """Twenty documents of ten perfect scores each prove no more than twenty perfect scores."""
    found = mean_interval(np.ones(200), UNIT, clusters=np.repeat(np.arange(20), 10).tolist()).interval
    assert found.ends == pytest.approx((0.05 ** (1 / 20), 1.0))


def test_clusters_are_no_narrower_than_as_many_independent_scores() -> None:
    """Thirty documents of ten scores each: outside the clustered t, and outside the limits of 300 single scores."""
    source = np.random.default_rng(5)
    values = np.clip(np.repeat(source.beta(8, 2, 30), 10) + source.normal(0, 0.05, 300), 0, 1)
    found = mean_interval(values, UNIT, clusters=np.repeat(np.arange(30), 10).tolist())
    assert found.interval.ends is not None
    assert found.error is not None
    low, high = found.interval.ends
    alone = limits(values)
    assert low < min(alone[0], (found.value or 0) - 2.04 * found.error)
    assert high > max(alone[1], (found.value or 0) + 2.04 * found.error)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=700), st.booleans())
def test_a_histogram_streams_to_that_of_the_column(values: list[float], weighted: bool) -> None:
    """Value by value the same distribution comes out, of at most GRID + 1 points, with the same mean."""
    weights = np.arange(1.0, len(values) + 1) if weighted else np.ones(len(values))
    streamed = Histogram(UNIT)
    for value, weight in zip(values, weights.tolist(), strict=True):
        streamed.add(value, weight)
    known, found = Histogram.of(np.array(values), UNIT, weights).points(), streamed.points()
    assert len(known.values) <= GRID + 1
    assert found.values == pytest.approx(known.values)
    assert found.weights == pytest.approx(known.weights)
    assert known.weights @ known.values == pytest.approx(weights @ np.array(values), rel=1e-9, abs=1e-9)


# -- the limits that are printed, and that gates decide by ----------------------------------------------


@pytest.mark.parametrize("size", [2, 10, 20, 200])
def test_0_1_scores_are_decided_wrongly_at_most_once_in_twenty_times(size: int) -> None:
    """Enumerated over 2,000 thresholds, for passing and for failing; Wilson's interval errs more on one side."""
    limits = simulated_gates.zero_one_limits(size)
    found = simulated_gates.zero_one_wrong(limits)
    assert max(found.passes, found.fails) <= 0.05 + 1e-9
    assert simulated_gates.zero_one_coverage(limits) >= 0.91
    other = simulated_gates.zero_one_wrong(simulated_gates.wilson_limits(size))
    assert max(other.passes, other.fails) > 0.09


@pytest.mark.parametrize("drop", [0.0, 0.05, 0.2])
def test_drops_of_0_1_scores_are_decided_wrongly_at_most_once_in_twenty_times(drop: float) -> None:
    """Enumerated over losses and gains among 40 pairs, with none to 40 % of the samples improving."""
    found = simulated_gates.drop_wrong(40, drop)
    assert max(found.passes, found.fails) <= 0.05 + 1e-9


@pytest.mark.parametrize("name", ["Beta(4,2)", "0, 1/2 or 1, ceiling", "3 % zeros, else near 1", "92 % ones"])
def test_graded_scores_are_decided_wrongly_at_most_once_in_twenty_times(name: str) -> None:
    """Simulated; limits allow for three standard errors."""
    found = simulated_gates.graded(name, 20, studies=STUDIES, seed=22).wrong
    assert max(found.passes, found.fails) <= 0.055 + 3 * sqrt(0.05 * 0.95 / STUDIES)


@pytest.mark.parametrize(
    "name",
    [
        "equal, Beta(4,2)",
        "5 % break, others gain 0.02",
        "skewed",
        pytest.param("9 % break, perfect ones only", marks=pytest.mark.slow),
    ],
)
def test_drops_of_graded_scores_are_decided_wrongly_at_most_once_in_twenty_times(name: str) -> None:
    """Also if few samples break, which most sets of 20 do not show; t alone passes every second such build."""
    found = simulated_gates.graded_drop(name, 20, studies=STUDIES, seed=22)
    assert max(found.wrong.passes, found.wrong.fails) <= 0.055 + 3 * sqrt(0.05 * 0.95 / STUDIES)
    assert found.width > 1.2


@pytest.mark.slow
@pytest.mark.parametrize(("clusters", "share"), [(12, 0.04), (12, 0.125), (20, 0.075), (30, 0.05)])
def test_a_fault_that_breaks_whole_clusters_is_decided_wrongly_at_most_once_in_twenty_times(
    clusters: int, share: float
) -> None:
    """With 12 to 30 clusters, most sets show no broken one; their pairs alone would show a gain."""
    found = simulated_gates.broken_clusters(clusters, share, studies=STUDIES, seed=22)
    assert max(found.passes, found.fails) <= 0.055 + 3 * sqrt(0.05 * 0.95 / STUDIES)


def test_scores_that_happen_to_be_0_or_1_change_no_method() -> None:
    """With one score of 0.999 in place of a 1 the limits move by about a thousandth of a score."""
    ones = np.repeat([1.0, 0.0], [190, 10])
    other = ones.copy()
    other[0] = 0.999
    first, second = (mean_interval(each, UNIT).interval.ends for each in (ones, other))
    assert second == pytest.approx(first, abs=1e-5)
