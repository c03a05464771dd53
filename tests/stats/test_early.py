"""Gates over samples that were taken one by one and could end at any of them."""

from __future__ import annotations

import numpy as np
import pytest

from merilo.stats.column import Column, Missing
from merilo.stats.compare import Policy
from merilo.stats.early import early_drop, early_minimum
from merilo.stats.gate import GateVerdict, gate_minimum
from merilo.stats.sequential import sequential_gate, sequential_interval

UNIT = (0.0, 1.0)
VALUES = np.random.default_rng(5).beta(4, 2, 400)


def column(values: list[float | Missing] | np.ndarray, *, higher: bool = True) -> Column:
    return Column.of(list(values), UNIT, higher_is_better=higher)


@pytest.mark.parametrize("asked", [0.5, 0.66, 0.8])
def test_a_minimum_is_what_the_sequence_says(asked: float) -> None:
    """Verdict and limits are those of the confidence sequence, which are wider than the fixed ones."""
    found, fixed = early_minimum(column(VALUES), asked), gate_minimum(column(VALUES), asked)
    ends = sequential_interval(VALUES, UNIT, level=0.9).ends
    assert found.verdict is sequential_gate(VALUES, asked, UNIT).verdict
    assert (found.lower, found.upper) == ends
    assert found.lower is not None
    assert fixed.lower is not None
    assert found.lower < fixed.lower


def test_lower_is_better_mirrors_it() -> None:
    """A most of 0.5 over 1 - x is a least of 0.5 over x."""
    up, down = early_minimum(column(VALUES), 0.5), early_minimum(column(1 - VALUES, higher=False), 0.5)
    assert (up.verdict, down.verdict) == (GateVerdict.PASS, GateVerdict.PASS)
    assert down.upper == pytest.approx(1 - (up.lower or 0))
    assert "at most 0.5" in down.reason


def test_missing_outcomes_stand_at_both_ends() -> None:
    """With 100 of 400 undefined a mean of 1 may be 0.75; dropped it passes, as worst it fails."""
    values: list[float | Missing] = [Missing.UNDEFINED if n % 4 == 0 else 1.0 for n in range(400)]
    found = {policy: early_minimum(column(values), 0.9, undefined=policy).verdict for policy in (None, *Policy)}
    assert found == {None: GateVerdict.CANNOT_TELL, Policy.DROP: GateVerdict.PASS, Policy.WORST: GateVerdict.FAIL}


def test_a_drop_is_looked_at_pair_by_pair() -> None:
    """Equal runs exclude a drop; a fall of a tenth on every sample is one, and strict sees a smaller one."""
    base = column(np.clip(VALUES, 0.1, 1))
    same, fallen = early_drop(base, base, 0.1), early_drop(base, column(base.values - 0.1), 0.02)
    assert (same.verdict, fallen.verdict) == (GateVerdict.PASS, GateVerdict.FAIL)
    assert same.excluded_drop is not None
    assert same.excluded_drop < 0.1
    assert early_drop(base, column(base.values - 0.1), 0.2).verdict is GateVerdict.PASS
    assert early_drop(base, column(base.values - 0.1), 0.2, strict=True).verdict is GateVerdict.FAIL


def test_an_infinite_range_is_told() -> None:
    """No confidence sequence holds there."""
    endless = Column.of([1.0, 2.0], (0.0, float("inf")))
    assert early_minimum(endless, 0.5).verdict is GateVerdict.CANNOT_TELL
    assert "infinite range" in early_drop(endless, endless, 0.5).reason


def test_no_score_is_told() -> None:
    """Without any outcome there is nothing to look at."""
    assert early_minimum(column([]), 0.5).reason == "Asked for at least 0.5; cannot tell: there are no scores."
