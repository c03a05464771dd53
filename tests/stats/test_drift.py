"""Drift of a mean: the laws of its evidence by enumeration and for any input, and the days of its reference."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import product
from math import isfinite, prod, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merilo.stats.drift import (
    COLLAPSE,
    DaySeries,
    DriftDetector,
    Losses,
    MetricDrift,
    Unit,
    changed_p,
    e_bh,
    evidence_ratio,
    fell_since,
    mix_share,
    novelty,
)

UNIT = st.floats(0, 1).map(lambda number: round(number, 9))
STAKED = st.builds(DriftDetector.of, st.floats(0, 0.25), st.floats(0, 0.999))
ODDS = st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.6, 1.0]), st.integers(1, 9)), min_size=1)
UNITS = st.lists(st.builds(Unit, UNIT, st.sampled_from(["", "a", "b", "new"]), st.booleans()), max_size=60)


def ones(count: int, of: int, name: str = "") -> list[Unit]:
    """0/1 scores in a mixed order."""
    scores = np.random.default_rng(0).permutation(np.repeat([1.0, 0.0], [count, of - count]))
    return [Unit(float(score), name) for score in scores]


def days(*counts: int, of: int = 100) -> dict[float, list[Unit]]:
    """Return days with these counts of ones."""
    return {float(day): ones(count, of) for day, count in enumerate(counts)}


QUIET = (80, 83, 77, 84, 79, 76, 81)
"""Counts of ones of seven days; their mean is 80."""
REFERENCE = {float(day): [*ones(72, 80, "a"), *ones(40 + day % 3, 80, "b"), Unit(0.0, "rare")] for day in range(8)}
STATE = json.dumps(asdict(MetricDrift.of(REFERENCE, error=0.01)))


def drop(series: DaySeries, *counts: int, first: int = 100) -> None:
    """Add days with these counts of ones of 100."""
    for day, count in enumerate(counts, first):
        series.start(1 / 365)
        for unit in ones(count, 100):
            series.add(unit)
        series.close(day)


# -- evidence of units ---------------------------------------------------------------------------------


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
        after = DriftDetector(detector.evidence, detector.stakes)
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


# -- evidence of days ----------------------------------------------------------------------------------


def test_the_level_is_the_mean_less_its_error() -> None:
    """It is 1.64 errors below the mean of the learned days, at Student's quantile; a tolerance lowers it."""
    series = DaySeries.of(days(*QUIET))
    spread = float(np.std(np.array(QUIET) / 100, ddof=1))
    assert (series.mean, series.deviation) == (pytest.approx(0.8), pytest.approx(spread))
    assert series.level == pytest.approx(0.8 - 1.893 * spread / sqrt(7), abs=1e-4)
    assert DaySeries.of(days(*QUIET), 0.05).level == pytest.approx(series.level - 0.05)


def test_a_drop_of_days_is_found_and_a_single_day_is_not() -> None:
    """Four days at .60 are an alarm; one day at 0, such as an outage or a holiday, is not, nor are easier days."""
    fallen, holiday = (DaySeries.of(days(*QUIET)) for _ in range(2))
    drop(fallen, 60, 60, 60, 60)
    drop(holiday, 0, *QUIET)
    assert fallen.value > 25 > holiday.value
    drop(holiday, *[99] * 30, *QUIET * 2)
    assert holiday.value < 1


def test_weekdays_are_learned_from_two_weeks() -> None:
    """After 14 days weekends at .60 are no evidence; after 7, the spread of the week covers them."""
    week = [83, 80, 82, 81, 84, 60, 61]
    for learned in (7, 14):
        series = DaySeries.of(days(*(week * 2)[:learned]))
        drop(series, *week * 10, first=14)
        assert series.value < 1, learned
        assert (series.effects[5] < -0.1) == (series.fitted > 7)


def test_days_with_few_units_are_joined() -> None:
    """A day with fewer than 20 units waits for the next one."""
    series = DaySeries.of(days(*QUIET))
    for count in (10, 9):
        for unit in ones(0, count):
            series.add(unit)
        series.close(100)
    assert (series.day, len(series.means)) == ([19.0, 0.0, 0.0], 7)


def test_failed_units_are_the_worst_of_learned_days_and_the_best_later() -> None:
    """So failures while learning do not raise the level, and later ones raise no alarm of the mean."""
    failing = {day: [unit._replace(failed=at < 20) for at, unit in enumerate(own)] for day, own in days(*QUIET).items()}
    series = DaySeries.of(failing)
    assert max(series.means) < 0.8 < series.mean + 0.1
    before = series.level
    for unit in ones(0, 100):
        series.add(unit._replace(failed=True))
    series.start(1.0)
    series.close(100)
    assert series.value < 1
    assert series.level == before


