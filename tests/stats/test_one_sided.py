"""One-sided limits of a mean: known values, laws, and how often they are wrong."""

from math import sqrt

import numpy as np
import pytest
import simulated
import simulated_gates
from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betaincinv

from merilo.stats.column import Column
from merilo.stats.gate import GateVerdict, gate_drop, gate_minimum
from merilo.stats.means import mean_interval
from merilo.stats.one_sided import GRID, lower_limit, mean_limits

UNIT = (0.0, 1.0)
STUDIES = 80
VALUES = st.lists(st.sampled_from([0.0, 0.2, 0.5, 0.75, 0.8, 1.0]), min_size=1, max_size=60)


@each_case("size", [1, 2, 20, 200, 1_000, 100_000])
@each_case("level", [0.6, 0.95, 0.999])
def test_limits_of_0_1_scores_are_those_of_clopper_and_pearson(size: int, level: float) -> None:
    """The closed form, a quantile of a beta distribution, is met to eight digits."""
    for ones in sorted({0, 1, size // 3, size - 1, size}):
        found = mean_limits(np.repeat([1.0, 0.0], [ones, size - ones]), UNIT, level=level)
        low = betaincinv(ones, size - ones + 1, 1 - level) if ones else 0.0
        high = betaincinv(ones + 1, size - ones, level) if ones < size else 1.0
        assert (found.lower, found.upper) == pytest.approx((low, high), rel=1e-8)


@each_case(
    "values", [[0.3, 0.9], [0.5] * 4, [1.0] * 30 + [0.5], np.linspace(0.2, 0.9, 40).tolist(), [0.0] * 50 + [0.001, 0.5]]
)
def test_a_limit_is_a_quantile_of_dirichlet_means(values: list[float]) -> None:
    """One in twenty of 200,000 randomly weighted means, with one more value at the end, lies beyond the limit."""
    source, size = np.random.default_rng(1), 200_000
    weights = source.exponential(size=(size, len(values) + 1))
    weights /= weights.sum(axis=1, keepdims=True)
    found = mean_limits(np.array(values), UNIT)
    below, above = (weights @ np.array([end, *values]) for end in UNIT)
    slack = 4 * sqrt(0.05 * 0.95 / size)
    assert (below <= (found.lower or 0)).mean() == pytest.approx(0.05, abs=slack)
    assert (above >= (found.upper or 0)).mean() == pytest.approx(0.05, abs=slack)


@given(VALUES)
def test_limits_hold_the_mean_and_ignore_order_and_scale(values: list[float]) -> None:
    """The mean lies between the limits; another order, or another unit, gives the same ones."""
    found, turned = (mean_limits(np.array(each), UNIT) for each in (values, values[::-1]))
    assert found == turned
    assert (found.lower or 0) <= np.mean(values) <= (found.upper or 1)
    stretched = mean_limits(10 * np.array(values) - 5, (-5.0, 5.0))
    assert (stretched.lower, stretched.upper) == pytest.approx(
        (10 * (found.lower or 0) - 5, 10 * (found.upper or 0) - 5), abs=1e-7
    )


@given(VALUES, st.integers(0, 59), st.sampled_from([0.0, 0.2, 0.5]))
def test_a_lower_score_never_raises_a_limit(values: list[float], place: int, other: float) -> None:
    """Limits rise with every score."""
    place %= len(values)
    lowered = [min(value, other) if at == place else value for at, value in enumerate(values)]
    more, less = (lower_limit(np.array(each), 0.0) for each in (values, lowered))
    assert less <= more + 1e-9


def test_many_distinct_values_cost_no_more_and_move_nothing() -> None:
    """Values on the grid have the limits of the values themselves to a thousandth of the limit's distance."""
    values = np.random.default_rng(2).beta(20, 1, 3 * GRID)
    exact = mean_limits(values[:GRID], UNIT)
    doubled = mean_limits(np.concatenate((values[:GRID], values[:GRID] + 1e-9 * np.arange(GRID) - 1e-6)), UNIT)
    plain = mean_limits(np.repeat(values[:GRID], 2), UNIT)
    assert doubled.lower == pytest.approx(plain.lower, abs=1e-3 * (values.mean() - (plain.lower or 0)))
    assert exact.lower is not None


@pytest.mark.parametrize("size", [10, 20, 200])
def test_0_1_scores_are_decided_wrongly_at_most_once_in_twenty_times(size: int) -> None:
    """Enumerated over 2,000 thresholds, for passing and for failing; one side of the two-sided interval errs more."""
    found = simulated_gates.zero_one_wrong(simulated_gates.zero_one_limits(size))
    assert 0.04 < found.passes <= 0.05 + 1e-9
    assert 0.04 < found.fails <= 0.05 + 1e-9
    old = simulated_gates.zero_one_wrong(simulated_gates.old_zero_one_limits(size))
    assert min(old.passes, old.fails) > 0.13


@pytest.mark.parametrize("drop", [0.01, 0.05, 0.2])
def test_drops_of_0_1_scores_are_decided_wrongly_at_most_once_in_twenty_times(drop: float) -> None:
    """Enumerated over losses and gains among 60 pairs, with none to 40 % of the samples improving."""
    found = simulated_gates.drop_wrong(60, drop)
    assert max(found.passes, found.fails) <= 0.05 + 1e-9


@pytest.mark.parametrize("name", ["Beta(4,2)", "0, 1/2 or 1, ceiling", "3 % zeros, else near 1", "92 % ones"])
def test_graded_scores_are_decided_wrongly_at_most_once_in_twenty_times(name: str) -> None:
    """Simulated, for minimums and drops; limits allow for three standard errors."""
    limit = 0.055 + 3 * sqrt(0.05 * 0.95 / STUDIES)
    for cells in (simulated_gates.graded, simulated_gates.graded_drop):
        found, _ = cells(name, 20, studies=STUDIES, seed=22)
        assert max(found.wrong.passes, found.wrong.fails) <= limit


def test_rare_failures_break_the_limits_of_before_and_not_these() -> None:
    """3 % zeros among scores near 1: two in five samples of 30 have none, so that a t limit does not allow for them."""
    new, old = simulated_gates.graded("3 % zeros, else near 1", 30, studies=STUDIES, seed=23)
    assert new.wrong.passes <= 0.055
    assert old.wrong.passes > 0.3


def test_cluster_limits_are_no_tighter_than_those_of_as_many_independent_scores() -> None:
    """Thirty documents of ten scores each: outside the clustered t, and outside the limits of 300 single scores."""
    source = np.random.default_rng(5)
    codes = np.repeat(np.arange(30), 10)
    values = np.clip(np.repeat(source.beta(8, 2, 30), 10) + source.normal(0, 0.05, 300), 0, 1)
    found, alone = mean_limits(values, UNIT, codes=codes), mean_limits(values, UNIT)
    ends = mean_interval(values, UNIT, clusters=codes.tolist(), level=0.9).interval.ends
    assert ends is not None
    assert None not in (found.lower, found.upper, alone.lower, alone.upper)
    assert (found.lower or 0) <= min(ends[0], alone.lower or 0)
    assert (found.upper or 0) >= max(ends[1], alone.upper or 0)
    assert mean_limits(values[:50], UNIT, codes=codes[:50]).note.startswith("cannot tell from 5 clusters")


def test_equal_scores_in_clusters_count_once_a_cluster() -> None:
    """Twenty documents of ten perfect scores each prove no more than twenty perfect scores."""
    codes = np.repeat(np.arange(20), 10)
    found = mean_limits(np.ones(200), UNIT, codes=codes)
    assert found.lower is not None
    assert found.lower <= 0.05 ** (1 / 20) + 1e-9


def test_scores_that_happen_to_be_0_or_1_change_no_method() -> None:
    """With one score of 0.999 in place of a 1 the limits move by about a thousandth of a score."""
    ones = np.repeat([1.0, 0.0], [190, 10])
    other = ones.copy()
    other[0] = 0.999
    first, second = mean_limits(ones, UNIT), mean_limits(other, UNIT)
    assert (second.lower, second.upper) == pytest.approx((first.lower, first.upper), abs=1e-5)


@pytest.mark.parametrize("name", ["Beta(4,2)", "0, 1/2 or 1", "92 % ones"])
def test_a_gate_that_stopped_early_claims_nothing_that_all_its_samples_do_not(name: str) -> None:
    """Where looking after every sample decides, the limits of the samples so far decide the same."""
    shape, source, decided = simulated_gates.GRADED[name], np.random.default_rng(6), 0
    for _ in range(60):
        values = shape.quantile(source.random(300))
        for asked in (shape.mean - 0.1, shape.mean - 0.03, min(0.99, shape.mean + 0.06)):
            above, below = simulated.decided_at(values, asked)
            if min(above, below) > len(values):
                continue
            decided += 1
            column = Column.of(values[: min(above, below)].tolist(), UNIT)
            assert gate_minimum(column, asked).verdict is (GateVerdict.PASS if above < below else GateVerdict.FAIL)
    assert decided > 30


def test_gates_read_these_limits() -> None:
    """A minimum and a drop, 0/1 scores: 190 of 200 show 0.916, and 200 equal pairs exclude 1.5 %."""
    column = Column.of([1.0] * 190 + [0.0] * 10, UNIT)
    assert gate_minimum(column, 0.9).lower == pytest.approx(betaincinv(190, 11, 0.05), rel=1e-8)
    assert gate_drop(column, column, 0.02).excluded_drop == pytest.approx(1 - 0.05 ** (1 / 200), rel=1e-6)
