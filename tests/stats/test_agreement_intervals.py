"""Intervals of agreement: coverage, clusters, and when nothing can be told."""

import random
from math import sqrt

import numpy as np
import pytest
from scipy.special import ndtri

from merilo.stats.agreement import aurocs, aurocs_without
from merilo.stats.agreement_intervals import (
    agreement,
    label_kappa,
    mean_of,
)
from merilo.stats.intervals import Interval, Method
from merilo.stats.resampling import Measurement, Resampling

QUICK = Resampling(resamples=400)


def judged(
    clusters: int, each: int, *, base: float, separation: float, seed: int
) -> tuple[list[bool], list[bool], list[float], list[int]]:
    """Labels, a judge's labels and scores, and clusters; within a cluster both labels and errors are alike (0.3)."""
    source = random.Random(seed)
    cut = float(ndtri(1 - base))
    people: list[bool] = []
    scores: list[float] = []
    where: list[int] = []
    for cluster in range(clusters):
        label, error = source.gauss(0, sqrt(0.3)), source.gauss(0, sqrt(0.3))
        for _ in range(each):
            yes = label + source.gauss(0, sqrt(0.7)) > cut
            people.append(yes)
            scores.append(separation * yes + error + source.gauss(0, sqrt(0.7)))
            where.append(cluster)
    return people, [score > separation / 2 for score in scores], scores, where


def truths(base: float, separation: float) -> dict[str, float]:
    """The true values: normal scores one standard deviation wide, cut halfway."""
    from scipy.special import ndtr

    right = float(ndtr(separation / 2))
    expected = base * (base * right + (1 - base) * (1 - right)) + (1 - base) * (base * (1 - right) + (1 - base) * right)
    return {
        "balanced_accuracy": right,
        "kappa": (right - expected) / (1 - expected),
        "auroc": float(ndtr(separation / sqrt(2))),
    }


@pytest.mark.parametrize(
    ("clusters", "each", "base", "separation"), [(60, 1, 0.5, 1.5), (100, 3, 0.3, 1.5), (30, 5, 0.4, 2.0)]
)
def test_intervals_cover_the_truth(clusters: int, each: int, base: float, separation: float) -> None:
    """Of 100 intervals at 95 % at least 88 hold the true value of each measure, clustered or not."""
    truth = truths(base, separation)
    hits = dict.fromkeys(truth, 0)
    for seed in range(100):
        people, judge, scores, where = judged(clusters, each, base=base, separation=separation, seed=seed)
        found = agreement(people, judge, scores=scores, clusters=where, resampling=Resampling(seed, 300))
        for name, value in truth.items():
            ends = getattr(found, name).interval.ends
            assert ends is not None
            hits[name] += ends[0] <= value <= ends[1]
    assert min(hits.values()) >= 88, hits


@pytest.mark.parametrize("digits", [1, 6])
def test_values_are_those_of_scikit_learn(digits: int) -> None:
    """Balanced accuracy and AUROC equal an independent implementation, with many ties and with none."""
    from sklearn.metrics import balanced_accuracy_score, roc_auc_score

    source = random.Random(3)
    people = [source.random() < 0.3 for _ in range(300)]
    scores = [round(0.6 * source.random() + 0.3 * yes, digits) for yes in people]
    judge = [score > 0.5 for score in scores]
    found = agreement(people, judge, scores=scores, resampling=QUICK)
    assert found.balanced_accuracy.value == pytest.approx(balanced_accuracy_score(people, judge), abs=1e-9)
    assert found.auroc.value == pytest.approx(roc_auc_score(people, scores), abs=1e-9)


