"""A part of benchmarks/coverage.py: what intervals, comparisons and corrections promise, over studies of known truth.

Seeds are fixed, so these tests do not flicker. Limits allow for three standard errors of a share of 80 studies; the
benchmark has 2,000.
"""

from functools import cache
from math import sqrt

import pytest
import simulated
import simulated_labels
from each_case import each_case

STUDIES = 80
SEED = 21
SAMPLES, CLUSTERS = (30, 100, 1_000), (10, 30, 100)
FEW = ("Beta(.5,4.5)", "92 % ones", "rate .8")
"""Shapes that `make test` tries: skewed, at a ceiling, yes or no; `make test-long` tries all."""


def slack(share: float) -> float:
    """Three standard errors."""
    return 3 * sqrt(share * (1 - share) / STUDIES)


@cache
def cells(name: str) -> list[simulated.Coverage]:
    """All sizes, samples that stand alone and clusters."""
    alone = [simulated.coverage(name, size, studies=STUDIES, seed=SEED) for size in SAMPLES]
    return alone + [simulated.cluster_coverage(name, size, studies=STUDIES, seed=SEED) for size in CLUSTERS]


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=() if each in FEW else pytest.mark.long) for each in simulated.SHAPES]
)
def test_intervals_cover(name: str) -> None:
    """A 95 % interval covers in at least 92 % of studies, and is not much wider than it must be."""
    for cell in cells(name):
        assert cell.told == 1
        assert cell.covered >= 0.92 - slack(0.92)
        assert cell.off < 9.8 or cell.width <= 2.0


@pytest.mark.parametrize("names", [FEW, pytest.param(tuple(simulated.SHAPES), marks=pytest.mark.long)])
def test_intervals_cover_on_average(names: tuple[str, ...]) -> None:
    """Over shapes and sizes 95 % intervals cover in 94 to 98 % of studies."""
    found = [cell.covered for name in names for cell in cells(name)]
    assert 0.94 <= sum(found) / len(found) <= 0.98


def test_student_at_a_ceiling_would_fail() -> None:
    """The test can fail: Student's t on 30 scores of which 92 % are 1 covers far too seldom."""
    import numpy as np
    from scipy import stats

    shape, source = simulated.SHAPES["92 % ones"], np.random.default_rng(SEED)
    values = shape.quantile(source.random((STUDIES, 30)))
    half = stats.t.ppf(0.975, 29) * stats.sem(values, axis=1)
    assert (abs(values.mean(axis=1) - shape.mean) <= half).mean() < 0.92 - slack(0.92)


@pytest.mark.parametrize(("size", "members"), [(10, 1), pytest.param(100, 1, marks=pytest.mark.long), (20, 5)])
def test_runs_that_do_not_differ_are_not_told_apart(size: int, members: int) -> None:
    """8 correlated metrics, some samples or clusters: in at most 5 % of studies one of them shows a difference."""
    alarms = simulated.false_alarms(size, studies=STUDIES, seed=SEED, members=members)
    assert alarms <= 0.05 + slack(0.05)


def test_skewed_differences_show_nothing() -> None:
    """Most lose a little, few gain much: the exact limits allow for gains that 30 samples do not show."""
    assert simulated.skewed_alarms(30, studies=STUDIES, seed=SEED) <= 0.05


@each_case("clusters", simulated.UNEQUAL)
@pytest.mark.parametrize(
    "name", ["70 % ones", *(pytest.param(each, marks=pytest.mark.long) for each in ("Beta(2,2)", "rate .8"))]
)
def test_unequal_clusters_cover(name: str, clusters: str) -> None:
    """Clusters of 2 to 40 samples, and one cluster with half of all samples, cover as equal ones do."""
    cell = simulated.unequal_coverage(name, clusters, studies=STUDIES, seed=SEED)
    assert cell.told == 1
    assert cell.covered >= 0.92 - slack(0.92)


LABELS = tuple(
    simulated_labels.Study(scores, judge, mean, 40, 500)
    for scores, judge, mean in (("0/1", "lenient", 0.92), ("0/1", "strict", 0.9), ("4 items", "strict", 0.92))
)


@each_case("study", LABELS)
def test_reported_means_cover(study: simulated_labels.Study) -> None:
    """The reported interval covers, and is not wider by much than that of the labels alone."""
    found = simulated_labels.coverage(study, studies=STUDIES, seed=SEED)
    assert found.reported >= 0.93 - slack(0.93)
    assert found.narrower < 1.05


@pytest.mark.parametrize("labelled", [20, 100])
def test_corrected_means_cover(labelled: int) -> None:
    """With contexts nested in samples and a judge biased in half of them, the corrected mean covers.

    The same data context by context, and the raw judge, do not.
    """
    found = simulated.corrected(labelled, studies=STUDIES, seed=SEED, contexts=10)
    assert found.corrected >= 0.93 - slack(0.93)
    assert found.reported >= 0.93 - slack(0.93)
    assert found.by_context < 0.85
    assert found.raw < 0.05
    assert found.narrower < 0.8
