"""Coverage of rank metrics whose values are computed from labelled verdicts by the metric's own plan."""

from functools import cache
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from merilo.data.sample import Sample
from merilo.engine.plan_run import PlanRun
from merilo.judging.kinds.contexts import RelevanceVerdict
from merilo.metrics.base import Score
from merilo.metrics.context_metrics import ContextPrecision
from merilo.stats.corrected_pairs import PairLabels, correct_pairs
from merilo.stats.correction import Labels, correct

STUDIES, SAMPLES, LABELLED, CONTEXTS = 100, 200, 40, 4
ALLOWED = 0.93 - 2 * sqrt(0.93 * 0.07 / STUDIES)
PRECISION = ContextPrecision()


@cache
def value(grades: tuple[int, ...]) -> float:
    """The value that the plan of context_precision computes from these verdicts."""
    texts = [f"Text {place}." for place in range(len(grades))]
    plan = PlanRun(PRECISION, "context_precision", Sample("s", user_input="Where?", retrieved_contexts=texts)).start()
    while plan.step is not None:
        plan.send([(b"", RelevanceVerdict(grade, (0,) if grade else ())) for grade in grades])
    outcome = plan.result().outcome
    assert isinstance(outcome, Score)
    return outcome.value


def values(quality: NDArray[np.float64]) -> NDArray[np.float64]:
    """The value of each sample."""
    grades = (quality > 0).astype(int) + (quality > 1)
    return np.array([value(tuple(row)) for row in grades.tolist()])


def study(source: np.random.Generator, samples: int) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Two systems by people and by a judge that is kinder to the first, with an error that each sample shares."""
    ease = source.logistic(size=(samples, 1))
    found = list[tuple[NDArray[np.float64], NDArray[np.float64]]]()
    for lenient in (1.5, 0.0):
        quality = ease + source.logistic(size=(samples, CONTEXTS))
        shared, own = source.normal(size=(samples, 1)), source.normal(size=quality.shape)
        found.append((values(quality), values(quality + lenient + 1.3 * shared + 0.8 * own)))
    return found


def test_average_precision_from_whole_labelled_samples_is_covered() -> None:
    """In 100 studies with 40 labelled samples, means and differences cover the truth as often as 95 % intervals do."""
    source = np.random.default_rng(3)
    truth = float(study(source, 100_000)[1][0].mean())  # the two systems do not differ by people
    mean = pair = raw = 0
    for _ in range(STUDIES):
        one, two = study(source, SAMPLES)
        places = source.choice(SAMPLES, LABELLED, replace=False)
        (human, judge), other = ((each[0][places], each[1][places]) for each in (one, two))
        found = correct(one[1], Labels.of(places.tolist(), human.tolist(), judge.tolist()), (0.0, 1.0))
        labels = PairLabels(places, (human, judge), other).differences()
        low, high = found.corrected.interval.ends or (1.0, 0.0)
        mean += low <= truth <= high
        low, high = correct_pairs(one[1] - two[1], labels, (-1.0, 1.0)).corrected.interval.ends or (1.0, 0.0)
        pair += low <= 0 <= high
        low, high = found.raw.interval.ends or (1.0, 0.0)
        raw += low <= truth <= high
    assert min(mean, pair) / STUDIES >= ALLOWED
    assert raw / STUDIES < 0.05
