"""Thresholds by fixed-sequence testing: the exact limits, the order of testing, and that the promise holds."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.stats import beta, binom
from simulated_cascades import JUDGES, broken_promises

from merilo.stats.acceptance import GRID, accepted, fixed_sequence, upper_limit

if TYPE_CHECKING:
    from collections.abc import Sequence


@pytest.mark.parametrize(("errors", "count"), [(0, 59), (0, 72), (1, 93), (4, 200), (30, 40)])
@pytest.mark.parametrize("level", [0.95, 0.975])
def test_the_limit_is_that_of_clopper_and_pearson(errors: int, count: int, level: float) -> None:
    """It is the beta quantile, and the rate at which so few errors have probability 1 - level."""
    found = upper_limit(errors, count, level)
    assert found == pytest.approx(float(beta.ppf(level, errors + 1, count - errors)))
    assert float(binom.cdf(errors, count, found)) == pytest.approx(1 - level)


def test_without_answers_or_with_errors_only_the_limit_is_1() -> None:
    """Nothing can be excluded then."""
    assert upper_limit(0, 0, 0.95) == upper_limit(7, 7, 0.95) == 1.0


def test_72_answers_without_an_error_are_the_fewest_that_pass() -> None:
    """At 5 % and a level of 97.5 %; a threshold with fewer answers is skipped, and does not end the sequence."""
    assert fixed_sequence([0.9] * 71, [False] * 71, 0.05, level=0.975) == ()
    (test,) = fixed_sequence([0.9] * 72, [False] * 72, 0.05, level=0.975)
    assert (test.threshold, test.answered, test.passed) == (0.9, 72, True)
    confidences = [0.9995] * 20 + [0.96] * 60
    (test,) = fixed_sequence(confidences, [False] * 80, 0.05, level=0.975)
    assert (test.threshold, test.answered) == (0.96, 80)


def test_the_sequence_starts_at_a_quarter_of_the_answers() -> None:
    """A large pilot is not lost to one error among its few most confident answers."""
    assert sequence_of([(0.99, 100, 1), (0.9, 900, 9)]) == [(0.9, True)]


def sequence_of(groups: Sequence[tuple[float, int, int]]) -> list[tuple[float, bool]]:
    """Thresholds and whether they passed, for groups of (confidence, answers, errors)."""
    confidences = [each for each, count, _ in groups for _ in range(count)]
    wrong = [n < errors for _, count, errors in groups for n in range(count)]
    return [(test.threshold, test.passed) for test in fixed_sequence(confidences, wrong, 0.05, level=0.975)]


def test_the_sequence_ends_at_the_first_failure() -> None:
    """A laxer threshold that would pass is not looked at once a stricter one has failed."""
    assert sequence_of([(0.99, 200, 0), (0.9, 100, 15), (0.6, 500, 0)]) == [(0.99, True), (0.9, False)]
    assert sequence_of([(0.99, 100, 6), (0.9, 300, 0)]) == [(0.99, False)]
    assert sequence_of([(0.99, 100, 0), (0.9, 100, 1), (0.6, 100, 2)]) == [(0.99, True), (0.9, True), (0.6, True)]


def test_the_laxest_threshold_that_passed_is_accepted() -> None:
    """None if the first one failed, or if there was nothing to test."""
    sequence = fixed_sequence([0.99] * 100 + [0.9] * 100, [False] * 100 + [True] * 100, 0.05, level=0.975)
    assert accepted(sequence) == 0.99
    assert accepted(fixed_sequence([0.9] * 100, [True] * 100, 0.05, level=0.975)) is None
    assert accepted(()) is None


def test_answers_without_a_probability_are_accepted_all_or_not() -> None:
    """Their confidence is 0, which only the last threshold of the grid reaches."""
    assert GRID[-1] == 0.0
    assert accepted(fixed_sequence([0.0] * 100, [False] * 100, 0.05, level=0.975)) == 0.0


@pytest.mark.parametrize("judge", JUDGES)
def test_the_promise_holds_for_any_judge(judge: str) -> None:
    """In at most 5 % of runs, and two standard errors, more than 5 % of the cheap answers differ."""
    runs = 200
    found = broken_promises(judge, runs=runs, pilot=200, max_error=0.05, seed=3)
    assert found.broken <= 0.05 + 2 * sqrt(0.05 * 0.95 / runs)
    assert np.isfinite(found.answered)


def test_looking_for_a_threshold_breaks_the_promise_more_often() -> None:
    """The laxest threshold that passes, wherever it is, was found by looking: the fixed order is what protects."""
    fixed = broken_promises("at the limit", runs=300, pilot=1_000, max_error=0.05, seed=3)
    sought = broken_promises("at the limit", runs=300, pilot=1_000, max_error=0.05, seed=3, search=True)
    assert sought.broken > 0.05
    assert fixed.broken < sought.broken / 2
