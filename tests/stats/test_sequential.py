"""Intervals that hold however often one looks."""

from __future__ import annotations

import time

import numpy as np
import pytest

from merilo.stats.gate import GateVerdict
from merilo.stats.sequential import (
    StreamingGate,
    _bets,
    _capital,
    confidence_sequence,
    sequential_gate,
    sequential_interval,
    sequential_outlook,
)

UNIT = (0.0, 1.0)
FORTY = np.array(
    [0.644, 0.841, 0.424, 0.281, 0.252, 0.125, 0.397, 0.545, 0.521, 0.749, 0.519, 0.323, 0.537, 0.34, 0.452, 0.343,
     0.568, 0.565, 0.311, 0.257, 0.819, 0.684, 0.738, 0.495, 0.393, 0.767, 0.258, 0.508, 0.606, 0.094, 0.096, 0.608,
     0.155, 0.193, 0.744, 0.91, 0.578, 0.443, 0.353, 0.928]
)  # fmt: skip
CAPITAL = {
    0.3: (0.7866666666666666, 4.458266011125855, 1872.4597383486719),
    0.5: (0.5720000000000001, 0.49165895857433767, 0.33250934437014384),
    0.72: (0.5678571428571428, 12.223907689038837, 40233.05078215713),
}
"""What the authors' package confseq 0.0.11 gives (betting_mart, alpha 0.05) after 1, 10 and 40 of FORTY."""
LONG = np.random.default_rng(11).beta(2, 2, 1_000)


@pytest.mark.parametrize("mean", CAPITAL)
def test_the_capital_is_the_authors(mean: float) -> None:
    """The greater half of both sides' capitals equals that of the authors' own code."""
    sides = (FORTY, mean), (1 - FORTY, 1 - mean)
    found = [_capital(values, _bets(values, 0.025), np.array([m]))[[0, 9, 39], 0] / 2 for values, m in sides]
    assert np.maximum(*found) == pytest.approx(CAPITAL[mean], rel=1e-9)


def test_an_end_is_where_the_capital_reaches_its_mark() -> None:
    """Just outside the last interval a mean was refuted at some time, just inside never."""
    ends = sequential_interval(LONG, UNIT).ends
    assert ends is not None
    for values, end in ((LONG, ends[0]), (1 - LONG, 1 - ends[1])):
        bets = _bets(values, 0.025)
        inside, outside = (_capital(values, bets, np.array([end + step])).max() for step in (1e-9, -1e-9))
        assert outside >= 40 > inside


def test_a_sequence_narrows_to_its_last_interval() -> None:
    """Limits never widen, hold the last interval, and end in it; each is that of the units so far, or a bit wider."""
    found = confidence_sequence(LONG, UNIT)
    ends = sequential_interval(LONG, UNIT).ends
    assert (found.low[-1], found.high[-1]) == pytest.approx(ends, abs=1e-12)
    assert (np.diff(found.low) >= 0).all()
    assert (np.diff(found.high) <= 0).all()
    for count in (1, 10, 150, 600):
        known = sequential_interval(LONG[:count], UNIT).ends
        assert known is not None
        assert known[0] - 1 / 400 <= found.low[count - 1] <= known[0] + 1e-12
        assert known[1] - 1e-12 <= found.high[count - 1] <= known[1] + 1 / 400


def test_a_thousand_units_take_no_time() -> None:
    """The whole sequence of 1,000 units takes less than 50 ms of CPU."""
    spent = list[float]()
    for _ in range(5):
        start = time.process_time()
        confidence_sequence(LONG, UNIT)
        spent.append(time.process_time() - start)
    assert min(spent) < 0.05


def test_a_range_scales() -> None:
    """Values from -1 to 1 give the interval of those from 0 to 1, stretched."""
    small, large = (sequential_interval(*each).ends for each in ((LONG, UNIT), (2 * LONG - 1, (-1.0, 1.0))))
    assert small is not None
    assert large == pytest.approx([2 * end - 1 for end in small], abs=1e-9)


