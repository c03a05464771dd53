"""Levels of planned looks: known boundaries, and the probability that any look is wrong."""

from __future__ import annotations

import numpy as np
import pytest

from merilo.stats.distributions import normal_quantile
from merilo.stats.looks import LABEL_LOOKS, level_at_look, look_levels


def test_boundaries_are_those_of_published_tables() -> None:
    """Five equal looks at 2.5 %, spent as ln(1 + (e - 1) t): 2.438, 2.427, 2.410, 2.397 and 2.386."""
    found = [normal_quantile(each) for each in look_levels((0.2, 0.4, 0.6, 0.8, 1.0), 0.975)]
    assert found == pytest.approx([2.438, 2.427, 2.410, 2.397, 2.386], abs=6e-4)


def test_one_look_at_all_data_has_the_level_asked_for() -> None:
    """Nothing is spent before."""
    assert look_levels((1.0,), 0.95)[0] == pytest.approx(0.95, abs=1e-6)


@pytest.mark.parametrize("fractions", [(0.125, 0.25, 0.5, 1.0), (0.3, 0.35, 0.9), (0.05, 1.0)])
def test_all_looks_together_are_wrong_as_often_as_asked(fractions: tuple[float, ...]) -> None:
    """Simulated sums of independent steps cross one of the boundaries with the probability that is spent."""
    source = np.random.default_rng(4)
    steps = np.sqrt(np.diff([0.0, *fractions])) * source.normal(size=(200_000, len(fractions)))
    scores = steps.cumsum(axis=1) / np.sqrt(fractions)
    bounds = [normal_quantile(each) for each in look_levels(fractions, 0.95)]
    spent = 0.05 * np.log(1 + (np.e - 1) * fractions[-1])
    assert (scores > bounds).any(axis=1).mean() == pytest.approx(spent, abs=0.0015)


def test_labels_that_pass_a_look_have_its_level() -> None:
    """Before the first look the first level counts, beyond the last the last."""
    levels = [level_at_look(count) for count in (20, 40, 79, 80, 160, 320, 900)]
    assert levels[0] == levels[1] == levels[2]
    assert levels == sorted(levels, reverse=True)
    assert levels[-1] == levels[-2]
    assert all(0.95 < each < 1 for each in levels)
    assert LABEL_LOOKS[0] == 40


@pytest.mark.parametrize("fractions", [(), (0.5, 0.5), (0.5, 0.2), (0.0, 1.0), (0.5, 1.2)])
def test_other_fractions_are_refused(fractions: tuple[float, ...]) -> None:
    """They must increase, above 0 and at most 1."""
    with pytest.raises(ValueError, match="increasing fractions"):
        look_levels(fractions)
