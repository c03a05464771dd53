"""Limits that hold however often one looks: their formula, their coverage at all sizes, and how soon they decide."""

from __future__ import annotations

from math import fsum, log, prod
from typing import TYPE_CHECKING

import numpy as np
import pytest
import simulated
from scipy.optimize import brentq
from scipy.stats import norm

from merilo.stats.column import Column, Missing
from merilo.stats.correction import Labels, correct
from merilo.stats.gate import GateVerdict, drop_decisions, gate_minimum
from merilo.stats.means import mean_interval
from merilo.stats.sequential import _BETS, _SHARES, confidence_sequence, level_at, sequential_limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]
    Draw = Callable[[np.random.Generator, int], Numbers]

UNIT, BOTH = (0.0, 1.0), (-1.0, 1.0)
LONG = np.random.default_rng(11).beta(2, 2, 400)


def capital(values: Numbers, mean: float) -> float:
    """The largest capital of the formula, in plain arithmetic."""
    spread = [(bet, share / fsum(_SHARES)) for bet, share in zip(_BETS, _SHARES, strict=True)]
    gains = (values / mean - 1).tolist()
    return max(
        fsum(share * prod(1 + bet * gain for gain in gains[:size]) for bet, share in spread)
        for size in range(1, len(gains) + 1)
    )


def test_a_limit_is_where_the_capital_reached_its_mark() -> None:
    """Just below the lower limit a mean was refuted at some size, just above it never; the upper one mirrors it."""
    low, high = sequential_limits(LONG, UNIT)
    for values, end in ((LONG, low), (1 - LONG, 1 - high)):
        below, above = capital(values, end - 2e-7), capital(values, end + 2e-7)
        assert below >= 20 > above


def test_equal_scores_have_the_limit_of_the_equation() -> None:
    """After n ones, the sum of share · (1 + bet · (1 / m - 1))^n is 20 at the lower limit m; 100 ones exclude 0.95."""
    shares = np.array(_SHARES) / sum(_SHARES)
    for count in (10, 100):
        wanted = brentq(lambda m, n=count: shares @ (1 + np.array(_BETS) * (1 / m - 1)) ** n - 20, 0.1, 0.9999)
        low, high = sequential_limits(np.ones(count), UNIT)
        assert (low, high) == (pytest.approx(wanted, abs=1e-6), 1.0)
    assert low > 0.95


def test_limits_never_widen_and_scale_with_the_range() -> None:
    """More values keep or narrow the interval; values from -1 to 1 have the stretched one."""
    ends = [sequential_limits(LONG[:size], UNIT) for size in (1, 5, 20, 100, 400)]
    assert [low for low, _ in ends] == sorted(low for low, _ in ends)
    assert [high for _, high in ends] == sorted((high for _, high in ends), reverse=True)
    assert sequential_limits(2 * LONG - 1, BOTH) == pytest.approx([2 * end - 1 for end in ends[-1]], abs=1e-6)


def test_clusters_of_one_are_samples_and_equal_clusters_their_means() -> None:
    """Each sample as its own cluster changes nothing; clusters of four equal scores decide as one score each."""
    alone = sequential_limits(LONG, UNIT)
    assert sequential_limits(LONG, UNIT, codes=np.arange(len(LONG))) == pytest.approx(alone)
    fours = np.repeat(np.arange(len(LONG)), 4)
    assert sequential_limits(np.repeat(LONG, 4), UNIT, codes=fours, largest=4) == pytest.approx(alone)


def test_the_public_interval_is_two_sided() -> None:
    """Its ends are one-sided limits at 97.5 %; without a score there is none, and other values are refused."""
    found = confidence_sequence(LONG, UNIT)
    assert found.ends == sequential_limits(LONG, UNIT, level=0.975)
    assert found.method == "hedged capital"
    assert confidence_sequence([], UNIT).note == "cannot tell from 0 scored samples"
    assert "infinite range" in confidence_sequence([0.5], (0.0, float("inf"))).note
    with pytest.raises(ValueError, match="range"):
        confidence_sequence([1.5], UNIT)


# -- gates ---------------------------------------------------------------------------------------------


def column(values: Numbers | list[float | Missing], *, higher: bool = True) -> Column:
    return Column.of(list(values), UNIT, higher_is_better=higher)


