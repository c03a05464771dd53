"""The level of a judge: it repairs a wrong cut, and leaves a right one and a useless judge alone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from merilo.results.levels import Level, fit_level

STUDIES = 60


def gain(auroc: float, offset: float, *, rate: float = 0.5, samples: int = 30, items: int = 1, seed: int = 0) -> float:
    """The gain in balanced accuracy over all verdicts of one study; the logits are normal, the right cut is at 0."""
    dice, distance = np.random.default_rng(seed), float(ndtri(auroc)) * 2**0.5 / 2
    people = dice.random(samples * items) < rate
    logits = dice.normal(np.where(people, distance, -distance)) + offset
    chances = 1 / (1 + np.exp(-logits))
    level = fit_level(
        chances.tolist(), (chances >= 0.5).tolist(), people.tolist(), np.repeat(np.arange(samples), items).tolist()
    )
    if level is None:
        return 0.0
    cut = -level.intercept / level.slope - offset
    before, after = ((ndtr(distance - at) + ndtr(at + distance)) / 2 for at in (-offset, cut))
    return float(after - before)


@pytest.mark.parametrize(
    ("study", "least"),
    [
        ({"auroc": 0.83, "offset": 3.0}, 0.10),
        ({"auroc": 0.80, "offset": 3.0, "items": 3}, 0.10),
        ({"auroc": 0.85, "offset": -3.0, "rate": 0.2}, 0.10),
        ({"auroc": 0.8, "offset": 0.0}, -0.03),
        ({"auroc": 0.8, "offset": 0.0, "rate": 0.1, "items": 3}, -0.03),
        ({"auroc": 0.9, "offset": 0.0, "rate": 0.3, "samples": 20}, -0.03),
        ({"auroc": 0.5, "offset": 3.0, "rate": 0.2, "items": 3}, -0.03),
        ({"auroc": 0.2, "offset": 0.0}, -0.03),
    ],
)
def test_a_wrong_cut_is_repaired_and_a_right_one_stays(study: dict[str, float], least: float) -> None:
    """From 30 labelled samples, a judge with AUROC 0.8 gains 0.10 on average; no other study loses 0.03."""
    gains = [gain(**study, seed=seed) for seed in range(STUDIES)]  # type: ignore[arg-type]  # numbers by name
    assert np.mean(gains) >= least


def labelled(chances: list[float], people: list[bool], judge: list[bool | None] | None = None) -> Level | None:
    """The level from one verdict for each sample."""
    return fit_level(chances, judge or [each >= 0.5 for each in chances], people, range(len(chances)))


YES = [True, False] * 15
OFF = [0.9 if yes else 0.7 for yes in YES]


def test_the_level_of_a_perfect_order_is_between_yes_and_no() -> None:
    """Certain probabilities fit too, the order stays, and the figures are those of the verdicts."""
    found = labelled(OFF, YES)
    assert found is not None
    assert (found.labels, found.before, found.after) == (30, 0.5, 1.0)
    assert found.of(0.7) < 0.5 < found.of(0.9) < found.of(1.0) < 1
    certain = labelled([float(yes) for yes in YES], YES, [True] * 30)
    assert certain is not None
    assert certain.of(0.0) < 0.5 < certain.of(1.0)


@pytest.mark.parametrize(
    ("chances", "people"),
    [
        (OFF[:19], YES[:19]),
        (OFF, [True] * 30),
        ([0.7] * 30, YES),
        ([0.7 if yes else 0.9 for yes in YES], YES),
        ([float(yes) for yes in YES], YES),
    ],
    ids=["19 samples", "one kind of label", "equal probabilities", "the reverse order", "right already"],
)
def test_there_is_no_level_without_a_gain(chances: list[float], people: list[bool]) -> None:
    """Too few samples, nothing to learn, and nothing to gain."""
    assert labelled(chances, people) is None


def test_a_verdict_that_the_judge_did_not_give_is_half_right() -> None:
    """A level that judges what was open must be right more often than by chance."""
    found = labelled(OFF, YES, [None] * 30)
    assert found is not None
    assert (found.before, found.after) == (0.5, 1.0)


def test_a_few_equal_gains_do_not_decide() -> None:
    """Three no of 30 that the level would repair are no proof, four are."""
    for few in (3, 4):
        people = [True] * (30 - few) + [False] * few
        assert (labelled([0.9 if yes else 0.7 for yes in people], people) is None) == (few < 4)
