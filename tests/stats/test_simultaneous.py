"""The errors at which all comparisons of several runs hold together."""

from itertools import combinations

import numpy as np
import pytest

from merilo.stats.column import Column
from merilo.stats.compare import simultaneous_errors
from merilo.stats.distributions import normal_quantile


def columns(values: np.ndarray) -> list[Column]:
    """One column per run."""
    return [Column.of(own.tolist(), (0.0, 1.0)) for own in values.T]


def scores(runs: int, seed: int = 0) -> np.ndarray:
    """Independent graded scores of 200 samples."""
    return np.clip(np.random.default_rng(seed).normal(0.5, 0.15, (200, runs)), 0, 1)


def test_two_runs_need_no_correction() -> None:
    """The error of the only comparison is 5 %."""
    found = simultaneous_errors(columns(scores(2)))
    assert found.pair == pytest.approx(0.05)
    assert found.against == pytest.approx((0.05, 0.05))


@pytest.mark.parametrize(("runs", "tukey"), [(3, 3.314), (4, 3.633), (10, 4.474)])
def test_independent_runs_have_the_studentized_range(runs: int, tukey: float) -> None:
    """The quantile of the largest of all pairs: q / sqrt(2), q of the tables for infinite degrees of freedom."""
    found = normal_quantile(1 - simultaneous_errors(columns(scores(runs))).pair / 2)
    assert found == pytest.approx(tukey / np.sqrt(2), rel=0.04)


def test_correlated_runs_need_less_than_bonferroni() -> None:
    """And equal input gives equal errors."""
    values = scores(5)
    found = simultaneous_errors(columns(values))
    assert found == simultaneous_errors(columns(values))
    assert found.pair > 0.05 / 10
    assert all(each > 0.05 / 4 for each in found.against)


def test_pairs_that_are_not_usable_enter_by_bonferroni() -> None:
    """Equal columns, pairs that labels correct, and no common sample at all."""
    equal = np.repeat(scores(1), 3, axis=1)
    assert simultaneous_errors(columns(equal)).pair == pytest.approx(0.05 / 3)
    apart = list(combinations(range(3), 2))
    assert simultaneous_errors(columns(scores(3)), apart=apart).pair == pytest.approx(0.05 / 3)
    one, *rest = columns(scores(3))
    nothing = Column(one.values, ~one.scored, one.failed, one.span)
    assert simultaneous_errors([nothing, *rest]).pair == pytest.approx(0.05 / 3)


def test_clusters_are_kept_together() -> None:
    """Differences that are those of clusters: runs whose samples are copies have the errors of one sample each."""
    values = scores(4)
    once = simultaneous_errors(columns(values))
    copied = simultaneous_errors(columns(np.repeat(values, 3, axis=0)), np.repeat(np.arange(200), 3).tolist())
    assert copied.pair == pytest.approx(once.pair, rel=1e-6)
