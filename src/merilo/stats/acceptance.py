"""Tests of the confidence that a judge needs for its answers to replace those of another judge.

Fixed-sequence testing: thresholds from a fixed grid are tested from the strictest to the laxest, each at the full
level, until the first one fails. No correction for the number of thresholds is needed, because a lax threshold is
only reached if every stricter one has passed. Source: Bauer, "Multiple testing in clinical trials", Statistics in
Medicine 10 (1991); used for thresholds of a classifier by Angelopoulos et al., "Learn then test" (2021).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from merilo.stats.distributions import beta_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

GRID: Final = (
    0.999, 0.998, 0.995, 0.99, 0.98, 0.97, 0.96, 0.95, 0.94, 0.92, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5, 0.0,
)  # fmt: skip
"""Thresholds in the order of testing. The last one accepts every answer, also of a judge without probabilities."""
DIGITS: Final = 6
"""Decimal places to which a confidence is rounded before it is compared with a threshold."""
_START_RATE: Final = 0.25


@dataclass(frozen=True, slots=True)
class ThresholdTest:
    """One threshold, tested on the answers with at least this confidence."""

    threshold: float
    answered: int
    errors: int
    upper_limit: float
    """One-sided Clopper-Pearson limit of the error rate."""
    passed: bool


def fixed_sequence(
    confidences: Sequence[float], wrong: Sequence[bool], max_error: float, *, level: float
) -> tuple[ThresholdTest, ...]:
    """Return the tests of the grid in order, up to and including the first that fails.

    The first threshold tested is the strictest that at least a quarter of the answers reach, and enough of them to pass
    if none is wrong: with fewer, one unlucky error would end the sequence. How many answers reach a threshold says
    nothing about the errors among them, so skipping costs no level. A threshold passes if the upper limit of its error
    rate is at most `max_error`.
    """
    # Rounded as in the cascade, so that a threshold is tested on exactly the answers that it will accept.
    answers = sorted(zip((round(each, DIGITS) for each in confidences), wrong, strict=True), reverse=True)
    tests: list[ThresholdTest] = []
    answered = errors = 0
    for threshold in GRID:
        while answered < len(answers) and answers[answered][0] >= threshold:
            errors += answers[answered][1]
            answered += 1
        if tests and tests[-1].answered == answered:
            continue  # the same answers: nothing new to test
        if answered < _START_RATE * len(answers) or upper_limit(0, answered, level) > max_error:
            continue
        limit = upper_limit(errors, answered, level)
        tests.append(ThresholdTest(threshold, answered, errors, limit, limit <= max_error))
        if not tests[-1].passed:
            break
    return tuple(tests)


def accepted(tests: Sequence[ThresholdTest]) -> float | None:
    """Return the laxest threshold that passed; None if none did."""
    return next((test.threshold for test in reversed(tests) if test.passed), None)


def upper_limit(errors: int, count: int, level: float) -> float:
    """Return the one-sided upper confidence limit of an error rate; 1.0 if nothing was counted.

    Source: Clopper & Pearson, Biometrika 26 (1934).
    """
    if errors >= count:
        return 1.0
    return beta_quantile(errors + 1, count - errors, level)
