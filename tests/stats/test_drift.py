"""Drift of a mean: the laws of its evidence by enumeration and for any input, and the lines of its reference."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import product
from math import isfinite, prod, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betaincinv

from merilo.stats.drift import (
    DriftDetector,
    Line,
    MetricDrift,
    Unit,
    daily_deviation,
    e_bh,
    evidence_ratio,
    fell_since,
    mix_share,
)

UNIT = st.floats(0, 1).map(lambda number: round(number, 9))
STAKED = st.builds(DriftDetector.of, st.floats(0, 0.25), st.floats(0, 0.999))
ODDS = st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.6, 1.0]), st.integers(1, 9)), min_size=1)
UNITS = st.lists(st.builds(Unit, UNIT, st.sampled_from(["", "a", "b", "new"])), max_size=60)


def units(scores: list[float] | np.ndarray[tuple[int], np.dtype[np.float64]], name: str = "") -> list[Unit]:
    return [Unit(float(score), name) for score in scores]


def ones(count: int, of: int, name: str = "") -> list[Unit]:
    """0/1 scores in a mixed order."""
    return units(np.random.default_rng(0).permutation(np.repeat([1.0, 0.0], [count, of - count])), name)


REFERENCE = [*ones(72, 80, "a"), *ones(40, 80, "b"), *ones(10, 20, "rare")]
STATE = json.dumps(asdict(MetricDrift.of(REFERENCE, error=0.01)))


# -- evidence ------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(STAKED, ODDS, UNIT)
def test_evidence_grows_by_its_weight_in_expectation(
    detector: DriftDetector, odds: list[tuple[float, int]], weight: float
) -> None:
    """If the traffic's mean is the line, E[R] after a unit is R + w."""
    total = sum(count for _, count in odds)
    line = sum(score * count for score, count in odds) / total
    detector.evidence = [0.5, 0.0, 3.0, 1.0, 20.0]
    before = detector.value
    detector.start(weight)
    expected = 0.0
    for score, count in odds:
        after = DriftDetector(detector.stakes, detector.evidence)
        after.add(score, line)
        expected += count / total * after.value
    assert expected == pytest.approx(before + weight)


@given(st.floats(0, 0.25), st.floats(0, 0.999), UNIT, UNIT)
def test_no_score_removes_all_evidence(variance: float, lowest: float, above: float, score: float) -> None:
    """At the lowest line and above it each factor is positive, whatever the score and the variance are."""
    detector = DriftDetector.of(variance, lowest)
    detector.evidence = [1.0] * 5
    detector.add(score, lowest + above * (1 - lowest))
    assert min(detector.evidence) > 0.09


def test_false_alarms_are_at_most_alpha_at_all_looks_together() -> None:
    """Over all 4,096 sequences of 12 scores with the mean of the line, the ever alarmed have a probability below α."""
    line, alpha = 0.7, 0.6
    alarmed = 0.0
    for scores in product((0.0, 1.0), repeat=12):
        detector, raised = DriftDetector.of(0.21, line), False
        for at, score in enumerate(scores):
            if at % 4 == 0:
                detector.start(1 / 3)
            detector.add(score, line)
            raised |= detector.value >= 1 / alpha
        alarmed += raised * prod(line if score else 1 - line for score in scores)
    assert 0.05 < alarmed <= alpha


@settings(max_examples=20)
@given(UNITS, st.lists(st.integers(0, 60), max_size=5))
def test_evidence_does_not_depend_on_the_looks(traffic: list[Unit], looks: list[int]) -> None:
    """State that is written as JSON and read again at any times ends as that of one look."""
    one, several = (MetricDrift.from_state(json.loads(STATE)) for _ in range(2))
    for at, unit in enumerate(traffic):
        if at in looks:
            several = MetricDrift.from_state(json.loads(json.dumps(asdict(several))))
        for metric in (one, several):
            if at % 20 == 0:
                metric.start(0.01)
            metric.add(unit)
    assert asdict(several) == asdict(one)


def test_a_score_never_moves_its_own_line() -> None:
    """The score that doubles the reference is compared with the line before it."""
    metric = MetricDrift.of(ones(16, 20), error=0.01)
    metric.start(1.0)
    for _ in range(19):
        metric.add(Unit(1.0))
    before, expected = metric.lines[""].value, DriftDetector(metric.whole.stakes, metric.whole.evidence)
    expected.add(1.0, before)
    metric.add(Unit(1.0))
    assert metric.whole.evidence == expected.evidence
    assert metric.lines[""].value > before


def test_evidence_stays_finite_and_is_1_at_the_alarm() -> None:
    """5,000 zeros after an alarm leave numbers that JSON has; the ratio is 0 without evidence and 1 at 1/α."""
    metric = MetricDrift.of(ones(160, 200), error=0.01)
    metric.start(0.01)
    for _ in range(5_000):
        metric.add(Unit(0.0))
    assert all(map(isfinite, metric.whole.evidence))
    assert (evidence_ratio(0, 0.03), evidence_ratio(1 / 0.03, 0.03)) == (0, 1)