def test_failures_are_evidence_of_their_own() -> None:
    """A rate of 13 % after 1 % is an alarm after a few days; a day on which all failed is not, nor is 1 %."""
    found = {}
    for name, lost in {"rate": [13] * 5, "outage": [100, *[0] * 5], "same": [1] * 300}.items():
        losses = Losses.of([[1.0] + [0.0] * 99] * 20)
        for count in lost:
            for at in range(100):
                losses.add(float(at < count))
            losses.close(1 / 365)
        found[name] = losses.evidence
    assert found["rate"] > 100
    assert max(found["outage"], found["same"]) < 1


def test_failures_that_come_by_days_are_learned() -> None:
    """9 % fail on one day in five, while learning and later: four such days one after another are no alarm."""
    losses = Losses.of([[1.0] * 9 + [0.0] * 91, *[[0.0] * 100] * 4] * 4)
    for lost in [9] * 4 + [0] * 8:
        for at in range(100):
            losses.add(float(at < lost))
        losses.close(1 / 365)
    assert losses.evidence < 1


def test_an_outage_does_not_hide_a_later_drop() -> None:
    """Two days on which 60 % fail leave the level and the spread of days as they are."""
    levels = []
    for outage in ((), (25, 26)):
        series = DaySeries.of({day: ones(80, 100) for day in range(20)})
        for day in range(20, 80):
            for at, unit in enumerate(ones(80, 100)):
                series.add(unit._replace(failed=day in outage and at % 5 < 3))
            series.start(1 / 365)
            series.close(day)
        levels.append((series.level, series.deviation))
    assert levels[0] == pytest.approx(levels[1], abs=0.01)


@settings(max_examples=20, deadline=None)
@given(UNITS, st.lists(st.integers(0, 60), max_size=5))
def test_evidence_does_not_depend_on_the_looks(traffic: list[Unit], looks: list[int]) -> None:
    """State that is written as JSON and read again at any times ends as that of one look."""
    one, several = (MetricDrift.from_state(json.loads(STATE)) for _ in range(2))
    for at, unit in enumerate(traffic):
        if at in looks:
            several = MetricDrift.from_state(json.loads(json.dumps(asdict(several))))
        for metric in (one, several):
            if at % 25 == 0:
                metric.start(at / 25, 0.01)
            metric.add(unit)
    assert asdict(several) == asdict(one)


def test_evidence_stays_finite_and_is_1_at_the_alarm() -> None:
    """A year of zeros after an alarm leaves numbers that JSON has; the ratio is 0 without evidence and 1 at 1/α."""
    metric = MetricDrift.of(days(*QUIET), error=0.01)
    for day in range(400):
        for unit in ones(0, 100):
            metric.add(unit)
        metric.start(day, 1 / 365)
    assert all(map(isfinite, [*metric.days[""].evidence, *metric.units.evidence]))
    assert (evidence_ratio(0, 0.03), evidence_ratio(1 / 0.03, 0.03)) == (0, 1)


def test_a_collapse_is_found_before_its_day_ends() -> None:
    """Eighty scores at .3 in the afternoon are an alarm; at .7, within the tolerance of single units, they are none."""
    for count, alarms in ((24, True), (56, False)):
        metric = MetricDrift.of(days(*QUIET), error=0.01)
        assert 0.8 - COLLAPSE - 0.05 < metric.line < 0.8 - COLLAPSE
        metric.start(10, 1 / 365)
        for unit in ones(count, 80):
            metric.add(unit)
        assert (metric.value > 25) == alarms


def test_days_that_vary_widen_what_counts_as_a_collapse() -> None:
    """If learned days vary by .14, one of .25 is no alarm in itself; if they are alike, it is one."""
    for counts, alarms in ((QUIET, True), ([94, 66] * 10, False)):
        metric = MetricDrift.of(days(*counts), error=0.01)
        metric.start(20, 1 / 365)
        for unit in ones(25, 100):
            metric.add(unit)
        assert (metric.value > 25) == alarms