def test_the_gate_stops_when_the_limit_passes_its_threshold() -> None:
    """It passes with the first unit at which the lower limit is at least the threshold, and fails likewise."""
    for asked, verdict in ((0.4, GateVerdict.PASS), (0.6, GateVerdict.FAIL)):
        found = sequential_gate(LONG, asked, UNIT)
        assert found.verdict is verdict
        before, at = (sequential_interval(LONG[: found.units - back], UNIT, level=0.9).ends for back in (1, 0))
        assert before is not None
        assert at == pytest.approx(found.interval.ends, abs=1e-9)
        assert before[0] < asked < before[1]
        assert not found.interval.ends[0] < asked < found.interval.ends[1]
    assert sequential_gate(LONG, 0.5, UNIT).verdict is GateVerdict.CANNOT_TELL
    assert sequential_gate(LONG, 0.5, UNIT).units == 1_000


def test_no_unit_tells_nothing() -> None:
    """Without a unit nothing is told, and an infinite range is refused."""
    assert sequential_gate([], 0.5, UNIT).verdict is GateVerdict.CANNOT_TELL
    assert sequential_interval([], UNIT).note == "cannot tell from 0 scored samples"
    assert len(confidence_sequence([], UNIT).low) == 0
    with pytest.raises(ValueError, match="finite range"):
        sequential_interval([0.5], (0.0, float("inf")))
    with pytest.raises(ValueError, match="range"):
        sequential_interval([1.5], UNIT)


def test_whether_it_can_pay_is_told_beforehand() -> None:
    """Far from the threshold it stops early and pays; near it, it decides less often than one look at all units."""
    far, near = (sequential_outlook(LONG[:100], asked, UNIT, most=200) for asked in (0.3, 0.46))
    assert far.units is not None
    assert far.units < 60
    assert far.pays
    assert near.decided is not None
    assert near.decided_fixed is not None
    assert near.decided < near.decided_fixed
    assert not near.pays
    assert near.width_ratio is not None
    assert 1.3 < near.width_ratio < 1.7
    assert near == sequential_outlook(LONG[:100], 0.46, UNIT, most=200)


@pytest.mark.parametrize("pilot", [[0.5] * 9, [0.5] * 30])
def test_a_pilot_that_tells_nothing(pilot: list[float]) -> None:
    """A pilot of fewer than 10 values, or of equal ones, gives no outlook and says so."""
    found = sequential_outlook(pilot, 0.4, UNIT, most=100)
    assert found.width_ratio is None
    assert not found.pays
    assert found.note.startswith("cannot tell from a pilot of")


@pytest.mark.parametrize("seed", range(30))
def test_values_one_by_one_decide_as_all_at_once(seed: int) -> None:
    """The running form stops at the same unit with the same verdict, whatever the values and the minimum."""
    rng = np.random.default_rng(seed)
    count, asked = int(rng.integers(1, 400)), float(rng.random())
    values = [rng.beta(2, 2, count), (rng.random(count) < 0.8) * 1.0, rng.beta(0.5, 4.5, count)][seed % 3]
    looking = StreamingGate(asked, UNIT)
    for value in values.tolist():
        looking.add(value, value)
    found = sequential_gate(values, asked, UNIT)
    assert (looking.verdict, looking.units) == (found.verdict, found.units)


def test_what_is_unknown_passes_only_at_its_worst_and_fails_only_at_its_best() -> None:
    """Values known as an interval decide what their ends decide, and nothing where these disagree."""
    known, unknown = [1.0] * 60, [(0.0, 1.0)] * 60
    looking = StreamingGate(0.5, UNIT)
    for low, high in unknown:
        looking.add(low, high)
    assert looking.verdict is GateVerdict.CANNOT_TELL
    looking = StreamingGate(0.5, UNIT)
    for value in known:
        looking.add(value, value)
    assert looking.verdict is GateVerdict.PASS


def test_a_minimum_that_every_mean_meets_or_none_is_decided_at_once() -> None:
    """At or below the lower end of the range it passes, above the upper end it fails, before any value."""
    assert [StreamingGate(asked, UNIT).verdict for asked in (-1.0, 0.0, 1.5)] == [
        GateVerdict.PASS,
        GateVerdict.PASS,
        GateVerdict.FAIL,
    ]
    with pytest.raises(ValueError, match="finite range"):
        StreamingGate(0.5, (0.0, float("inf")))