def test_failed_units_raise_nothing() -> None:
    """A failed unit counts as the best value for the evidence, and not at all for the lines."""
    metric = MetricDrift.of(REFERENCE, error=0.01)
    metric.start(1.0)
    lines, before = asdict(metric)["lines"], metric.value
    metric.add(Unit(0.0, "a"), failed=True)
    assert metric.value < before
    assert asdict(metric)["lines"] == lines


# -- lines ---------------------------------------------------------------------------------------------


def test_a_line_is_the_limit_at_the_error_of_its_step() -> None:
    """Of 0/1 scores it is Clopper & Pearson's limit: at error / 2, then, with twice the scores, at error / 4."""
    line = Line.of(ones(180, 200), 0.01, tolerance=0.005)
    assert line.value == pytest.approx(betaincinv(180, 21, 0.005) - 0.005, abs=1e-7)
    for unit in ones(190, 200):
        line.add(unit.score)
    assert line.value == pytest.approx(betaincinv(370, 31, 0.0025) - 0.005, abs=1e-7)
    assert (line.mean, line.variance) == (pytest.approx(0.925), pytest.approx(0.925 * 0.075))


def test_a_line_never_falls() -> None:
    """Zeros that double the reference twice leave the line."""
    line = Line.of(ones(40, 50), 0.01)
    before = line.value
    for _ in range(200):
        line.add(0.0)
    assert (line.value, line.step) == (before, 3)


@settings(max_examples=20)
@given(st.lists(UNIT, min_size=2, max_size=40))
def test_the_grades_keep_the_mean(scores: list[float]) -> None:
    """The mean of any scores is exact."""
    assert Line.of(units(scores), 0.01).mean == pytest.approx(np.mean(scores), abs=1e-12)


def test_days_vary_beyond_sampling_error_or_not() -> None:
    """Equal days have no deviation; days of 0 and of 1 have that of the analysis of variance."""
    mixed = [[0.0, 1.0] * 20] * 6
    assert daily_deviation(mixed) == daily_deviation([[0.5]]) == daily_deviation([]) == 0
    days = [[0.0] * 30 + [1.0] * 10, [0.0] * 10 + [1.0] * 30] * 3
    between, within = 40 * 6 * 0.25**2 / 5, 6 * 7.5 / 234
    assert daily_deviation(days) == pytest.approx(sqrt((between - within) / 40))


# -- slices --------------------------------------------------------------------------------------------


def test_slices_with_few_units_have_no_line() -> None:
    """Units of a rare or new slice count in the whole only; the lines share the error."""
    metric = MetricDrift.of(REFERENCE, error=0.01)
    assert set(metric.lines) == {"", "a", "b"}
    assert [line.error for line in metric.lines.values()] == [0.005, 0.0025, 0.0025]
    metric.start(0.1)
    for _ in range(200):
        metric.add(Unit(0.0, "new"))
    assert metric.whole.value > 1e6
    assert (metric.given.value, metric.slices["a"].value) == (pytest.approx(0.1), pytest.approx(0.1))


def test_the_slice_that_fell_is_named() -> None:
    """A fall of .5 in one slice is named after 60 units of each, the other one is not."""
    metric = MetricDrift.of(REFERENCE, error=0.01)
    metric.start(0.1)
    for fallen, steady in zip(ones(24, 60, "a"), ones(30, 60, "b"), strict=True):
        metric.add(fallen)
        metric.add(steady)
    assert e_bh({name: each.value for name, each in metric.slices.items()}, 0.01) == ["a"]


@settings(max_examples=40)
@given(st.lists(st.floats(0, 1e4), max_size=30), st.floats(0.01, 1))
def test_e_bh_names_as_many_as_its_rule_allows(values: list[float], alpha: float) -> None:
    """The names are the k largest for the largest k with k · e(k) / K ≥ 1/α; then the mean is at least 1/α too."""
    found = e_bh(dict(enumerate(values)), alpha)
    ordered = sorted(values, reverse=True)
    holds = [k for k in range(1, len(values) + 1) if k * ordered[k - 1] >= len(values) / alpha]
    assert [values[name] for name in found] == ordered[: max(holds, default=0)]
    assert not found or sum(values) / len(values) >= (1 - 1e-9) / alpha


def test_other_questions_are_told_from_worse_answers() -> None:
    """With more of the worse topic, none of the drop is left; with worse answers, all of it."""
    lines = MetricDrift.of(REFERENCE, error=0.01).lines
    mixed = mix_share(lines, [*ones(90, 100, "a"), *ones(150, 300, "b")])
    worse = mix_share(lines, [*ones(140, 200, "a"), *ones(60, 200, "b")])
    assert mixed[0] < 0 < mixed[1] < 0.15
    assert worse[0] < 0.2 < worse[1]
    assert worse[0] > 0.1
    assert mix_share(lines, ones(10, 100, "new")) == (0, 0)


# -- afterwards -----------------------------------------------------------------------------


def test_the_day_of_a_step_is_found() -> None:
    """Scores that fall from .8 to .6 on day 7 are dated to it; scores above the mean to the last day."""
    days = [(100.0, 80.0)] * 7 + [(100.0, 60.0)] * 3
    assert fell_since(days, 0.8) == (7, 0.6)
    assert fell_since([(100.0, 81.0)] * 4, 0.8) == (3, 0.8)
