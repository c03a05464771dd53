"""The e-value of a judge's anchors: its expectation by enumeration, and what does not change it."""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement, product
from math import exp, inf

import pytest

from merilo.stats.drift import Anchor, exchange_value, fall_limits

STEADY = Anchor((1.0, 1.0, 1.0), (1.0, 1.0, 1.0))
FLIPPED = Anchor((1.0, 1.0, 1.0), (0.0, 0.0, 0.0))


def deals(answers: tuple[float, ...], new: int) -> list[Anchor]:
    """All ways to take some of the answers as the new ones."""
    places = range(len(answers))
    return [
        Anchor(tuple(answers[at] for at in places if at not in chosen), tuple(answers[at] for at in chosen))
        for chosen in combinations(places, new)
    ]


def test_the_expectation_is_1_for_every_set_of_answers() -> None:
    """Over all ways to divide any 2 to 7 answers into old and new ones, the mean is 1; both are symmetric."""
    for size in range(2, 8):
        for answers in combinations_with_replacement((0.0, 0.35, 1.0), size):
            for new in range(1, size // 2 + 1):
                values = [exchange_value([each]) for each in deals(answers, new)]
                assert sum(values) / len(values) == pytest.approx(1, rel=1e-12)


def test_the_expectation_is_1_for_several_anchors() -> None:
    """Over all joint divisions of three anchors with other answers, the mean is 1, though slopes are averaged last."""
    sets = deals((0, 0, 1, 1), 2), deals((0, 1, 1), 1), deals((0, 0.5, 1, 1), 3)
    values = [exchange_value(each) for each in product(*sets)]
    assert sum(values) / len(values) == pytest.approx(1, rel=1e-12)


def test_one_flipped_anchor_has_the_value_of_the_formula() -> None:
    """Of 20 divisions of three ones and three zeros, 2 have a difference of 1, and 18 have 1/3."""
    wanted = [exp(k) / ((2 * exp(k) + 18 * exp(k / 3)) / 20) for k in (2, 4, 6)]
    assert exchange_value([FLIPPED]) == pytest.approx(sum(wanted) / 3)
    assert exchange_value([FLIPPED] * 2) == pytest.approx(sum(each**2 for each in wanted) / 3)


def test_evidence_of_many_flipped_anchors_is_finite() -> None:
    """1,000 flipped anchors exceed the range of floats."""
    assert 1e299 < exchange_value([FLIPPED] * 1_000) < inf


def test_limits_of_the_fall_are_those_of_a_mean() -> None:
    """Steady anchors bound the fall by their number; half of them flipped have a mean fall of .5."""
    low, high = fall_limits([STEADY] * 200).ends or (1, -1)
    assert (low, high) == (pytest.approx(-high), pytest.approx(1 - 0.05 ** (1 / 200), rel=1e-6))
    low, high = fall_limits([STEADY, FLIPPED] * 100).ends or (1, -1)
    assert 0.4 < low < 0.5 < high < 0.6
