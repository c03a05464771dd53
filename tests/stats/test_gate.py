"""Pass, fail, or cannot tell."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from merilo.stats.column import Column, Missing
from merilo.stats.compare import Policy
from merilo.stats.gate import Verdict, gate_drop, gate_minimum

UNIT = (0.0, 1.0)
SOURCE = np.random.default_rng(9)
SCORES = SOURCE.beta(6, 3, 300).tolist()
BASE = Column.of(SCORES, UNIT)


def shifted(by: float, spread: float = 0.02) -> Column:
    """The same samples, each changed by about so much."""
    steps = np.random.default_rng(10).normal(by, spread, 300)
    return Column.of(np.clip(np.array(SCORES) + steps, 0, 1).tolist(), UNIT)


def test_a_minimum_is_read_from_one_sided_limits() -> None:
    """Pass at the lower 95 % limit, fail above the upper one, cannot tell between."""
    low, high = stats.t.interval(0.9, 299, np.mean(SCORES), stats.sem(SCORES))
    for asked, verdict in (
        (low - 1e-6, Verdict.PASS),
        (low + 1e-6, Verdict.CANNOT_TELL),
        (high - 1e-6, Verdict.CANNOT_TELL),
        (high + 1e-6, Verdict.FAIL),
    ):
        found = gate_minimum(BASE, asked)
        assert found.verdict is verdict
        assert (found.lower, found.upper) == pytest.approx((low, high), abs=1e-9)


def test_missing_outcomes_are_read_at_worst_and_best() -> None:
    """Failed and Undefined outcomes widen what a gate reads; each policy says what of the Undefined."""
    gaps: list[float | Missing] = [*SCORES, *[Missing.UNDEFINED] * 60, *[Missing.FAILED] * 3]
    column = Column.of(gaps, UNIT)
    found, dropped = gate_minimum(column, 0.6), gate_minimum(column, 0.6, undefined=Policy.DROP)
    worst = gate_minimum(column, 0.6, undefined=Policy.WORST)
    assert found.verdict is Verdict.CANNOT_TELL
    assert dropped.verdict is Verdict.PASS
    assert worst.verdict is Verdict.FAIL
    assert worst.lower == pytest.approx(found.lower)
    filled = np.array([*SCORES, *[0.0] * 63])
    assert found.lower == pytest.approx(stats.t.interval(0.9, 362, filled.mean(), stats.sem(filled))[0])


def test_lower_may_be_better() -> None:
    """Where lower is better the number asked for is a most."""
    column = Column.of([1 - score for score in SCORES], UNIT, higher_is_better=False)
    assert gate_minimum(column, 0.5).verdict is Verdict.PASS
    assert gate_minimum(column, 0.2).verdict is Verdict.FAIL
    assert "at most 0.2" in gate_minimum(column, 0.2).reason


def test_a_drop_passes_fails_or_is_named() -> None:
    """Pass when the lower limit is above -d, fail when the upper one is below, else say which drop is excluded."""
    assert gate_drop(BASE, shifted(-0.01), 0.02).verdict is Verdict.PASS
    assert gate_drop(BASE, shifted(-0.05), 0.02).verdict is Verdict.FAIL
    found = gate_drop(BASE, shifted(-0.02, 0.1), 0.04)
    assert found.verdict is Verdict.CANNOT_TELL
    assert found.lower is not None
    assert found.excluded_drop == -found.lower
    assert f"a drop of more than {found.excluded_drop:.3g} can be excluded" in found.reason
    differences = shifted(-0.02, 0.1).values - BASE.values
    known = stats.t.interval(0.9, 299, differences.mean(), stats.sem(differences))
    assert (found.lower, found.upper) == pytest.approx(known, abs=1e-9)


def test_strict_fails_at_any_drop_that_is_shown() -> None:
    """A drop that is within what is allowed passes, but not with `strict`."""
    new = shifted(-0.01)
    assert gate_drop(BASE, new, 0.05).verdict is Verdict.PASS
    assert gate_drop(BASE, new, 0.05, strict=True).verdict is Verdict.FAIL
    assert gate_drop(BASE, shifted(0.01), 0.05, strict=True).verdict is Verdict.PASS


def test_a_drop_of_a_metric_where_lower_is_better_is_a_rise() -> None:
    """Twice the noise is a drop."""
    base, new = (Column.of([value] * 299 + [value + 0.01], UNIT, higher_is_better=False) for value in (0.1, 0.3))
    assert gate_drop(base, new, 0.05).verdict is not Verdict.PASS
    mixed = Column.of([0.3 + place / 10_000 for place in range(300)], UNIT, higher_is_better=False)
    assert gate_drop(base, mixed, 0.05).verdict is Verdict.FAIL
    assert gate_drop(mixed, base, 0.05).verdict is Verdict.PASS


def test_a_change_that_changed_nothing_can_pass() -> None:
    """Equal runs: the drop that so many equal pairs exclude is Wilson's upper limit for no loss, z² / (n + z²)."""
    found = gate_drop(BASE, BASE, 0.02)
    z = stats.norm.ppf(0.95)
    assert found.verdict is Verdict.PASS
    assert found.excluded_drop == pytest.approx(z**2 / (300 + z**2))
    small = Column.of(SCORES[:20], UNIT)
    assert gate_drop(small, small, 0.02).verdict is Verdict.CANNOT_TELL


