"""The difference of a judge's mean error between two systems: known values, laws, and simulated coverage."""

from dataclasses import replace

import numpy as np
import pytest
from simulated_decisions import UNIT, Cell, drawn, systems

from merilo.stats import judge_error_difference
from merilo.stats.corrected_pairs import PairLabels
from merilo.stats.intervals import t_quantile

STUDIES = 200


def labels(first: list[float], second: list[float], human: float = 0.5) -> PairLabels:
    """Labelled pairs with these errors on both systems, whose true value is `human`."""
    return PairLabels.of(
        [
            (place, human, human + one, human, human + other)
            for place, (one, other) in enumerate(zip(first, second, strict=True))
        ]
    )


def test_the_difference_by_hand() -> None:
    """20 pairs, errors 0.2 and 0 on the first and none on the second: the mean is 0.1, the interval Student's t."""
    found = judge_error_difference(labels([0.2, 0.0] * 10, [0.0] * 20), UNIT)
    assert (found.first, found.second, found.difference) == pytest.approx((0.1, 0.0, 0.1))
    variance = 20 * 0.1**2 / 20**2 * 20 / 19 + 2 * 0.5 * 0.2**2 / 20**2
    half = t_quantile(19, 0.95) * variance**0.5
    assert found.interval.ends == pytest.approx((0.1 - half, 0.1 + half))
    assert (found.labelled, found.sign) == (20, 1)


def test_exchanging_the_systems_changes_the_sign() -> None:
    """The difference and its interval are mirrored."""
    one, two = [0.2, 0.0, 0.4, 0.1] * 5, [0.0, 0.1, -0.1, 0.0] * 5
    there, back = judge_error_difference(labels(one, two), UNIT), judge_error_difference(labels(two, one), UNIT)
    assert there.interval.ends is not None
    assert back.interval.ends == pytest.approx(tuple(-end for end in reversed(there.interval.ends)))
    assert (there.sign, back.sign) == (1, -1)


@pytest.mark.parametrize(("count", "note"), [(9, "9 labelled pairs"), (0, "0 labelled pairs")])
def test_few_pairs_have_no_interval_and_name_no_system(count: int, note: str) -> None:
    """Below 10 labelled pairs there is a mean at most."""
    found = judge_error_difference(labels([0.5] * count, [0.0] * count), UNIT)
    assert (found.interval.ends, found.sign, found.labelled) == (None, 0, count)
    assert note in found.interval.note
    assert (found.difference is None) == (count == 0)


def test_clusters_widen_the_interval_and_five_give_none() -> None:
    """Errors that are equal within a document tell less than those of independent samples."""
    errors = [0.4 * (place // 4 % 2) for place in range(40)]
    given = labels(errors, [0.0] * 40)
    alone = judge_error_difference(given, UNIT).interval.ends
    wide = judge_error_difference(given, UNIT, clusters=[place // 4 for place in range(40)]).interval.ends
    assert alone is not None
    assert wide is not None
    assert wide[1] - wide[0] > 1.5 * (alone[1] - alone[0])
    few = judge_error_difference(given, UNIT, clusters=[place % 5 for place in range(40)])
    assert few.interval.ends is None
    assert few.difference == pytest.approx(0.2)


# -- simulation ----------------------------------------------------------------------------------------


def true_difference(cell: Cell) -> float:
    """The difference of the mean errors in a large sample."""
    large = replace(cell, samples=200_000, clusters=20_000 if cell.clusters else 0)
    found = systems(large, np.random.default_rng(77))
    one, two = (float((judge - human).mean()) for judge, human in zip(found.judge, found.human, strict=True))
    return one - two


@pytest.mark.parametrize(
    "cell",
    [
        Cell("0/1", "fair", 40),
        Cell("5 contexts", "kinder", 40),
        Cell("graded", "fair", 40, clusters=20),
        pytest.param(Cell("0/1", "kinder", 40, level=2.5), marks=pytest.mark.long),
        pytest.param(Cell("graded", "kinder", 40), marks=pytest.mark.long),
        pytest.param(Cell("5 contexts", "kinder", 40, clusters=60), marks=pytest.mark.long),
    ],
    ids=str,
)
def test_intervals_of_40_labelled_pairs_cover(cell: Cell) -> None:
    """In 200 studies the 95 % interval covers the true error difference in at least 93 %."""
    source, true = np.random.default_rng(5), true_difference(cell)
    covered = 0
    for _ in range(STUDIES):
        found = systems(cell, source)
        study = drawn(cell, found, source)
        names = None if found.clusters is None else found.clusters[study.places].tolist()
        low, high = judge_error_difference(study.pairs, UNIT, clusters=names).interval.ends or (1.0, -1.0)
        covered += low <= true <= high
    assert covered >= 0.93 * STUDIES


def test_rare_errors_cover_too() -> None:
    """A judge that errs on 4 % of one system and 1 % of the other: 40 pairs often show no error at all."""
    source, covered = np.random.default_rng(8), 0
    for _ in range(STUDIES):
        first, second = ((source.random(40) < rate).astype(float) for rate in (0.04, 0.01))
        found = judge_error_difference(labels(first.tolist(), second.tolist(), human=0.0), UNIT)
        low, high = found.interval.ends or (1.0, -1.0)
        covered += low <= 0.03 <= high
    assert covered >= 0.93 * STUDIES
