"""Pass, fail, or cannot tell."""

import numpy as np
import pytest
from drop_gates import drop_decisions
from scipy import stats

from merilo.stats.column import Column, Missing
from merilo.stats.compare import Conclusion, Policy, compare
from merilo.stats.gate import Decision, GateVerdict, gate_minimum
from merilo.stats.means import mean_interval

UNIT = (0.0, 1.0)
SOURCE = np.random.default_rng(9)
SCORES = SOURCE.beta(6, 3, 300).tolist()
BASE = Column.of(SCORES, UNIT)


def shifted(by: float, spread: float = 0.02) -> Column:
    """The same samples, each changed by about so much."""
    steps = np.random.default_rng(10).normal(by, spread, 300)
    return Column.of(np.clip(np.array(SCORES) + steps, 0, 1).tolist(), UNIT)


def drop(new: Column, allowed: float, base: Column = BASE, undefined: Policy = Policy.DROP) -> Decision:
    """The decision on one drop."""
    return drop_decisions({"m": (new, base)}, {"m": allowed}, undefined=undefined)["m"]


def test_a_minimum_is_read_from_the_interval_of_the_mean() -> None:
    """Pass at its lower end, fail above its upper end, cannot tell between; it is the interval that runs print."""
    low, high = mean_interval(SCORES, UNIT).interval.ends or UNIT
    for asked, verdict in (
        (low - 1e-6, GateVerdict.PASS),
        (low + 1e-6, GateVerdict.CANNOT_TELL),
        (high - 1e-6, GateVerdict.CANNOT_TELL),
        (high + 1e-6, GateVerdict.FAIL),
    ):
        found = gate_minimum(BASE, asked)
        assert found.verdict is verdict
        assert (found.lower, found.upper) == (low, high)


@pytest.mark.parametrize(("size", "asked"), [(200, 0.9), (300, 0.945), (20, 0.99)])
def test_a_threshold_that_is_the_true_rate_is_decided_wrongly_once_in_twenty_times(size: int, asked: float) -> None:
    """Enumerated over the number of ones: passing at a rate just below, and failing at the rate itself."""
    verdicts = [
        gate_minimum(Column.of([1.0] * ones + [0.0] * (size - ones), UNIT), asked).verdict for ones in range(size + 1)
    ]
    for wrong in (GateVerdict.PASS, GateVerdict.FAIL):
        ones = [place for place, found in enumerate(verdicts) if found is wrong]
        assert stats.binom.pmf(ones, size, asked).sum() <= 0.05


def test_a_drop_that_is_just_allowed_passes_once_in_twenty_times() -> None:
    """Enumerated over losses among 150 pairs without gains: 5 % are lost, and 5 % are allowed."""
    base = Column.of([1.0] * 150, UNIT)
    verdicts = [drop(Column.of([0.0] * lost + [1.0] * (150 - lost), UNIT), 0.05, base).verdict for lost in range(40)]
    passed = [place for place, found in enumerate(verdicts) if found is GateVerdict.PASS]
    assert 0.01 < stats.binom.pmf(passed, 150, 0.05).sum() <= 0.05


def test_missing_outcomes_may_not_change_a_minimum() -> None:
    """At either end of the range the verdict must be the same; each policy says what of the Undefined."""
    gaps: list[float | Missing] = [*SCORES, *[Missing.UNDEFINED] * 60, *[Missing.FAILED] * 3]
    column = Column.of(gaps, UNIT)
    found, dropped = gate_minimum(column, 0.6), gate_minimum(column, 0.6, undefined=Policy.DROP)
    worst = gate_minimum(column, 0.6, undefined=Policy.WORST)
    assert (found.verdict, found.open) == (GateVerdict.CANNOT_TELL, True)
    assert (dropped.verdict, dropped.open) == (GateVerdict.PASS, False)
    assert worst.verdict is GateVerdict.FAIL
    assert (found.lower, found.upper) == mean_interval(SCORES, UNIT).interval.ends
    assert (worst.lower, worst.upper) == mean_interval([*SCORES, *[0.0] * 60], UNIT).interval.ends
    assert "samples without a score could change that" in found.reason
    assert gate_minimum(column, 0.3).verdict is GateVerdict.PASS
    assert not gate_minimum(column, 0.66).open  # the scored samples alone do not decide


def test_a_drop_is_a_comparison_with_an_allowance() -> None:
    """Pass if all of the interval of `compare` is within the drop; fail if it is worse and reaches beyond."""
    assert drop(shifted(-0.01), 0.03).verdict is GateVerdict.PASS
    assert drop(shifted(-0.05), 0.02).verdict is GateVerdict.FAIL
    assert drop(shifted(0.05), 0.0).verdict is GateVerdict.PASS
    new = shifted(0.02, 0.15)
    found, known = drop(new, 0.02), compare({"m": (new, BASE)})["m"]
    assert found.verdict is GateVerdict.CANNOT_TELL
    assert (found.lower, found.upper) == known.interval.ends
    assert found.value == known.difference