def test_one_sided_missing_outcomes_can_hide_a_drop() -> None:
    """What the new run lacks stands at the worst for the lower limit, and at the best for the upper one."""
    outcomes: list[float | Missing] = [*[Missing.UNDEFINED] * 15, *SCORES[15:]]
    new = Column.of(outcomes, UNIT)
    assert gate_drop(BASE, new, 0.02).verdict is Verdict.CANNOT_TELL
    assert gate_drop(BASE, new, 0.02, undefined=Policy.DROP).verdict is Verdict.PASS
    assert gate_drop(BASE, new, 0.01, undefined=Policy.WORST).verdict is Verdict.FAIL
    found = gate_drop(BASE, new, 0.02)
    assert found.deciding
    assert set(found.deciding) <= set(range(15))


def test_the_samples_that_would_decide() -> None:
    """Were these samples not lower, it would pass; with one of them fewer it would not."""
    steps = np.zeros(300)
    steps[:30] = np.linspace(-0.3, -0.1, 30)
    new = Column.of(np.clip(np.array(SCORES) + steps, 0, 1).tolist(), UNIT)
    found = gate_drop(BASE, new, 0.02)
    assert found.verdict is Verdict.CANNOT_TELL
    assert found.deciding
    assert set(found.deciding) <= set(range(30))
    assert found.would is Verdict.PASS
    for places, verdict in ((found.deciding, Verdict.PASS), (found.deciding[:-1], Verdict.CANNOT_TELL)):
        values = new.values.copy()
        values[list(places)] = BASE.values[list(places)]
        assert gate_drop(BASE, Column.of(values.tolist(), UNIT), 0.02).verdict is verdict


def test_where_no_few_samples_would_pass_those_that_would_fail_are_named() -> None:
    """Of 1,000 with a mean of 0.26 not even 20 at the best reach 0.28, but a few more at the worst rule it out."""
    large = Column.of([1.0] * 260 + [0.0] * 740, UNIT)
    found = gate_minimum(large, 0.28)
    assert (found.verdict, found.would) == (Verdict.CANNOT_TELL, Verdict.FAIL)
    for places, verdict in ((found.deciding, Verdict.FAIL), (found.deciding[:-1], Verdict.CANNOT_TELL)):
        changed = large.values.copy()
        changed[list(places)] = 0.0
        assert gate_minimum(Column.of(changed.tolist(), UNIT), 0.28).verdict is verdict


def test_nothing_to_judge_cannot_tell() -> None:
    """No score, one score, all failed, or a range that bounds nothing: cannot tell, and why."""
    gone: list[float | Missing] = [Missing.FAILED] * 40
    for column, why in (
        (Column.of([], UNIT), "0 scored samples"),
        (Column.of([0.5], UNIT), "1 scored sample"),
        (Column.of([*SCORES, Missing.FAILED], (0.0, float("inf"))), "range is infinite"),
    ):
        found = gate_minimum(column, 0.5)
        assert found.verdict is Verdict.CANNOT_TELL
        assert why in found.reason
    failed = gate_minimum(Column.of(gone, UNIT), 0.5)
    assert failed.verdict is Verdict.CANNOT_TELL
    assert failed.value is None
    assert gate_drop(Column.of([], UNIT), Column.of([], UNIT), 0.1).verdict is Verdict.CANNOT_TELL
    with pytest.raises(ValueError, match="0 or more"):
        gate_drop(BASE, BASE, -0.1)
    with pytest.raises(ValueError, match=r"0\.5 and 1"):
        gate_minimum(BASE, 0.5, level=0.05)
