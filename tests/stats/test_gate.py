"""Pass, fail, or cannot tell."""

import numpy as np
import pytest
from scipy import stats

from merilo.stats.column import Column, Missing
from merilo.stats.compare import Policy
from merilo.stats.gate import GateVerdict, gate_drop, gate_minimum
from merilo.stats.one_sided import mean_limits

UNIT = (0.0, 1.0)
SOURCE = np.random.default_rng(9)
SCORES = SOURCE.beta(6, 3, 300).tolist()
BASE = Column.of(SCORES, UNIT)


def shifted(by: float, spread: float = 0.02) -> Column:
    """The same samples, each changed by about so much."""
    steps = np.random.default_rng(10).normal(by, spread, 300)
    return Column.of(np.clip(np.array(SCORES) + steps, 0, 1).tolist(), UNIT)


def test_a_minimum_is_read_from_one_sided_limits() -> None:
    """Pass at the lower 95 % limit, fail above the upper one, cannot tell between; t limits lie near, further in."""
    limits = mean_limits(np.array(SCORES), UNIT)
    low, high = limits.lower or 0, limits.upper or 0
    near = stats.t.interval(0.9, 299, np.mean(SCORES), stats.sem(SCORES))
    assert near[0] - 0.003 < low < near[0]
    assert near[1] < high < near[1] + 0.002
    for asked, verdict in (
        (low - 1e-6, GateVerdict.PASS),
        (low + 1e-6, GateVerdict.CANNOT_TELL),
        (high - 1e-6, GateVerdict.CANNOT_TELL),
        (high + 1e-6, GateVerdict.FAIL),
    ):
        found = gate_minimum(BASE, asked)
        assert found.verdict is verdict
        assert (found.lower, found.upper) == pytest.approx((low, high), abs=1e-9)


@pytest.mark.parametrize(("size", "asked"), [(200, 0.9), (300, 0.945), (20, 0.99)])
def test_a_threshold_that_is_the_true_rate_is_decided_wrongly_once_in_twenty_times(size: int, asked: float) -> None:
    """Enumerated over the number of ones: passing at a rate just below, and failing at the rate itself."""
    verdicts = [gate_minimum(Column.of([1.0] * ones + [0.0] * (size - ones), UNIT), asked) for ones in range(size + 1)]
    for wrong in (GateVerdict.PASS, GateVerdict.FAIL):
        ones = [place for place, found in enumerate(verdicts) if found.verdict is wrong]
        assert stats.binom.pmf(ones, size, asked).sum() <= 0.05


def test_a_drop_that_is_just_allowed_is_decided_wrongly_once_in_twenty_times() -> None:
    """Enumerated over losses among 150 pairs without gains: 5 % are lost, and 5 % are allowed."""
    base = Column.of([1.0] * 150, UNIT)
    drops = [gate_drop(base, Column.of([0.0] * lost + [1.0] * (150 - lost), UNIT), 0.05) for lost in range(40)]
    for wrong in (GateVerdict.PASS, GateVerdict.FAIL):
        lost = [place for place, found in enumerate(drops) if found.verdict is wrong]
        assert stats.binom.pmf(lost, 150, 0.05).sum() <= 0.05


def test_missing_outcomes_are_read_at_worst_and_best() -> None:
    """Failed and Undefined outcomes widen what a gate reads; each policy says what of the Undefined."""
    gaps: list[float | Missing] = [*SCORES, *[Missing.UNDEFINED] * 60, *[Missing.FAILED] * 3]
    column = Column.of(gaps, UNIT)
    found, dropped = gate_minimum(column, 0.6), gate_minimum(column, 0.6, undefined=Policy.DROP)
    worst = gate_minimum(column, 0.6, undefined=Policy.WORST)
    assert found.verdict is GateVerdict.CANNOT_TELL
    assert dropped.verdict is GateVerdict.PASS
    assert worst.verdict is GateVerdict.FAIL
    assert worst.lower == pytest.approx(found.lower)
    filled = np.array([*SCORES, *[0.0] * 63])
    assert found.lower == pytest.approx(mean_limits(filled, UNIT).lower)


def test_lower_may_be_better() -> None:
    """Where lower is better the number asked for is a most."""
    column = Column.of([1 - score for score in SCORES], UNIT, higher_is_better=False)
    assert gate_minimum(column, 0.5).verdict is GateVerdict.PASS
    assert gate_minimum(column, 0.2).verdict is GateVerdict.FAIL
    assert "at most 0.2" in gate_minimum(column, 0.2).reason


def test_a_drop_passes_fails_or_is_named() -> None:
    """Pass when the lower limit is above -d, fail when the upper one is below, else say which drop is excluded."""
    assert gate_drop(BASE, shifted(-0.01), 0.03).verdict is GateVerdict.PASS
    assert gate_drop(BASE, shifted(-0.05), 0.02).verdict is GateVerdict.FAIL
    found = gate_drop(BASE, shifted(-0.02, 0.1), 0.04)
    assert found.verdict is GateVerdict.CANNOT_TELL
    assert found.lower is not None
    assert found.excluded_drop == -found.lower
    assert f"a drop of more than {found.excluded_drop:.3g} can be excluded" in found.reason
    differences = shifted(-0.02, 0.1).values - BASE.values
    known = mean_limits(differences, (-1.0, 1.0))
    assert (found.lower, found.upper) == pytest.approx((known.lower, known.upper), abs=1e-9)


def test_strict_fails_at_any_drop_that_is_shown() -> None:
    """A drop that is within what is allowed passes, but not with `strict`."""
    new = shifted(-0.02)
    assert gate_drop(BASE, new, 0.05).verdict is GateVerdict.PASS
    assert gate_drop(BASE, new, 0.05, strict=True).verdict is GateVerdict.FAIL
    assert gate_drop(BASE, shifted(0.01), 0.05, strict=True).verdict is GateVerdict.PASS


