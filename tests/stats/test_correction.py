"""The mean of a judge's labels, corrected by labels of people."""

import random
from math import sqrt

import pytest
from each_case import each_case

from merilo.stats.correction import ppi_mean

GOLD = [1, 0, 1, 1, 0]
JUDGE = [1, 1, 1, 1, 0]
MIN_UNITS_FOR_T = [1, 1, 0, 1, 1, 0, 1, 1, 1, 0]


def test_known_value() -> None:
    """Mean 0.7 less bias 0.2; half width 1.96 · sqrt(0.21/10 + 0.16/5), worked out by hand."""
    estimate, (low, high) = ppi_mean(GOLD, JUDGE, MIN_UNITS_FOR_T, 0.05)
    assert estimate == pytest.approx(0.5)
    assert high - estimate == pytest.approx(1.959963984540054 * sqrt(0.021 + 0.032))
    assert low == pytest.approx(0.0487824056, abs=1e-9)


def test_a_perfect_judge_is_not_corrected() -> None:
    """Without errors on the labelled items the estimate is the mean of the judge's labels."""
    assert ppi_mean(GOLD, GOLD, MIN_UNITS_FOR_T).estimate == pytest.approx(0.7)


@each_case(
    ("gold", "judge", "many", "alpha", "says"),
    [
        ([1, 0], [1], [1, 0], 0.05, "got 2 and 1"),
        ([1], [1], [1, 0], 0.05, "at least 2 labelled"),
        ([1, 0], [1, 0], [1], 0.05, "at least 2 labelled"),
        ([1, 0], [1, 0], [1, float("nan")], 0.05, "finite"),
        ([1, 0], [1, 0], [1, 0], 0.0, "alpha"),
        ([1, 0], [1, 0], [1, 0], 1.0, "alpha"),
    ],
)
def test_bad_input_is_refused(
    gold: list[float], judge: list[float], many: list[float], alpha: float, says: str
) -> None:
    """Too few labels, unequal lengths, numbers that are none and a meaningless alpha raise ValueError."""
    with pytest.raises(ValueError, match=says):
        ppi_mean(gold, judge, many, alpha)


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    """A 90 % interval covers the true mean in 90 % of 2,000 made-up studies, within three standard errors."""
    draw, studies, truth = random.Random(7), 2_000, 0.6

    def study() -> bool:
        items = [draw.random() < truth for _ in range(400)]
        judged = [item if draw.random() < 0.85 else not item for item in items]
        low, high = ppi_mean(items[:100], judged[:100], judged[100:], 0.1).interval
        return low <= truth <= high

    covered = sum(study() for _ in range(studies)) / studies
    assert abs(covered - 0.9) <= 3 * sqrt(0.9 * 0.1 / studies)