def test_gates_use_these_limits() -> None:
    """A minimum, a maximum and a drop; a drop has the limits of the differences in [-1, 1]."""
    low, high = sequential_limits(LONG, UNIT, level=0.975)
    found, turned = gate_minimum(column(LONG), 0.4, early=1), gate_minimum(column(1 - LONG, higher=False), 0.6, early=1)
    assert (found.lower, found.upper, found.verdict) == (low, high, GateVerdict.PASS)
    assert (turned.upper, turned.verdict) == (pytest.approx(1 - low), GateVerdict.PASS)
    assert gate_minimum(column(LONG), 0.6, early=1).verdict is GateVerdict.FAIL
    same = {"m": (column(LONG), column(LONG))}
    drop = drop_decisions(same, {"m": 0.1}, early=1)["m"]
    assert (drop.lower, drop.upper) == sequential_limits(np.zeros(len(LONG)), BOTH, level=0.975)
    assert drop.verdict is GateVerdict.PASS


def test_missing_outcomes_decide_only_what_holds_either_way() -> None:
    """Failed outcomes pass only at their worst and fail only at their best."""
    values: list[float | Missing] = [1.0, Missing.FAILED] * 40
    found = gate_minimum(column(values), 0.5, early=1)
    assert (found.verdict, found.open) == (GateVerdict.CANNOT_TELL, True)
    assert gate_minimum(column(values), 0.3, early=1).verdict is GateVerdict.PASS


def test_an_infinite_range_decides_nothing() -> None:
    """No limit holds at any time for every distribution in it."""
    endless = Column.of([0.5] * 60, (0.0, float("inf")))
    dropped = drop_decisions({"m": (endless, endless)}, {"m": 0.2}, early=1)["m"]
    for found in (gate_minimum(endless, 0.2, early=1), dropped):
        assert (found.verdict, found.lower) == (GateVerdict.CANNOT_TELL, None)
        assert "infinite range" in found.reason


# -- the promise: at any time, wrong at most 5 % of the time -------------------------------------------

STUDIES, SIZE = 400, 500


def shaped(name: str) -> Draw:
    return lambda source, size: simulated.SHAPES[name].quantile(source.random(size))


def rate(share: float) -> Draw:
    return lambda source, size: (source.random(size) < share).astype(float)


def grades(*shares: float) -> Draw:
    return lambda source, size: source.choice(np.linspace(0, 1, len(shares)), size, p=shares)


def differences(worse: float, better: float, deviation: float = 0.0) -> Draw:
    """Paired differences in [-1, 1], scaled to [0, 1]: shares of -1 and 1, and noise around 0."""

    def draw(source: np.random.Generator, size: int) -> Numbers:
        steps = source.choice([-1.0, 0.0, 1.0], size, p=[worse, 1 - worse - better, better])
        noise = np.clip(source.normal(0, deviation, size), -1, 1) if deviation else 0.0
        return (np.where(steps == 0, noise, steps) + 1) / 2

    return draw


