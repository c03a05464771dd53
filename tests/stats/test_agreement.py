"""Agreement as one number: published values, independent implementations, and what cannot be told."""

import random
from collections.abc import Sequence

import pytest
from each_case import each_case

from merilo.stats.agreement import (
    Distance,
    cohen_kappa,
    confusion,
    gwet_ac1,
    krippendorff_alpha,
)

EXACT = 1e-9
OBSERVERS = (
    (1, 1, None, 1),
    (2, 2, 3, 2),
    (3, 3, 3, 3),
    (3, 3, 3, 3),
    (2, 2, 2, 2),
    (1, 2, 3, 4),
    (4, 4, 4, 4),
    (1, 1, 2, 1),
    (2, 2, 2, 2),
    (None, 5, 5, 5),
    (None, None, 1, 1),
    (None, 3, None, None),
)
"""Four observers of twelve units: the worked example of Krippendorff (2011), section C."""


def grades(size: int, seed: int) -> tuple[list[int], list[int]]:
    """Grades of people and of a judge that takes them over six times in ten."""
    source = random.Random(seed)
    people = [source.choice((0, 1, 2)) for _ in range(size)]
    return people, [each if source.random() < 0.6 else source.choice((0, 1, 2)) for each in people]


@each_case("seed", range(5))
@each_case(
    ("distance", "weights"), [(Distance.NOMINAL, None), (Distance.LINEAR, "linear"), (Distance.QUADRATIC, "quadratic")]
)
def test_kappa_is_that_of_scikit_learn(distance: Distance, weights: str | None, seed: int) -> None:
    """Cohen's kappa, weighted or not, equals an independent implementation."""
    from sklearn.metrics import cohen_kappa_score

    people, judge = grades(150, seed)
    expected = cohen_kappa_score(people, judge, weights=weights)
    assert cohen_kappa(people, judge, distance=distance) == pytest.approx(expected, abs=EXACT)


@each_case("seed", range(5))
def test_the_table_is_that_of_scikit_learn(seed: int) -> None:
    """Counts equal an independent implementation."""
    from sklearn.metrics import confusion_matrix

    people, judge = grades(90, seed)
    assert [list(row) for row in confusion(people, judge).counts] == confusion_matrix(people, judge).tolist()


@pytest.mark.parametrize(
    ("distance", "alpha"),
    [
        (Distance.NOMINAL, 0.743421052631579),
        (Distance.ORDINAL, 0.8153875037548814),
        (Distance.QUADRATIC, 0.8491071428571428),
    ],
)
def test_alpha_of_the_published_example(distance: Distance, alpha: float) -> None:
    """Krippendorff's example has alpha 0.743 (nominal), 0.815 (ordinal) and 0.849 (interval); further digits are those
    of the package krippendorff 0.8.
    """
    assert krippendorff_alpha(OBSERVERS, distance=distance) == pytest.approx(alpha, abs=EXACT)


def some_ratings(seed: int) -> list[list[int | None]]:
    """Three annotators, a fifth of the ratings missing."""
    source = random.Random(seed + 100)
    people, judge = grades(120, seed)
    third = [source.choice((0, 1, 2)) for _ in people]
    rows = zip(people, judge, third, strict=True)
    return [[each if source.random() < 0.8 else None for each in row] for row in rows]


@pytest.mark.parametrize(
    ("distance", "expected"),
    [
        (Distance.NOMINAL, (0.2362876072553, 0.3201644763364, 0.1841457788713)),
        (Distance.LINEAR, (0.2222222222222, 0.3165420281185, 0.1882473522378)),
        (Distance.QUADRATIC, (0.2079262571066, 0.3129957772604, 0.1922471320387)),
    ],
)
def test_alpha_is_that_of_irrcac(distance: Distance, expected: tuple[float, ...]) -> None:
    """Alpha of three annotators with gaps equals that of irrCAC 0.4.4, which pins an old scipy and so is not here:
    `CAC(DataFrame(rows), weights=..., digits=13).krippendorff()` with identity, linear and quadratic weights.
    """
    found = [krippendorff_alpha(some_ratings(seed), distance=distance) for seed in range(3)]
    assert found == [pytest.approx(each, abs=EXACT) for each in expected]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (OBSERVERS, 0.775444068127),
        (some_ratings(1), 0.3290430210976),
        (some_ratings(2), 0.1926335794167),
    ],
)
def test_ac1_is_that_of_irrcac(rows: Sequence[Sequence[int | None]], expected: float) -> None:
    """AC1 of several annotators with gaps equals that of irrCAC 0.4.4: `CAC(...).gwet()`."""
    assert gwet_ac1(rows) == pytest.approx(expected, abs=EXACT)


def test_who_gave_a_label_does_not_matter() -> None:
    """Alpha and AC1 see the labels of an item, not their order or the gaps between them."""
    shuffled = [tuple(each for each in reversed(row) if each is not None) for row in OBSERVERS]
    assert krippendorff_alpha(shuffled) == krippendorff_alpha(OBSERVERS)
    assert gwet_ac1(shuffled) == gwet_ac1(OBSERVERS)


def test_texts_are_labels_too() -> None:
    """Labels may be texts; their order is the alphabet's."""
    assert confusion(["no", "yes"], ["yes", "yes"]).labels == ("no", "yes")
    assert cohen_kappa(["a", "b", "a"], ["a", "b", "b"]) == cohen_kappa([0, 1, 0], [0, 1, 1])


def test_kappa_of_chance_is_zero_where_ac1_is_not() -> None:
    """A judge that always says yes has kappa 0; AC1 still sees that it is mostly right."""
    people = [1] * 95 + [0] * 5
    assert cohen_kappa(people, [1] * 100) == pytest.approx(0.0)
    ac1 = gwet_ac1([(each, 1) for each in people])
    assert ac1 is not None
    assert ac1 > 0.9


def test_one_class_has_no_kappa() -> None:
    """With one human label kappa is None."""
    assert confusion([True] * 4, [True, True, True, False], labels=(False, True)).kappa() is None


def test_nothing_to_compare_is_none() -> None:
    """Without items, or without an item that two annotators rated, there is no number."""
    assert cohen_kappa([], []) is None
    assert krippendorff_alpha([[1, None], [None, 2]]) is None
    assert gwet_ac1([[1, None], [None, 2]]) is None
    assert krippendorff_alpha([]) is None


def test_all_alike_says_nothing() -> None:
    """Where every rating is the same, alpha is None: nothing could have disagreed."""
    assert krippendorff_alpha([[1, 1], [1, 1]]) is None
    assert gwet_ac1([[1, 1], [1, 1]]) is None


@each_case(
    ("call", "says"),
    [
        (lambda: confusion([1], [1, 0]), "1 and 2"),
        (lambda: confusion([1], [3], labels=[0, 1]), "got 3"),
        (lambda: gwet_ac1([[1, 7]], labels=[0, 1]), "got 7"),
        (lambda: cohen_kappa([0, 1], [0, 1], distance=Distance.ORDINAL), "Ordinal"),
    ],
)
def test_what_cannot_be_is_refused(call: object, says: str) -> None:
    """Series of different lengths and labels that are not possible are errors."""
    assert callable(call)
    with pytest.raises(ValueError, match=says):
        call()
