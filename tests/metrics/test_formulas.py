from math import log2

import pytest
from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st

from merilo.metrics.formulas import average_precision, f_measure, mean, ndcg

flags = st.lists(st.booleans(), max_size=12)
grades = st.lists(st.integers(0, 2), min_size=1, max_size=12)
shares = st.floats(0, 1)


@each_case(
    ("ranking", "expected"),
    [
        ("1", 1.0),
        ("0", 0.0),
        ("", 0.0),
        ("10000", 1.0),
        ("10001", 0.7),
        ("01", 0.5),
        ("101", (1 + 2 / 3) / 2),
        ("0111", (1 / 2 + 2 / 3 + 3 / 4) / 3),
    ],
)
def test_average_precision_of_known_rankings(ranking: str, expected: float) -> None:
    """Average precision is the mean of the precisions at the relevant ranks, 0 where there are none."""
    assert average_precision([flag == "1" for flag in ranking]) == pytest.approx(expected)


@given(flags)
def test_average_precision_is_best_with_the_relevant_first(ranking: list[bool]) -> None:
    """No order of the same flags beats the one with all relevant items first, which has 1."""
    if any(ranking):
        assert average_precision(sorted(ranking, reverse=True)) == 1.0
    assert average_precision(ranking) <= average_precision(sorted(ranking, reverse=True))


@given(flags)
def test_average_precision_ignores_what_follows_the_last_relevant(ranking: list[bool]) -> None:
    """Irrelevant items at the end cost nothing."""
    assert average_precision([*ranking, False, False]) == average_precision(ranking)


@each_case(
    ("ranking", "k", "expected"),
    [
        ([2, 1, 0], None, 1.0),
        ([0, 2], None, 1 / log2(3)),
        ([0, 1, 2], None, (1 / log2(3) + 2 / 2) / (2 + 1 / log2(3))),
        ([0, 1, 2], 1, 0.0),
        ([1, 2], 1, 0.5),
        ([1, 0, 2], 2, 1 / (2 + 1 / log2(3))),
        ([2, 1], 10, 1.0),
    ],
)
def test_ndcg_of_known_rankings(ranking: list[float], k: int | None, expected: float) -> None:
    """The gain is the grade, the discount 1/log2(rank + 1), the ideal all grades sorted and cut at k."""
    assert ndcg(ranking, k) == pytest.approx(expected)


@pytest.mark.parametrize("ranking", [[], [0.0], [0.0, 0.0]])
def test_ndcg_of_nothing_relevant_is_undefined(ranking: list[float]) -> None:
    """Where no grade is above 0 there is no ideal to compare with."""
    assert ndcg(ranking) is None


@given(grades, st.one_of(st.none(), st.integers(1, 14)))
def test_ndcg_is_a_share_and_1_for_the_ideal_order(ranking: list[int], k: int | None) -> None:
    """The nDCG of a ranking lies in [0, 1], and that of the sorted ranking is exactly 1."""
    found = ndcg(ranking, k)
    if any(ranking):
        assert found is not None
        assert 0 <= found <= 1
        assert ndcg(sorted(ranking, reverse=True), k) == 1.0
    else:
        assert found is None


@given(grades, st.data())
def test_ndcg_rises_when_a_better_context_moves_up(ranking: list[int], data: st.DataObject) -> None:
    """Swapping two neighbours into falling order never lowers nDCG."""
    if len(ranking) > 1 and any(ranking):
        at = data.draw(st.integers(0, len(ranking) - 2))
        swapped = ranking.copy()
        swapped[at : at + 2] = sorted(swapped[at : at + 2], reverse=True)
        before, after = ndcg(ranking), ndcg(swapped)
        assert before is not None
        assert after is not None
        assert after >= before - 1e-12


@pytest.mark.parametrize(("ranking", "k"), [([1.0], 0), ([1.0], -3), ([-1.0, 2.0], None)])
def test_ndcg_refuses_what_it_has_no_meaning_for(ranking: list[float], k: int | None) -> None:
    """A k below 1 and grades below 0 are errors, not numbers."""
    with pytest.raises(ValueError, match="nDCG"):
        ndcg(ranking, k)


@each_case(
    ("precision", "recall", "beta", "expected"),
    [
        (1.0, 1.0, 1.0, 1.0),
        (0.5, 1.0, 1.0, 2 / 3),
        (0.0, 1.0, 1.0, 0.0),
        (0.0, 0.0, 1.0, 0.0),
        (0.5, 1.0, 2.0, 5 * 0.5 / (4 * 0.5 + 1)),
        (0.5, 1.0, 0.5, 1.25 * 0.5 / (0.25 * 0.5 + 1)),
    ],
)
def test_f_measure_of_known_pairs(precision: float, recall: float, beta: float, expected: float) -> None:
    """F is (1 + b²)PR / (b²P + R), and 0 where either is 0."""
    assert f_measure(precision, recall, beta=beta) == pytest.approx(expected)


@each_case("beta", [0.0, -1.0, float("inf"), float("nan")])
def test_f_measure_refuses_a_meaningless_beta(beta: float) -> None:
    """A beta is a finite number above 0."""
    with pytest.raises(ValueError, match="beta above 0"):
        f_measure(0.5, 0.5, beta=beta)


@given(st.lists(shares, min_size=1))
def test_the_mean_does_not_depend_on_order(values: list[float]) -> None:
    """The mean of the values from last to first is bit for bit the same."""
    assert mean(values) == mean(values[::-1])
