"""The mean that annotators would give, from a judge's numbers and human labels of a few samples."""

import numpy as np
import pytest
from each_case import each_case

from merilo.stats.correction import Labels, Reported, correct, fitted_tuning

UNIT = (0.0, 1.0)
SOURCE = np.random.default_rng(12)
TRUTH = SOURCE.beta(2, 2, 400)
JUDGED = np.clip(TRUTH * 0.6 + 0.35 + SOURCE.normal(0, 0.08, 400), 0.01, 0.99)
"""Nowhere at an end of the range, so one stratum."""
DRAWN = SOURCE.choice(400, 50, replace=False)


def labels(places: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Labels:
    """Whole samples, labelled."""
    return Labels.of(places.tolist(), TRUTH[places].tolist(), JUDGED[places].tolist())


def withfitted_tuning(monkeypatch: pytest.MonkeyPatch, value: float) -> None:
    """Fix λ."""
    monkeypatch.setattr("merilo.stats.correction.fitted_tuning", lambda *_: value)


@pytest.mark.parametrize("tuning", [0.0, 0.4, 1.0])
def test_the_estimate_is_that_of_ppi_python(monkeypatch: pytest.MonkeyPatch, tuning: float) -> None:
    """With a given λ the estimate equals ppi-python's, the judge's numbers of all samples standing for unlabelled."""
    known = pytest.importorskip("ppi_py").ppi_mean_pointestimate
    withfitted_tuning(monkeypatch, tuning)
    found = correct(JUDGED, labels(DRAWN), UNIT)
    expected = known(TRUTH[DRAWN], JUDGED[DRAWN], JUDGED, lam=tuning)
    assert found.corrected.value == pytest.approx(float(np.squeeze(expected)), abs=1e-9)
    assert found.tuning == pytest.approx(tuning)


def test_the_error_is_that_of_the_labels_and_of_the_judged_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean is that of human - λ · f · (judge - mean of the unlabelled), with f = 350 / 400 of them, by hand."""
    withfitted_tuning(monkeypatch, 0.7)
    found = correct(JUDGED, labels(DRAWN), UNIT).corrected
    rest = TRUTH[DRAWN] - 0.7 * 350 / 400 * JUDGED[DRAWN]
    others = np.delete(JUDGED, DRAWN)
    expected = rest.var() / 50 + (0.7 * 350 / 400) ** 2 * others.var() / 350
    assert found.error == pytest.approx(np.sqrt(expected), abs=1e-9)


def test_the_tuning_is_a_regression_slope() -> None:
    """λ is the slope of the human labels on the judge's, clipped to [0, 1]."""
    from scipy import stats

    for people in (TRUTH, 1 - TRUTH, 5 * TRUTH):
        slope = stats.linregress(JUDGED[DRAWN], people[DRAWN]).slope
        found = fitted_tuning(people[DRAWN], JUDGED[DRAWN])
        assert found == pytest.approx(min(max(slope, 0.0), 1.0), abs=1e-9)


def test_the_estimate_of_yes_and_no_is_that_by_verdict() -> None:
    """For 0 and 1: the judge's shares of yes and no times the mean label of each."""
    judged = np.array([1.0] * 460 + [0.0] * 40)
    drawn = [*range(20), *range(460, 480)]
    human = [1.0] * 17 + [0.0] * 3 + [1.0] * 5 + [0.0] * 15
    chosen = Labels.of(drawn, human, judged[drawn].tolist())
    found = correct(judged, chosen, UNIT)
    assert found.reported is Reported.CORRECTED
    assert found.corrected.value == pytest.approx(0.92 * 0.85 + 0.08 * 0.25)
    within = 0.92**2 * 0.85 * 0.15 / 20 + 0.08**2 * 0.25 * 0.75 / 20
    between = (0.92 * (0.85 - 0.802) ** 2 + 0.08 * (0.25 - 0.802) ** 2) / 500
    assert found.corrected.error == pytest.approx(np.sqrt(within + between))
    assert found.tuning is None


def test_three_estimates_side_by_side() -> None:
    """The raw mean is off, the corrected one is near the truth and surer than people's labels alone."""
    found = correct(JUDGED, labels(DRAWN), UNIT)
    truth = TRUTH.mean()
    assert found.raw.interval.ends is not None
    assert found.raw.interval.ends[0] > truth + 0.05
    for estimate in (found.human, found.corrected):
        assert estimate.interval.ends is not None
        assert estimate.interval.ends[0] < truth < estimate.interval.ends[1]
    assert found.reported is Reported.CORRECTED
    assert found.estimate is found.corrected
    assert "corrected estimate is reported" in found.reason
    assert found.labelled == 50
    assert found == correct(JUDGED, labels(DRAWN), UNIT)


@pytest.mark.parametrize(
    ("count", "reported", "says"),
    [
        (0, Reported.NOTHING, "0 scored samples"),
        (9, Reported.NOTHING, "9 samples are labelled"),
        (10, Reported.CORRECTED, "corrected estimate"),
    ],
)
def test_how_many_labels_are_needed(count: int, reported: Reported, says: str) -> None:
    """Nothing is reported below 10 labelled samples."""
    found = correct(JUDGED, labels(DRAWN[:count]), UNIT)
    assert found.reported is reported
    assert says in found.reason
    assert (found.estimate is None) is (reported is Reported.NOTHING)


def test_a_judge_that_guesses_costs_little() -> None:
    """If the judge knows nothing of the truth, its weight is small and the interval about that of the labels alone."""
    noise = np.random.default_rng(13).random(400)
    found = correct(noise, Labels.of(DRAWN.tolist(), TRUTH[DRAWN].tolist(), noise[DRAWN].tolist()), UNIT)
    assert found.tuning is not None
    assert found.tuning < 0.2
    assert found.corrected.interval.ends is not None
    assert found.human.interval.ends is not None
    corrected, alone = (high - low for low, high in (found.corrected.interval.ends, found.human.interval.ends))
    assert corrected < 1.1 * alone


@pytest.mark.parametrize("span", [(0.0, 1.0), (-1.0, 3.0)])
def test_with_every_sample_labelled_the_result_is_the_mean_of_the_labels(span: tuple[float, float]) -> None:
    """The judge has nothing to add, whatever its errors are, between the ends of the range and at them."""
    low, high = span
    source = np.random.default_rng(14)
    truth = np.clip(source.normal(0.9, 0.2, 150), 0, 1)
    judged = np.clip(truth + source.normal(0, 0.1, 150), 0, 1)
    for judge in (judged, np.round(judged), 1 - judged):
        given = low + (high - low) * judge, low + (high - low) * truth
        found = correct(given[0], Labels.of(range(150), given[1], given[0]), span)
        assert found.corrected.value == pytest.approx(given[1].mean(), abs=1e-12)


def test_the_corrected_interval_is_never_clearly_wider_than_that_of_the_labels() -> None:
    """At most 2 % wider, for 70 studies: graded and binary scores near an end, 10 to 150 labels, four judges."""
    source, wider = np.random.default_rng(15), 0
    for study in range(70):
        size = int(source.integers(150, 400))
        truth = np.clip(source.normal(source.choice([0.7, 0.9, 1.1]), 0.2, size), 0, 1).round(1 if study % 2 else 0)
        noise = source.choice([0.0, 0.05, 0.3])
        judged = np.clip(truth + source.normal(0, noise, size), 0, 1) if study % 7 else source.random(size)
        drawn = source.choice(size, int(source.integers(10, 150)), replace=False)
        found = correct(judged, Labels.of(drawn, truth[drawn], judged[drawn]), UNIT)
        ends, own = found.corrected.interval.ends, found.human.interval.ends
        assert ends is not None
        assert own is not None
        assert ends[1] - ends[0] <= 1.02 * (own[1] - own[0]) + 1e-12
        assert ends[0] - 1e-12 <= (found.corrected.value or 0.0) <= ends[1] + 1e-12
        wider += ends[1] - ends[0] > own[1] - own[0]
    assert wider


def test_a_judge_never_seen_to_err_is_not_called_perfect() -> None:
    """Forty labels that all agree with the judge leave room for the errors that forty labels can miss."""
    judged = np.array([1.0] * 300 + [0.0] * 100)
    drawn = [*range(30), *range(300, 310)]
    found = correct(judged, Labels.of(drawn, judged[drawn].tolist(), judged[drawn].tolist()), UNIT)
    assert found.corrected.value == 0.75
    low, high = found.corrected.interval.ends or (0.0, 0.0)
    judge_low, judge_high = found.raw.interval.ends or (0.0, 0.0)
    assert low < judge_low - 0.03
    assert high > judge_high + 0.03


def test_items_of_a_sample_count_as_one() -> None:
    """Labels of all contexts of a sample are the label of the sample: its mean."""
    rows = np.repeat(DRAWN, 4)
    steps = np.tile([-0.1, 0.05, 0.0, 0.05], 50)
    made = Labels.of(rows.tolist(), (TRUTH[rows] + steps).tolist(), JUDGED[rows].tolist())
    found, whole = correct(JUDGED, made, UNIT), correct(JUDGED, labels(DRAWN), UNIT)
    assert found.labelled == 50
    assert found.corrected.value == pytest.approx(whole.corrected.value, abs=1e-9)
    assert found.corrected.error == pytest.approx(whole.corrected.error, abs=1e-9)


def test_clusters_are_the_units() -> None:
    """With clusters the error is between them; fewer than 6 labelled clusters cannot tell."""
    names = (np.arange(400) // 10).tolist()
    found = correct(JUDGED, labels(DRAWN), UNIT, clusters=names)
    assert found.corrected.clusters == len({int(place) // 10 for place in DRAWN})
    few = np.arange(50)
    found = correct(JUDGED, labels(few), UNIT, clusters=names)
    assert found.corrected.interval.note == "cannot tell from 5 labelled clusters, at least 6 needed"
    assert found.reported is Reported.NOTHING


@each_case(
    ("arguments", "says"),
    [
        ({"sample": [400], "human": [1.0], "judge": [1.0]}, "outside"),
        ({"sample": [1, 2], "human": [1.0], "judge": [1.0, 0.0]}, "2 units and 1 human labels"),
        ({"sample": [1], "human": [float("nan")], "judge": [1.0]}, "finite"),
    ],
)
def test_bad_labels_are_refused(arguments: dict[str, list[float]], says: str) -> None:
    """Labels of samples that are none, of unequal lengths, or with impossible numbers raise ValueError."""
    with pytest.raises(ValueError, match=says):
        correct(JUDGED, Labels.of(**arguments), UNIT)
