"""Two raters of equal standing: known values, and what neither of them may decide alone."""

import random
from dataclasses import fields

import pytest
from each_case import each_case

from merilo.stats.agreement import gwet_ac1, krippendorff_alpha
from merilo.stats.agreement_pairs import PairAgreement, pair_agreement
from merilo.stats.agreement_tables import Distance
from merilo.stats.resampling import Measurement, Resampling

QUICK = Resampling(resamples=400)


def grades(items: int, *, seed: int = 3) -> tuple[list[int], list[int], list[int]]:
    """Grades of two raters who often agree, and the cluster of each item."""
    dice = random.Random(seed)
    first = [dice.choice((0, 0, 1, 2)) for _ in range(items)]
    second = [grade if dice.random() < 0.7 else dice.choice((0, 1, 2)) for grade in first]
    return first, second, [item // 2 for item in range(items)]


def test_kappas_are_those_of_scikit_learn() -> None:
    """Plain, linear and quadratic kappa equal an independent implementation to 1e-9."""
    from sklearn.metrics import cohen_kappa_score

    first, second, _ = grades(200)
    found = pair_agreement(first, second, labels=(0, 1, 2), ordered=True, resampling=QUICK)
    assert found.kappa_linear is not None
    assert found.kappa_quadratic is not None
    known = [cohen_kappa_score(first, second, weights=weights) for weights in (None, "linear", "quadratic")]
    ours = [found.kappa.value, found.kappa_linear.value, found.kappa_quadratic.value]
    assert ours == pytest.approx(known, abs=1e-9)


def test_alpha_and_ac1_are_those_of_the_pairs() -> None:
    """Ordinal alpha and AC1 equal the functions for any number of annotators, which are tested against irrCAC."""
    first, second, _ = grades(120)
    found = pair_agreement(first, second, labels=(0, 1, 2), ordered=True, resampling=QUICK)
    pairs = list(zip(first, second, strict=True))
    assert found.alpha.value == pytest.approx(krippendorff_alpha(pairs, distance=Distance.ORDINAL), abs=1e-9)
    assert found.ac1.value == pytest.approx(gwet_ac1(pairs), abs=1e-9)


@pytest.mark.parametrize("ordered", [True, False])
def test_places_may_be_changed(ordered: bool) -> None:
    """With the raters in each other's place every measure and interval is the same, and the table is turned."""
    first, second, clusters = grades(80)
    one = pair_agreement(first, second, labels=(0, 1, 2), ordered=ordered, clusters=clusters, resampling=QUICK)
    other = pair_agreement(second, first, labels=(0, 1, 2), ordered=ordered, clusters=clusters, resampling=QUICK)
    for each in measures(one):
        mine, theirs = getattr(one, each), getattr(other, each)
        assert mine.value == pytest.approx(theirs.value, abs=1e-12)
        assert mine.interval.ends == pytest.approx(theirs.interval.ends, abs=1e-9)
    assert one.confusion.counts == tuple(zip(*other.confusion.counts, strict=True))


def measures(found: PairAgreement) -> list[str]:
    """The names of the fields with an interval."""
    return [each.name for each in fields(found) if isinstance(getattr(found, each.name), Measurement)]


def test_items_of_one_cluster_are_drawn_together() -> None:
    """Ten copies of each item, in one cluster each, leave the interval as wide as it was."""
    first, second, _ = grades(60)
    alone = pair_agreement(first, second, labels=(0, 1, 2), ordered=True, resampling=QUICK)
    many = pair_agreement(
        first * 10, second * 10, labels=(0, 1, 2), ordered=True, clusters=[*range(60)] * 10, resampling=QUICK
    )
    assert many.kappa.interval.ends == pytest.approx(alone.kappa.interval.ends, abs=1e-9)
    assert (many.items, many.clusters) == (600, 60)


@each_case(
    ("first", "second", "says"),
    [
        ([1] * 20, [1] * 20, "each gave one label only"),
        ([1] * 20, [0, 1] * 10, "one of them gave one label only"),
        ([0, 1] * 10, [1] * 20, "one of them gave one label only"),
        ([], [], "there is no item"),
    ],
)
def test_one_label_is_a_rate_and_no_kappa(first: list[int], second: list[int], says: str) -> None:
    """Where either rater gave one label only there is no kappa, with the reason, whichever of them it was."""
    found = pair_agreement(first, second, labels=(0, 1), ordered=True, resampling=QUICK)
    assert found.kappa.value is None
    assert says in found.kappa.interval.note
    assert (found.accuracy.value is None) == (not first)


def test_equal_labels_throughout_have_accuracy_with_an_interval() -> None:
    """Full agreement on two labels: accuracy 1 with Wilson's interval, kappa 1 without one, as nothing varies."""
    labels = [0, 1] * 20
    found = pair_agreement(labels, labels, labels=(0, 1), ordered=True, resampling=QUICK)
    assert found.accuracy.value == found.kappa.value == 1.0
    low, high = found.accuracy.interval.ends or (0.0, 0.0)
    assert low < 1 <= high
    assert found.kappa.interval.ends is None


def test_few_clusters_tell_nothing() -> None:
    """Five clusters give values and no interval."""
    first, second, _ = grades(50)
    clusters = [item % 5 for item in range(50)]
    found = pair_agreement(first, second, labels=(0, 1, 2), ordered=True, clusters=clusters, resampling=QUICK)
    assert found.kappa.value is not None
    assert found.kappa.interval.ends is None
    assert "at least 6 needed" in found.kappa.interval.note


def test_two_labels_have_no_weights() -> None:
    """With two labels every step is one, so there is one kappa."""
    found = pair_agreement([0, 1] * 10, [0, 1, 1, 1] * 5, labels=(0, 1), ordered=True, resampling=QUICK)
    assert found.kappa_quadratic is None
    assert found.kappa_linear is None


def test_an_interval_of_kappa_covers_the_truth() -> None:
    """Over 200 studies of 60 items nominal 95 % intervals of kappa hold the truth in at least 91 %."""
    held = 0
    for study in range(200):
        dice = random.Random(study)
        first = [int(dice.random() < 0.5) for _ in range(60)]
        second = [grade if dice.random() < 0.8 else 1 - grade for grade in first]
        found = pair_agreement(first, second, labels=(0, 1), ordered=True, resampling=QUICK)
        low, high = found.kappa.interval.ends or (-1.0, 1.0)
        held += low <= 0.6 <= high
    assert held >= 182