DRAWS: dict[str, tuple[float, Draw]] = {
    **{f"rate {share}": (share, rate(share)) for share in (0.01, 0.1, 0.5, 0.8, 0.95, 0.99)},
    **{name: (simulated.SHAPES[name].mean, shaped(name)) for name in ("Beta(2,2)", "Beta(.5,4.5)", "92 % ones")},
    "mean of 5 grades": (simulated.SHAPES["mean of 5 grades"].mean, shaped("mean of 5 grades")),
    "3 grades near the top": (0.975, grades(0.01, 0.03, 0.96)),
    "5 grades": (0.5, grades(0.2, 0.2, 0.2, 0.2, 0.2)),
    "continuous near the top": (20 / 21, lambda source, size: source.beta(20, 1, size)),
    "differences of 0/1": (0.5, differences(0.1, 0.1)),
    "differences of 0/1, a drop": (0.475, differences(0.1, 0.05)),
    "rare differences": (0.5, differences(0.01, 0.01)),
    "differences near 0": (0.5, differences(0.0, 0.0, 0.1)),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_sequence_covers_the_mean_at_all_sizes_together(name: str) -> None:
    """In 400 studies of up to 500 samples the 95 % interval leaves out the mean at any size in at most 5 %."""
    mean, draw = DRAWS[name]
    source = np.random.default_rng(7)
    missed = sum(min(simulated.decided_at(draw(source, SIZE), mean, 0.975)) <= SIZE for _ in range(STUDIES))
    assert missed <= 0.05 * STUDIES


@pytest.mark.parametrize("early", [False, True])
def test_clusters_are_wrong_as_rarely(early: bool) -> None:
    """Large clusters with low scores: limits after whole clusters hold, as the ratio of sums is what is estimated."""
    source, wrong = np.random.default_rng(8), 0
    # Clusters of 1 to 8 samples; each has a rate of its own, lower in larger ones. The mean over samples is 0.56.
    sizes = np.arange(1, 9)
    rates = 0.9 - 0.06 * sizes
    mean = float(sizes @ rates / sizes.sum())
    for _ in range(150):
        chosen = source.integers(1, 9, 60)
        codes = np.repeat(np.arange(60), chosen)
        values = (source.random(len(codes)) < (0.9 - 0.06 * chosen)[codes]).astype(float)
        low, high = sequential_limits(values, UNIT, codes=codes, largest=8)
        wrong += low > mean if early else high < mean
    assert wrong <= 0.05 * 150


CLEAR: dict[str, tuple[float, Draw]] = {
    "rate 0.95 passes 0.85": (0.85, rate(0.95)),
    "rate 0.8 fails 0.9": (0.9, rate(0.8)),
    "a drop of 0.15 fails one of 0.02": (0.49, differences(0.16, 0.01)),
    "rate 0.8 passes 0.7": (0.7, rate(0.8)),
    "grades of 0.65 pass 0.6": (0.6, shaped("mean of 5 grades")),
    "no change passes a drop of 0.05": (0.475, differences(0.0, 0.0, 0.15)),
}


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=pytest.mark.long if number > 2 else ()) for number, each in enumerate(CLEAR)]
)
def test_a_clear_case_takes_at_most_about_twice_the_samples(name: str) -> None:
    """Half of the studies are decided by twice the samples with which one look decides 80 %."""
    asked, draw = CLEAR[name]
    source = np.random.default_rng(9)
    studies = [draw(source, 400) for _ in range(60)]

    def decides(size: int) -> bool:
        found = [mean_interval(each[:size], UNIT).interval.ends or UNIT for each in studies]
        return sum(low >= asked or high < asked for low, high in found) >= 0.8 * len(found)

    fixed = next(size for size in range(20, 400, 5) if decides(size))
    assert np.median([min(simulated.decided_at(each, asked, 0.975)) for each in studies]) <= 2 * fixed


# -- labels until they decide --------------------------------------------------------------------------


def test_the_level_is_that_of_the_boundary() -> None:
    """After 80 units at 95 % an interval reaches 3.03 standard errors; sqrt(1.125 · (ln 9 + 2 ln 20))."""
    assert norm.ppf((1 + level_at(80)) / 2) == pytest.approx((1.125 * (log(9) + 2 * log(20))) ** 0.5, rel=1e-9)
    assert 0.995 < level_at(320) < level_at(20) < 1


def test_a_random_walk_crosses_the_boundary_as_rarely_as_asked() -> None:
    """Normal steps, looked at after each from 20 to 1,000, cross in at most 5 % of 2,000 studies."""
    sizes = np.arange(20, 1_001)
    reach = norm.ppf([(1 + level_at(size)) / 2 for size in sizes.tolist()])
    walks = np.random.default_rng(3).normal(size=(2_000, 1_000)).cumsum(axis=1)[:, 19:]
    crossed = (np.abs(walks) / np.sqrt(sizes) > reach).any(axis=1).mean()
    assert 0.01 < crossed <= 0.05


def test_corrected_means_cover_at_all_numbers_of_labels_together() -> None:
    """Labels of 0 or 1, looked at six times from 20 to 320: at most 3 of 60 studies ever miss the mean."""
    source, missed, share = np.random.default_rng(12), 0, 0.8
    for _ in range(60):
        people = (source.random(800) < share).astype(float)
        judge = np.where(source.random(800) < 0.2, 1 - people, people)
        order, covered = source.permutation(800), True
        for count in (20, 40, 80, 140, 220, 320):
            chosen = order[:count]
            labels = Labels.of(chosen.tolist(), people[chosen].tolist(), judge[chosen].tolist(), sequential=True)
            ends = correct(judge, labels, UNIT).corrected.interval.ends
            covered &= ends is not None and ends[0] <= share <= ends[1]
        missed += not covered
    assert missed <= 0.05 * 60
