"""The number of labels that decide: against the power that simulated studies have with that number."""

import numpy as np
import pytest
import simulated_decisions
from simulated_decisions import PAIR, Cell, drawn, systems, truth

from merilo.stats.corrected_pairs import correct_pairs
from merilo.stats.power import LabelSpread, labels_needed


def test_the_spread_is_solved_from_two_standard_errors() -> None:
    """With a residual variance of 0.1 and 0.3 explained, 50 of 1,000 labels give sqrt(0.1/50 + 0.3/1000)."""
    error = (0.1 / 50 + 0.3 / 1000) ** 0.5
    spread = LabelSpread.of(error, 50, 1_000, 0.4)
    assert spread.residual == pytest.approx(0.1)
    assert spread.explained == pytest.approx(0.3)
    assert spread.error(200) == pytest.approx((0.1 / 200 + 0.3 / 1000) ** 0.5)


def test_too_few_samples_decide_nothing_however_many_are_labelled() -> None:
    """If even all samples leave too large an error, there is no number of labels."""
    assert labels_needed(0.01, LabelSpread(0.2, 0.2, 200)) is None
    assert labels_needed(0.5, LabelSpread(0.2, 0.2, 200)) == 20


@pytest.mark.parametrize("scores", simulated_decisions.SCORES)
def test_the_planned_number_of_labels_has_the_planned_power(scores: str) -> None:
    """A pilot with 60 labels plans for 80 %; new studies with that number decide in 70 to 92 % of cases."""
    cell = Cell(scores, "lenient", 60, samples=1_500, effect=0.8)
    source = np.random.default_rng(8)
    effect = truth(cell)[0] - truth(cell)[1]
    planned = []
    for _ in range(15):
        found = systems(cell, source)
        labels = drawn(cell, found, source).pairs.differences()
        judged = found.judge[0].mean(axis=1) - found.judge[1].mean(axis=1)
        correction = correct_pairs(judged, labels, PAIR)
        error = correction.corrected.error
        assert error is not None
        spread = LabelSpread.of(error, 60, cell.samples, float(labels.human.var()))
        planned.append(labels_needed(effect, spread) or cell.samples)
    count = int(np.median(planned))
    decided = 0
    again = Cell(scores, "lenient", count, samples=1_500, effect=0.8)
    for _ in range(120):
        found = systems(again, source)
        study = drawn(again, found, source)
        judged = found.judge[0].mean(axis=1) - found.judge[1].mean(axis=1)
        test = correct_pairs(judged, study.pairs.differences(), PAIR).corrected
        decided += test.p is not None and test.p <= 0.05
    assert 0.70 <= decided / 120 <= 0.92
