"""Platt scaling and thresholds."""

import math
import random

import numpy as np
import pytest
from each_case import each_case

from merilo.stats.platt import LogisticCurve, balanced_accuracy, best_threshold, fit_curve, log_loss


def sample(count: int, scale: float, shift: float, seed: int) -> tuple[list[float], list[bool]]:
    """Scores and labels that follow a curve."""
    draw = random.Random(seed)
    scores = [draw.gauss(0, 4) for _ in range(count)]
    curve = LogisticCurve(scale, shift)
    return scores, [draw.random() < curve.probability(score) for score in scores]


@each_case(("scale", "shift"), [(1.0, 0.0), (0.3, -2.0), (3.0, 4.0), (-0.5, 1.0)])
def test_the_curve_is_that_of_scikit_learn(scale: float, shift: float) -> None:
    """Scale and shift equal scikit-learn's sigmoid calibration, which has the same targets and the other sign."""
    from sklearn.calibration import _SigmoidCalibration

    scores, labels = sample(400, scale, shift, 1)
    found = fit_curve(scores, labels)
    reference = _SigmoidCalibration().fit(np.array(scores), np.array(labels, int))
    assert found == pytest.approx((-reference.a_, -reference.b_), abs=1e-3)


def test_the_curve_is_found_again() -> None:
    """With many records the fit is near the true curve."""
    scores, labels = sample(20_000, 0.8, -0.5, 2)
    assert fit_curve(scores, labels) == pytest.approx((0.8, -0.5), abs=0.05)


def test_a_perfect_separation_stays_finite() -> None:
    """Separated classes give a finite curve that rises."""
    curve = fit_curve([-3.0, -2.0, 2.0, 3.0], [False, False, True, True])
    assert 0 < curve.scale < 10
    assert math.isfinite(curve.shift)


def test_equal_scores_give_the_rate() -> None:
    """Scores that say nothing give the rate of the labels, with one record more of each class."""
    curve = fit_curve([1.0] * 8, [True] * 6 + [False] * 2)
    assert curve.probability(1.0) == pytest.approx((6 * 7 / 8 + 2 / 4) / 8, abs=1e-6)


def test_one_class_is_an_error() -> None:
    """A curve needs both classes."""
    with pytest.raises(ValueError, match="both classes"):
        fit_curve([1.0, 2.0], [True, True])


def test_probabilities_do_not_overflow() -> None:
    """Extreme scores give 0 and 1."""
    curve = LogisticCurve(1.0, 0.0)
    assert (curve.probability(-1e6), curve.probability(1e6)) == (0.0, 1.0)


def test_losses_are_those_of_scikit_learn() -> None:
    """Log loss and balanced accuracy equal the reference."""
    from sklearn.metrics import balanced_accuracy_score
    from sklearn.metrics import log_loss as reference_log_loss

    scores, labels = sample(200, 1.0, 0.5, 3)
    found = [LogisticCurve(0.7, 0.1).probability(score) for score in scores]
    assert log_loss(found, labels) == pytest.approx(reference_log_loss(labels, found))
    decisions = [p >= 0.4 for p in found]
    assert balanced_accuracy(decisions, labels) == pytest.approx(balanced_accuracy_score(labels, decisions))


@each_case("seed", range(5))
def test_no_threshold_is_better(seed: int) -> None:
    """The threshold is the best of all, by trying each probability."""
    scores, labels = sample(60, 0.4, 0.2, seed)
    found = [round(LogisticCurve(0.4, 0.2).probability(score), 1) for score in scores]
    best = best_threshold(found, labels)
    accuracy = balanced_accuracy([p >= best for p in found], labels)
    assert accuracy == pytest.approx(max(balanced_accuracy([p >= cut for p in found], labels) for cut in found))