def test_a_drop_of_a_metric_where_lower_is_better_is_a_rise() -> None:
    """Twice the noise is a drop."""
    base, new = (Column.of([value] * 299 + [value + 0.01], UNIT, higher_is_better=False) for value in (0.1, 0.3))
    assert gate_drop(base, new, 0.05).verdict is not GateVerdict.PASS
    mixed = Column.of([0.3 + place / 10_000 for place in range(300)], UNIT, higher_is_better=False)
    assert gate_drop(base, mixed, 0.05).verdict is GateVerdict.FAIL
    assert gate_drop(mixed, base, 0.05).verdict is GateVerdict.PASS


def test_equal_scores_exclude_a_drop_of_three_in_n() -> None:
    """Equal scores: 300 of them exclude a drop of 1 - 0.05^(1/300), by as much as a loss could hide."""
    found = gate_drop(BASE, BASE, 0.02)
    assert found.verdict is GateVerdict.PASS
    assert found.excluded_drop == pytest.approx(1 - 0.05 ** (1 / 300))
    small = Column.of(SCORES[:20], UNIT)
    assert gate_drop(small, small, 0.02).verdict is GateVerdict.CANNOT_TELL


def test_one_sided_missing_outcomes_can_hide_a_drop() -> None:
    """What the new run lacks stands at the worst for the lower limit, and at the best for the upper one."""
    outcomes: list[float | Missing] = [*[Missing.UNDEFINED] * 15, *SCORES[15:]]
    new = Column.of(outcomes, UNIT)
    assert gate_drop(BASE, new, 0.02).verdict is GateVerdict.CANNOT_TELL
    assert gate_drop(BASE, new, 0.02, undefined=Policy.DROP).verdict is GateVerdict.PASS
    assert gate_drop(BASE, new, 0.01, undefined=Policy.WORST).verdict is GateVerdict.FAIL
    assert gate_drop(BASE, new, 0.02).deciding == ()  # they are undefined, and nothing failed


def test_failed_outcomes_that_would_decide_are_named() -> None:
    """With so many failed outcomes at the best it would pass; with one fewer it would not."""
    outcomes: list[float | Missing] = [*[Missing.FAILED] * 10, *SCORES]
    column = Column.of(outcomes, UNIT)
    found = gate_minimum(column, 0.64)
    assert found.verdict is GateVerdict.CANNOT_TELL
    assert found.would is GateVerdict.PASS
    assert found.deciding == tuple(range(len(found.deciding)))
    for count, verdict in ((len(found.deciding), GateVerdict.PASS), (len(found.deciding) - 1, GateVerdict.CANNOT_TELL)):
        changed = Column.of([*[1.0] * count, *outcomes[count:]], UNIT)
        assert gate_minimum(changed, 0.64).verdict is verdict


def test_failed_pairs_that_would_decide_are_named() -> None:
    """Scores that fell are not named, although without them it would pass; a failed outcome is."""
    steps = np.zeros(300)
    steps[:30] = np.linspace(-0.3, -0.1, 30)
    scores = np.clip(np.array(SCORES) + steps, 0, 1).tolist()
    assert gate_drop(BASE, Column.of(scores, UNIT), 0.03).verdict is GateVerdict.CANNOT_TELL
    assert gate_drop(BASE, Column.of(scores, UNIT), 0.03).deciding == ()
    found = gate_drop(BASE, Column.of([*SCORES[:295], *[Missing.FAILED] * 5], UNIT), 0.02)
    assert (found.verdict, found.would) == (GateVerdict.CANNOT_TELL, GateVerdict.PASS)
    assert set(found.deciding) <= set(range(295, 300))


def test_if_no_failed_outcomes_would_pass_those_that_would_fail_are_named() -> None:
    """Of 1,000 with a mean of 0.26 twenty at the best do not reach 0.28, but a few at the worst rule it out."""
    outcomes: list[float | Missing] = [*[Missing.FAILED] * 12, *[1.0] * 254, *[0.0] * 734]
    found = gate_minimum(Column.of(outcomes, UNIT), 0.28)
    assert (found.verdict, found.would) == (GateVerdict.CANNOT_TELL, GateVerdict.FAIL)
    for count, verdict in ((len(found.deciding), GateVerdict.FAIL), (len(found.deciding) - 1, GateVerdict.CANNOT_TELL)):
        changed = Column.of([*[0.0] * count, *outcomes[count:]], UNIT)
        assert gate_minimum(changed, 0.28).verdict is verdict


def test_nothing_to_judge_cannot_tell() -> None:
    """No score, one score, all failed, or a range that bounds nothing: cannot tell, and why."""
    gone: list[float | Missing] = [Missing.FAILED] * 40
    for column, why in (
        (Column.of([], UNIT), "there are no scores"),
        (Column.of([0.5], UNIT), "between 0.025 and 0.975"),
        (Column.of([*SCORES, Missing.FAILED], (0.0, float("inf"))), "range is infinite"),
    ):
        found = gate_minimum(column, 0.5)
        assert found.verdict is GateVerdict.CANNOT_TELL
        assert why in found.reason
    failed = gate_minimum(Column.of(gone, UNIT), 0.5)
    assert failed.verdict is GateVerdict.CANNOT_TELL
    assert failed.value is None
    assert gate_drop(Column.of([], UNIT), Column.of([], UNIT), 0.1).verdict is GateVerdict.CANNOT_TELL
    with pytest.raises(ValueError, match="0 or more"):
        gate_drop(BASE, BASE, -0.1)
    with pytest.raises(ValueError, match=r"0\.5 and 1"):
        gate_minimum(BASE, 0.5, level=0.05)