def test_clusters_make_intervals_wider() -> None:
    """Ten copies of an item say no more than it: by cluster the interval is that of the originals, blind it is not."""
    people, judge, _, _ = judged(60, 1, base=0.5, separation=1.5, seed=4)
    copies = [index // 10 for index in range(600)]
    ten = [people[index] for index in copies], [judge[index] for index in copies]
    one = agreement(people, judge, resampling=QUICK).kappa
    assert agreement(*ten, clusters=copies, resampling=QUICK).kappa == one
    blind = agreement(*ten, resampling=QUICK).kappa
    assert width(blind) < width(one) / 2


def width(found: Measurement) -> float:
    """How wide the interval is."""
    assert found.interval.ends is not None
    low, high = found.interval.ends
    return high - low


def test_another_seed_moves_the_ends_a_little_and_no_value() -> None:
    """Values do not depend on the seed."""
    people, judge, _, _ = judged(40, 3, base=0.4, separation=1.5, seed=1)
    one, other = (agreement(people, judge, resampling=Resampling(seed, 400)) for seed in (1, 2))
    assert one.kappa.value == other.kappa.value
    assert one.kappa.interval.ends != other.kappa.interval.ends


def test_one_class_only() -> None:
    """With one label of people there are rates with intervals; the others say why there is nothing."""
    found = agreement([True] * 50, [True] * 45 + [False] * 5, scores=[0.9] * 50)
    assert found.sensitivity.value == 0.9
    assert found.sensitivity.interval.method is Method.WILSON
    assert found.specificity.value is None
    for each in (found.kappa, found.balanced_accuracy, found.auroc):
        assert each == Measurement(None, Interval(None, "cannot tell: the human labels are all equal"))


def test_a_judge_that_is_always_right_is_not_certain() -> None:
    """Thirty of thirty right: the rate has Wilson's width; kappa is 1 and says that nothing could move it."""
    people = [True, False] * 15
    found = agreement(people, people)
    ends = found.sensitivity.interval.ends
    assert ends is not None
    assert ends == (pytest.approx(0.796, abs=0.001), 1.0)
    assert found.kappa.value == 1.0
    assert found.kappa.interval.note == "cannot tell: all resamples of the data give one value"


def test_too_few_clusters() -> None:
    """Five clusters give values without intervals; below twenty the interval says that it is rough."""
    people, judge, _, _ = judged(5, 20, base=0.5, separation=1.5, seed=2)
    where = [index // 20 for index in range(100)]
    assert (
        agreement(people, judge, clusters=where).kappa.interval.note == "cannot tell from 5 clusters; at least 6 needed"
    )
    people, judge, _, where = judged(12, 20, base=0.5, separation=1.5, seed=2)
    assert agreement(people, judge, clusters=where, resampling=QUICK).kappa.interval.remark == "only 12 clusters: rough"


def test_some_probabilities() -> None:
    """Items without a probability count for kappa, and not for AUROC."""
    people, judge, scores, _ = judged(60, 1, base=0.5, separation=1.5, seed=3)
    chances = [None if index % 2 else 0.5 + score / 20 for index, score in enumerate(scores)]
    found = agreement(people, judge, scores=chances, resampling=QUICK)
    scored = [index for index, each in enumerate(chances) if each is not None]
    own = agreement([people[at] for at in scored], [judge[at] for at in scored], scores=[chances[at] for at in scored])
    assert (found.items, found.auroc.value) == (60, own.auroc.value)


def test_grades_forgive_near_misses() -> None:
    """A judge that is one grade off now and then has a quadratic kappa well above its plain one."""
    people = [0, 1, 2] * 20
    judge = [min(2, each + (index % 2)) for index, each in enumerate(people)]
    found, plain = (
        label_kappa(people, judge, labels=(0, 1, 2), ordered=ordered, resampling=QUICK) for ordered in (True, False)
    )
    assert plain.kappa.value is not None
    assert found.kappa.value is not None
    assert found.kappa.value > plain.kappa.value + 0.1
    assert found.kappa.interval.ends is not None


def test_a_rate_near_its_end() -> None:
    """No error in sixty clusters still leaves up to six in a hundred possible."""
    found = agreement([False] * 60, [False] * 60).specificity
    assert found.value == 1.0
    assert found.interval.ends == (pytest.approx(0.9398, abs=1e-4), 1.0)


def test_the_mean_of_sources() -> None:
    """Each counts once; equal half widths h give h / sqrt(number); one without an interval takes the mean's away."""
    parts = [Measurement(value, Interval((value - 0.1, value + 0.1))) for value in (0.2, 0.4, 0.6, 0.8)]
    found = mean_of(parts)
    assert found.value == pytest.approx(0.5)
    assert found.interval.ends == (pytest.approx(0.45), pytest.approx(0.55))
    assert mean_of([*parts, Measurement(0.5, Interval(None, "few"))]).interval.ends is None
    assert mean_of([]).value is None


def test_auroc_without_each_cluster_is_that_of_the_others() -> None:
    """By midranks: the value that the items of all other clusters have, with ties and with clusters of one label."""
    source = np.random.default_rng(3)
    yes = (source.random(60) < 0.4).astype(float)
    scores = np.round(source.random(60) + 0.4 * yes, 1)
    clusters = source.integers(0, 12, 60)
    left_out = np.ones((12, 12)) - np.eye(12)
    assert aurocs_without(yes, scores, clusters) == pytest.approx(aurocs(yes, scores, left_out[:, clusters]), abs=1e-12)


def test_a_label_in_one_cluster_only_has_no_auroc_without_it() -> None:
    """Without the only cluster of yes there is nothing to rank."""
    found = aurocs_without(np.array([1.0, 0.0, 0.0]), np.array([0.9, 0.1, 0.2]), np.array([0, 1, 2]))
    assert np.isnan(found).tolist() == [True, False, False]


def test_many_clusters_are_left_out_and_not_resampled() -> None:
    """From 1,000 clusters on nothing is drawn, and the intervals are close to those of the bootstrap just below."""
    many, few = (judged(size, 1, base=0.4, separation=1.5, seed=9) for size in (1_000, 999))
    large, small = (agreement(*each[:2], scores=each[2], clusters=each[3], resampling=QUICK) for each in (many, few))
    for name in ("balanced_accuracy", "kappa", "auroc"):
        found, known = (getattr(each, name).interval for each in (large, small))
        assert (found.method, known.method) == (Method.JACKKNIFE, Method.BCA)
        assert found.seed is None
        width = known.ends[1] - known.ends[0]
        assert found.ends == pytest.approx(known.ends, abs=0.15 * width)


def test_ten_thousand_items_are_no_square(monkeypatch: pytest.MonkeyPatch) -> None:
    """No array of the 10,000 items has a row for each of them, in a single agreement or between raters."""
    largest = 0
    known = np.ones

    def ones(shape: int | tuple[int, ...], *rest: object, **named: object) -> object:
        nonlocal largest
        largest = max(largest, int(np.prod(shape)))
        return known(shape, *rest, **named)  # type: ignore[call-overload]

    monkeypatch.setattr(np, "ones", ones)
    people, judge, scores, where = judged(10_000, 1, base=0.3, separation=1.5, seed=2)
    found = agreement(people, judge, scores=scores, clusters=where)
    assert found.auroc.interval.ends is not None
    assert 0 < largest <= 10_000
