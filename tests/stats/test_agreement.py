"""Agreement as one number: published values, independent implementations, and what cannot be told."""

import random

import numpy as np
import pytest
from each_case import each_case

from merilo.stats.agreement import (
    confusion,
    kappas,
)

EXACT = 1e-9


def grades(size: int, seed: int) -> tuple[list[int], list[int]]:
    """Grades of people and of a judge that takes them over six times in ten."""
    source = random.Random(seed)
    people = [source.choice((0, 1, 2)) for _ in range(size)]
    return people, [each if source.random() < 0.6 else source.choice((0, 1, 2)) for each in people]


def kappa(table: tuple[tuple[int, ...], ...], *, squared: bool = False) -> float:
    """Kappa of one table."""
    return float(kappas(np.asarray([table], dtype=np.float64), squared=squared)[0])


@each_case("seed", range(5))
@each_case("weights", [None, "quadratic"])
def test_kappa_is_that_of_scikit_learn(weights: str | None, seed: int) -> None:
    """Cohen's kappa, weighted or not, equals an independent implementation."""
    from sklearn.metrics import cohen_kappa_score

    people, judge = grades(150, seed)
    expected = cohen_kappa_score(people, judge, weights=weights)
    assert kappa(confusion(people, judge, (0, 1, 2)), squared=weights is not None) == pytest.approx(expected, abs=EXACT)


@each_case("seed", range(5))
def test_the_table_is_that_of_scikit_learn(seed: int) -> None:
    """Counts equal an independent implementation."""
    from sklearn.metrics import confusion_matrix

    people, judge = grades(90, seed)
    assert [list(row) for row in confusion(people, judge, (0, 1, 2))] == confusion_matrix(people, judge).tolist()


def test_kappa_of_chance_is_zero() -> None:
    """A judge that always says yes has kappa 0."""
    assert kappa(confusion([1] * 95 + [0] * 5, [1] * 100, (0, 1))) == pytest.approx(0.0)


@each_case(
    ("call", "says"),
    [
        (lambda: confusion([1], [1, 0], [0, 1]), "1 and 2"),
        (lambda: confusion([1], [3], [0, 1]), "got 3"),
    ],
)
def test_what_cannot_be_is_refused(call: object, says: str) -> None:
    """Series of different lengths and labels that are not possible are errors."""
    assert callable(call)
    with pytest.raises(ValueError, match=says):
        call()
