"""The mean that people would give, from a judge's numbers and people's labels of a few samples."""

from __future__ import annotations

import numpy as np
import pytest

from merilo.stats.correction import Labels, Reported, _Design, _tuning, correct
from merilo.stats.means import mean_interval

UNIT = (0.0, 1.0)
SOURCE = np.random.default_rng(12)
TRUTH = SOURCE.beta(2, 2, 400)
JUDGED = np.clip(TRUTH * 0.6 + 0.35 + SOURCE.normal(0, 0.08, 400), 0, 1)
DRAWN = SOURCE.choice(400, 50, replace=False)


def labels(places: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Labels:
    """Whole samples, labelled."""
    return Labels.of(places.tolist(), TRUTH[places].tolist(), JUDGED[places].tolist())


def with_tuning(monkeypatch: pytest.MonkeyPatch, value: float) -> None:
    """Fix λ."""
    monkeypatch.setattr("merilo.stats.correction._tuning", lambda *_: value)


@pytest.mark.parametrize("tuning", [0.0, 0.4, 1.0])
def test_the_estimate_is_that_of_ppi_python(monkeypatch: pytest.MonkeyPatch, tuning: float) -> None:
    """With a given λ the estimate equals ppi-python's, the judge's numbers of all samples standing for unlabelled."""
    known = pytest.importorskip("ppi_py").ppi_mean_pointestimate
    with_tuning(monkeypatch, tuning)
    found = correct(JUDGED, labels(DRAWN), UNIT)
    expected = known(TRUTH[DRAWN], JUDGED[DRAWN], JUDGED, lam=tuning)
    assert found.corrected.value == pytest.approx(float(np.squeeze(expected)), abs=1e-9)
    assert found.tuning == pytest.approx(tuning)


def test_without_the_judge_the_error_is_that_of_the_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """With λ = 0 nothing is left but people's mean and its standard error (one more degree of freedom spent)."""
    with_tuning(monkeypatch, 0.0)
    found = correct(JUDGED, labels(DRAWN), UNIT).corrected
    people = TRUTH[DRAWN]
    assert found.value == pytest.approx(people.mean(), abs=1e-9)
    assert found.error == pytest.approx(people.std(ddof=2) / np.sqrt(50), abs=1e-9)


def test_the_error_counts_that_labelled_samples_were_judged_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variance is that of both parts together: var(r)/n + (λ² var(f) + 2 λ cov(f, r)) / N, by hand."""
    with_tuning(monkeypatch, 0.7)
    found = correct(JUDGED, labels(DRAWN), UNIT).corrected
    rest = TRUTH[DRAWN] - 0.7 * JUDGED[DRAWN]
    rest -= rest.mean()
    centred = JUDGED - JUDGED.mean()
    squares = (
        (rest**2).sum() / 50**2 + 0.49 * (centred**2).sum() / 400**2 + 2 * 0.7 * (rest @ centred[DRAWN]) / 50 / 400
    )
    # Residuals are taken about λ · (judged - mean of all), which shifts them by a constant that the estimate takes up.
    assert found.error == pytest.approx(np.sqrt(50 / 48 * squares), abs=1e-9)


def test_the_tuning_is_a_regression_slope() -> None:
    """λ is the slope of people's labels on the judge's, clipped to [0, 1]."""
    from scipy import stats

    for people in (TRUTH, 1 - TRUTH, 5 * TRUTH):
        made = Labels.of(DRAWN.tolist(), people[DRAWN].tolist(), JUDGED[DRAWN].tolist())
        design = _Design.of(JUDGED, made, None)
        slope = stats.linregress(JUDGED[DRAWN], people[DRAWN]).slope
        found = _tuning(design, design.units, np.ones(50, dtype=np.bool_))
        assert found == pytest.approx(min(max(slope, 0.0), 1.0), abs=1e-9)


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


def test_the_human_only_estimate_is_the_usual_one() -> None:
    """People's labels alone have the interval that any mean has."""
    found = correct(JUDGED, labels(DRAWN), UNIT).human
    assert found.interval == mean_interval(TRUTH[np.sort(DRAWN)], UNIT).interval


@pytest.mark.parametrize(
    ("count", "reported", "says"),
    [
        (0, Reported.NOTHING, "0 scored samples"),
        (9, Reported.NOTHING, "9 samples are labelled"),
        (10, Reported.HUMAN, "a correction needs 20"),
        (19, Reported.HUMAN, "a correction needs 20"),
        (20, Reported.CORRECTED, "corrected estimate"),
    ],
)
def test_how_many_labels_are_needed(count: int, reported: Reported, says: str) -> None:
    """Nothing below 10 labelled samples, people's labels alone below 20."""
    found = correct(JUDGED, labels(DRAWN[:count]), UNIT)
    assert found.reported is reported
    assert says in found.reason
    assert (found.estimate is None) is (reported is Reported.NOTHING)


def test_a_judge_that_guesses_is_not_reported() -> None:
    """Where the judge knows nothing of the truth the labels alone are surer, or as sure."""
    noise = np.random.default_rng(13).random(400)
    made = Labels.of(DRAWN.tolist(), TRUTH[DRAWN].tolist(), noise[DRAWN].tolist())
    found = correct(noise, made, UNIT)
    assert found.tuning is not None
    assert found.tuning < 0.2
    assert found.reported is Reported.HUMAN


def test_a_judge_never_seen_to_err_is_not_called_perfect() -> None:
    """With next to no errors among the labels, how often the judge errs is not known: no interval of its own."""
    made = Labels.of(DRAWN.tolist(), JUDGED[DRAWN].tolist(), JUDGED[DRAWN].tolist())
    found = correct(JUDGED, made, UNIT)
    assert found.corrected.interval.ends is None
    assert "people and judge differ in 0 of 50" in found.corrected.interval.note
    assert found.reported is Reported.HUMAN


def test_items_of_a_sample_count_as_one() -> None:
    """Labels of all contexts of a sample are the label of the sample: its mean."""
    rows = np.repeat(DRAWN, 4)
    steps = np.tile([-0.1, 0.05, 0.0, 0.05], 50)
    made = Labels.of(rows.tolist(), (TRUTH[rows] + steps).tolist(), JUDGED[rows].tolist(), items=[4] * 200)
    found, whole = correct(JUDGED, made, UNIT), correct(JUDGED, labels(DRAWN), UNIT)
    assert found.labelled == 50
    assert found.corrected.value == pytest.approx(whole.corrected.value, abs=1e-9)
    assert found.corrected.error == pytest.approx(whole.corrected.error, abs=1e-9)


def test_probabilities_undo_how_labels_were_drawn() -> None:
    """Labels drawn four times as often where the judge is high: weighted, the truth; unweighted, too high."""
    high = np.median(JUDGED) < JUDGED
    chances = np.where(high, 0.8, 0.2)
    source, hits = np.random.default_rng(14), []
    unweighted = []
    for _ in range(60):
        drawn = np.flatnonzero(source.random(400) < chances)
        made = (drawn.tolist(), TRUTH[drawn].tolist(), JUDGED[drawn].tolist())
        found = correct(JUDGED, Labels.of(*made, probability=chances[drawn].tolist()), UNIT)
        hits.append((found.corrected.value or 0) - TRUTH.mean())
        unweighted.append((correct(JUDGED, Labels.of(*made), UNIT).human.value or 0) - TRUTH.mean())
    assert abs(np.mean(hits)) < 0.01
    assert np.mean(unweighted) > 0.05


def test_clusters_are_the_units() -> None:
    """With clusters the error is between them; fewer than 6 labelled clusters cannot tell."""
    names = (np.arange(400) // 10).tolist()
    found = correct(JUDGED, labels(DRAWN), UNIT, clusters=names)
    assert found.corrected.clusters == len({int(place) // 10 for place in DRAWN})
    few = np.arange(50)
    found = correct(JUDGED, labels(few), UNIT, clusters=names)
    assert found.corrected.interval.note == "cannot tell from 5 labelled clusters, at least 6 needed"
    assert found.reported is Reported.NOTHING


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"sample": [400], "human": [1.0], "judge": [1.0]}, "outside"),
        ({"sample": [1, 2], "human": [1.0], "judge": [1.0, 0.0]}, "2 units and 1 labels of people"),
        ({"sample": [1], "human": [1.0], "judge": [1.0], "probability": [0.0]}, "above 0"),
        ({"sample": [1], "human": [1.0], "judge": [1.0], "items": [0]}, "at least one item"),
        ({"sample": [1], "human": [float("nan")], "judge": [1.0]}, "finite"),
    ],
)
def test_bad_labels_are_refused(arguments: dict[str, list[float]], says: str) -> None:
    """Labels of samples that are none, of unequal lengths, or with impossible numbers raise ValueError."""
    with pytest.raises(ValueError, match=says):
        correct(JUDGED, Labels.of(**arguments), UNIT)


@pytest.mark.parametrize("others", [0, 1, 2])
def test_labels_that_are_nearly_all_the_same_are_not_corrected_from(others: int) -> None:
    """Where people say the same of nearly all, a narrow interval would be luck: theirs alone is reported."""
    judged = [0.2 + 0.01 * place for place in range(60)]
    people = [1.0] * (20 - others) + [0.0] * others
    labels = Labels.of(range(20), people, judged[:20])
    found = correct(judged, labels, (0.0, 1.0))
    assert found.reported is Reported.HUMAN
    assert found.corrected.interval.ends is None
    assert f"all but {others} of 20" in found.corrected.interval.note