@pytest.mark.parametrize(
    ("mean", "weekend", "holidays", "wander"),
    [(0.8, 0.0, 0, 0.0), (0.84, 0.15, 0, 0.0), (0.84, 0.15, 11, 0.0), (0.8, 0.0, 0, 0.03), (0.995, 0.0, 0, 0.0)],
)
def test_quiet_years_have_few_alarms(mean: float, weekend: float, holidays: int, wander: float) -> None:
    """Of 40 years with weekends, holidays or days that vary, at most 5 have an alarm, and half find a drop by .10."""
    source = np.random.default_rng(int(1_000 * (mean + weekend + wander)) + holidays)
    alarms = found = 0
    for _ in range(40):
        means = mean - weekend * (np.arange(405) % 7 >= 5) + source.normal(0, wander, 405)
        means[20 + source.choice(365, holidays, replace=False)] -= weekend
        means[385:] -= 0.1
        counts = source.binomial(100, np.clip(means, 0, 1)).tolist()
        series = DaySeries.of(days(*counts[:20]))
        raised = False
        for day, count in enumerate(counts[20:], 20):
            series.start(1 / 365)
            series.day = [100.0, 0.0, float(count)]
            series.close(day)
            raised |= day < 385 and series.value >= 25
        alarms, found = alarms + raised, found + (series.value >= 25)
    assert alarms <= 5, alarms
    assert found >= 20, found


# -- slices --------------------------------------------------------------------------------------------


def test_slices_with_few_units_have_no_days() -> None:
    """Units of a rare or new slice count in the whole only."""
    metric = MetricDrift.of(REFERENCE, error=0.01)
    assert set(metric.days) == {"", "a", "b"}
    for day in range(8, 20):
        for _ in range(100):
            metric.add(Unit(0.0, "new"))
        metric.start(day, 0.01)
    assert metric.days[""].value > 1e6
    assert metric.days["a"].value == pytest.approx(0.12)


def test_the_slice_that_fell_is_named() -> None:
    """A fall of .2 in one slice is named after five days, the other one is not."""
    metric = MetricDrift.of(REFERENCE, error=0.01)
    for day in range(8, 14):
        metric.start(day, 0.01)
        for unit in (*ones(56, 80, "a"), *ones(41, 80, "b")):
            metric.add(unit)
    assert e_bh({name: each.value for name, each in metric.days.items() if name}, 0.01) == ["a"]


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
    found = MetricDrift.of(REFERENCE, error=0.01).days
    mixed = mix_share(found, [*ones(90, 100, "a"), *ones(150, 300, "b")])
    worse = mix_share(found, [*ones(140, 200, "a"), *ones(60, 200, "b")])
    assert mixed[0] < 0.01 < mixed[1] < 0.15
    assert worse[0] < 0.2 < worse[1]
    assert worse[0] > 0.1
    assert mix_share(found, ones(10, 100, "new")) == (0, 0)


# -- afterwards ----------------------------------------------------------------------------------------


def test_the_day_of_a_step_is_found() -> None:
    """Scores that fall from .8 to .6 on day 7 are dated to it; scores above the mean to the last day."""
    sums = [(100.0, 80.0)] * 7 + [(100.0, 60.0)] * 3
    assert fell_since(sums, 0.8) == (7, 0.6)
    assert fell_since([(100.0, 81.0)] * 4, 0.8) == (3, 0.8)


def test_other_questions_are_a_shift_of_the_vectors_of_days() -> None:
    """Equal days have a p-value of 1; under no change it is uniform; a shift by three deviations of days is found."""
    source = np.random.default_rng(1)
    assert changed_p(np.ones((10, 3)), 3) == 1
    same = [changed_p(source.normal(size=(23, 8)), 3) for _ in range(200)]
    assert 0.01 <= np.mean(np.array(same) < 0.05) <= 0.1
    moved = source.normal(size=(23, 8)) + 3 * (np.arange(23) >= 20)[:, None]
    assert changed_p(moved, 3) < 0.01


def test_a_new_topic_is_far_from_all_days_and_a_recurring_one_is_not() -> None:
    """A topic that comes on every seventh day is near other days of its kind; a new one, on one day, stands out."""
    source = np.random.default_rng(2)
    topics = np.eye(12)
    for last, known in (([0, 1, 2, 11], False), ([0, 1, 8, 8], True)):
        asked = [[0, 1, 8, 8] if day % 7 == 6 else [0, 1, 2, 3] for day in range(28)] + [last]
        groups = [[f"{day} {place}" for place in range(4)] for day in range(29)]
        vectors = topics[[topic for own in asked for topic in own]] + source.normal(0, 0.05, (29 * 4, 12))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        found = novelty(vectors, groups, 1)
        assert (changed_p(found, 1) < 0.05) is not known