@pytest.mark.parametrize("allowed", [0.0, 0.01, 0.02, 0.05])
@pytest.mark.parametrize("by", [-0.08, -0.05, -0.02, 0.0, 0.03])
def test_no_gate_fails_what_compare_does_not_call_worse(by: float, allowed: float) -> None:
    """Whatever is allowed, a failure is a significant drop, and a pass is none beyond the allowed one."""
    new = shifted(by, 0.2)
    known, found = compare({"m": (new, BASE)})["m"], drop(new, allowed)
    low, _ = known.interval.ends or (-1.0, 1.0)
    assert (found.verdict is GateVerdict.FAIL) == (known.reading is Conclusion.SECOND_HIGHER and low < -allowed)
    assert (found.verdict is GateVerdict.PASS) == (low >= -allowed)


def test_failures_are_shown_for_all_drops_together() -> None:
    """A drop with p = .02 fails alone, and not as one of eight (Holm), whose intervals are wider."""
    new = shifted(-0.0035, 0.07)
    p = compare({"m": (new, BASE)})["m"].p or 0
    assert 0.05 / 8 < p < 0.05
    assert drop(new, 0.0).verdict is GateVerdict.FAIL
    several = {"m": (new, BASE), **{f"near {place}": (shifted(0.022, 0.09), BASE) for place in range(7)}}
    found = drop_decisions(several, dict.fromkeys(several, 0.0) | {"near 1": 0.05})
    assert found["m"].verdict is GateVerdict.CANNOT_TELL
    assert (found["m"].upper or 0) > 0
    assert found["near 1"].verdict is GateVerdict.PASS


def test_a_drop_of_a_metric_where_lower_is_better_is_a_rise() -> None:
    """Twice the noise is a drop; the value is positive if the run is better."""
    base, new = (Column.of([value] * 299 + [value + 0.01], UNIT, higher_is_better=False) for value in (0.1, 0.3))
    assert drop(new, 0.05, base).verdict is GateVerdict.FAIL
    assert drop(base, 0.05, new).verdict is GateVerdict.PASS
    found = drop(new, 0.05, base)
    assert found.value == pytest.approx(-0.2)
    assert found.lower is not None
    assert found.upper is not None
    assert found.lower < -0.2 < found.upper < 0


def test_equal_scores_exclude_a_drop_of_four_in_n() -> None:
    """Equal scores: 300 of them exclude a drop of 0.9 (1 - 0.025^(1/300)), by as much as a loss could hide."""
    found = drop(BASE, 0.02)
    assert found.verdict is GateVerdict.PASS
    assert found.lower == pytest.approx(0.9 * (0.025 ** (1 / 300) - 1))
    small = Column.of(SCORES[:20], UNIT)
    assert drop(small, 0.02, small).verdict is GateVerdict.CANNOT_TELL


def test_one_sided_missing_outcomes_can_hide_a_drop() -> None:
    """What the new run lacks stands at the worst for passing, and at the best for failing."""
    outcomes: list[float | Missing] = [*[Missing.UNDEFINED] * 15, *SCORES[15:]]
    new = Column.of(outcomes, UNIT)
    found = drop(new, 0.02)
    assert (found.verdict, found.open) == (GateVerdict.CANNOT_TELL, True)
    assert drop(new, 0.01, undefined=Policy.WORST).verdict is GateVerdict.FAIL


def test_nothing_to_judge_cannot_tell() -> None:
    """No score, one score, all failed, or a range that bounds nothing: cannot tell, and why."""
    gone: list[float | Missing] = [Missing.FAILED] * 40
    for column, why in (
        (Column.of([], UNIT), "from 0 scored samples"),
        (Column.of([0.5], UNIT), "from 1 scored sample"),
        (Column.of([*SCORES, Missing.FAILED], (0.0, float("inf"))), "without a score could change"),
    ):
        found = gate_minimum(column, 0.5)
        assert found.verdict is GateVerdict.CANNOT_TELL
        assert why in found.reason
    failed = gate_minimum(Column.of(gone, UNIT), 0.5)
    assert failed.verdict is GateVerdict.CANNOT_TELL
    assert failed.value is None
    empty = drop(Column.of([], UNIT), 0.1, Column.of([], UNIT))
    assert (empty.verdict, empty.value) == (GateVerdict.CANNOT_TELL, None)
    assert "there is no pair of scores" in empty.reason
    with pytest.raises(ValueError, match="0 or more"):
        drop(BASE, -0.1)
