"""Whom a watch puts an alarm down to, and how rarely it raises one without a change."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from merilo.commands.watch.evidence import DAY_S, SCORED, Evidence, JudgedUnit, State

if TYPE_CHECKING:
    from collections.abc import Callable

TOPICS = {"easy": 0.95, "usual": 0.8, "hard": 0.6}
Stream = tuple[list[JudgedUnit], Evidence]


def units(source: random.Random, day: float, count: int, means: dict[str, float], mix: list[int]) -> list[JudgedUnit]:
    """0/1 scores of topics in a mix."""
    names = source.choices([*means], mix, k=count)
    scores = [float(source.random() < means[name]) for name in names]
    pairs = zip(names, scores, strict=True)
    return [JudgedUnit(day * DAY_S, name, {"m": score, SCORED: 1.0}, frozenset()) for name, score in pairs]


def watched(seed: int, traffic: Callable[[int], tuple[dict[str, float], list[int]]], days: int) -> Stream:
    """The units until the alarm, 90 a day after 20 days in which the topics are equally frequent."""
    source = random.Random(seed)
    reference = [each for day in range(-20, 0) for each in units(source, day, 90, TOPICS, [1, 1, 1])]
    evidence = Evidence.of(reference, None, 0.05, asks_anchors=False, can_blame=True, started=0.0)
    found: list[JudgedUnit] = []
    for day in range(1, days + 1):
        found += units(source, day, 90, *traffic(day))
        evidence.add(day * DAY_S, evidence.weight_at(day * DAY_S), found[-90:])
        if evidence.alarms:
            break
    return found, evidence


def fallen(*topics: str, by: float) -> dict[str, float]:
    return {name: mean - by * (name in topics) for name, mean in TOPICS.items()}


@pytest.mark.parametrize(
    ("means", "mix", "state", "names"),
    [
        (fallen("hard", by=0.5), [8, 8, 1], State.SYSTEM, {"hard"}),  # the mean of all hardly moves
        (fallen(*TOPICS, by=0.3), [1, 1, 1], State.SYSTEM, None),
        (fallen(*TOPICS, by=0.15), [6, 1, 1], State.SYSTEM, None),  # easier questions hide the fall in the mean
        (TOPICS, [1, 1, 12], State.QUESTIONS, set()),
    ],
)
@pytest.mark.parametrize("seed", [11, 12, 13])
def test_an_alarm_is_put_down_to_its_cause(
    seed: int, means: dict[str, float], mix: list[int], state: State, names: set[str] | None
) -> None:
    """A topic that falls is named; topics that all fall are the system; a harder mix alone never is."""
    traffic, evidence = watched(seed, lambda day: (means if day > 10 else TOPICS, mix if day > 10 else [1, 1, 1]), 80)
    assert evidence.alarms
    found = evidence.conclusion(traffic)
    assert found["state"] in {state, *([State.CANNOT_TELL] if state == State.QUESTIONS else [])}
    assert found["after"] < found["before"]
    assert 6 <= int(found["since"][8:]) <= 13
    assert names is None or {each["slice"] for each in found["slices"]} == names


@pytest.mark.parametrize(
    ("harder", "traffic"),
    [
        (False, lambda _: (TOPICS, [1, 1, 1])),
        (False, lambda day: (TOPICS, [100 + day, 100, 100])),
        (True, lambda day: (TOPICS, [100, 100, 100 + 2 * day])),
    ],
    ids=["constant", "easier", "harder"],
)
def test_the_system_is_not_blamed_without_a_change(
    harder: bool, traffic: Callable[[int], tuple[dict[str, float], list[int]]]
) -> None:
    """Ten streams of 50 days: no alarm, or that the questions changed if they became harder."""
    for seed in range(20, 30):
        found, evidence = watched(seed, traffic, 50)
        assert not evidence.alarms or harder, seed
        assert not evidence.alarms or evidence.conclusion(found)["state"] != State.SYSTEM, seed


@pytest.mark.parametrize(("fails", "state"), [(True, State.JUDGE), (False, State.SYSTEM)])
def test_more_samples_without_a_score_are_an_alarm(fails: bool, state: State) -> None:
    """A third of the low answers fail: the judge is named, not the system; a metric that is undefined is the system."""

    def lose(each: JudgedUnit) -> JudgedUnit:
        if each.scores["m"] or source.random() > 0.5:
            return each
        return each._replace(scores={SCORED: 0.0}, failed=frozenset({"m"} if fails else ()))

    source = random.Random(1)
    found, evidence = watched(1, lambda _: (TOPICS, [1, 1, 1]), 0)
    for day in range(1, 12):
        new = [lose(each) for each in units(source, day, 90, TOPICS, [1, 1, 1])]
        evidence.add(day * DAY_S, evidence.weight_at(day * DAY_S), new)
        found += new
    assert evidence.value < 1
    assert evidence.alarms
    assert (evidence.conclusion(found)["state"], evidence.conclusion(found)["metric"]) == (state, SCORED)


def test_a_bad_hour_is_no_alarm_and_half_a_day_is() -> None:
    """Of looks every hour, three with 50 scores of 0 each are no alarm; of twelve in a row, one of the last is."""
    for hours, alarms in ((3, False), (12, True)):
        _, evidence = watched(5, lambda _: (TOPICS, [1, 1, 1]), 0)
        for hour in range(1, 13):
            at = DAY_S + hour * DAY_S / 24
            means = dict.fromkeys(TOPICS, 0.0) if hour <= hours else TOPICS
            evidence.add(at, evidence.weight_at(at), units(random.Random(hour), 1, 50, means, [1, 1, 1]))
        assert evidence.alarms is alarms


def test_days_that_lost_scores_while_learning_are_usual() -> None:
    """Looks with many failures are not learned, but that they come is: days with 20 % lost are then no alarm."""
    reference = [
        each for day in range(20) for each in units(random.Random(day), day, 90, TOPICS, [1, 1, 1]) if day % 2 == 0
    ]
    for lost, alarms in (({}, True), ({float(day): [0.2] * 90 for day in range(1, 20, 2)}, False)):
        evidence = Evidence.of(reference, None, 0.05, lost, asks_anchors=False, can_blame=True, started=0.0)
        for day in range(21, 60):
            new = units(random.Random(day), day, 90, TOPICS, [1, 1, 1])
            new = [
                each._replace(scores={SCORED: 0.0}) if place < 18 * (day % 2) else each
                for place, each in enumerate(new)
            ]
            evidence.add(day * DAY_S, evidence.weight_at(day * DAY_S), new)
        assert evidence.loses is alarms
