"""Agreement of judges and annotators, each measure with its interval over clusters (resampling.py).

If a measure compares labels, the number of clusters with the rarer label determines the interval. Intervals cover
sampling of items, with the human labels assumed correct.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Final, TypeVar

from merilo.stats.agreement import (
    Confusion,
    Distance,
    ac1s,
    alphas,
    aurocs,
    aurocs_without,
    check_pairs,
    confusion,
    kappas,
    pair_ac1s,
    pair_alphas,
    rating_sums,
    recalls,
)
from merilo.stats.intervals import Interval, Method
from merilo.stats.resampling import Clusters, Measure, Measurement, Resampling, of_sums

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from merilo.stats.agreement import Floats

T = TypeVar("T", float, str)

_AS_USUAL: Final = Resampling()


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of a judge's labels with human labels, each item yes or no."""

    items: int
    yes: int
    """Items with the human label yes."""
    confusion: Confusion
    """The table of the labels False and True."""
    accuracy: Measurement
    sensitivity: Measurement
    """The fraction of items with the human label yes that the judge called yes."""
    specificity: Measurement
    """The fraction of items with the human label no that the judge called no."""
    balanced_accuracy: Measurement
    kappa: Measurement
    ac1: Measurement
    alpha: Measurement
    """Krippendorff's alpha, nominal, with the judge and the human labels as two annotators."""
    auroc: Measurement
    scored: int
    """Items with a score of the judge; AUROC uses only these."""


def agreement(
    people: Sequence[bool],
    judge: Sequence[bool],
    *,
    scores: Sequence[float | None] = (),
    clusters: Sequence[Hashable] = (),
    resampling: Resampling = _AS_USUAL,
) -> Agreement:
    """Return all measures of yes and no, with one entry for each item in every series.

    `scores`: the judge's ranking for AUROC, such as its probability of yes; None for an item without one. `clusters`:
    items with equal values are resampled together; if empty, each item is its own cluster. With fewer than 6 clusters
    there is no interval. With one class there is only its rate and the accuracy. Raises ValueError for series of
    different lengths.
    """
    for series in filter(len, (judge, scores, clusters)):
        check_pairs(people, series)
    group = Clusters.of(clusters or range(len(people)), resampling)
    table = confusion(people, judge, labels=(False, True))
    totals = group.crossed(table.labels, people, judge)
    yes = sum(people)
    classes = "" if 0 < yes < len(people) else _one_class(len(people))
    # Kappa and AUROC cannot be more certain than their rarer label allows, however many items have the other one.
    rarer = min(int((totals[:, :2].sum(axis=1) > 0).sum()), int((totals[:, 2:].sum(axis=1) > 0).sum()))
    ranks = [*scores] or [None] * len(people)
    balanced = group.tabled(totals, 2, lambda tables: recalls(tables).mean(axis=1), classes, units=rarer)
    sensitivity = group.share(totals[:, 3], totals[:, 2:].sum(axis=1))
    specificity = group.share(totals[:, 0], totals[:, :2].sum(axis=1))
    return Agreement(
        items=len(people),
        yes=yes,
        confusion=table,
        accuracy=group.share(totals[:, [0, 3]].sum(axis=1), totals.sum(axis=1)),
        sensitivity=sensitivity,
        specificity=specificity,
        balanced_accuracy=_balanced(balanced, sensitivity, specificity),
        kappa=group.tabled(totals, 2, lambda tables: kappas(tables, Distance.NOMINAL), classes, units=rarer),
        ac1=group.tabled(totals, 2, pair_ac1s, classes),
        alpha=group.tabled(totals, 2, lambda tables: pair_alphas(tables, Distance.NOMINAL), classes),
        auroc=_ranked(group, people, ranks, classes, units=rarer),
        scored=sum(each is not None for each in ranks),
    )


@dataclass(frozen=True, slots=True)
class GradeAgreement:
    """Agreement of a judge's grades with human grades."""

    confusion: Confusion
    kappa: Measurement
    """Weighted by the squares of the steps between grades."""
    kappa_linear: Measurement
    alpha: Measurement
    """Krippendorff's alpha, ordinal."""


def grade_agreement(
    people: Sequence[T],
    judge: Sequence[T],
    *,
    labels: Sequence[T],
    clusters: Sequence[Hashable] = (),
    resampling: Resampling = _AS_USUAL,
) -> GradeAgreement:
    """Return measures that penalise near misses less; arguments as in `agreement`, `labels`: all possible grades.

    Raises ValueError for series of different lengths and a grade that is not possible.
    """
    table = confusion(people, judge, labels=labels)
    group = Clusters.of(clusters or range(len(people)), resampling)
    totals, size = group.crossed(table.labels, people, judge), len(table.labels)
    classes = "" if len({*people}) > 1 else _one_class(len(people))
    return GradeAgreement(
        confusion=table,
        kappa=group.tabled(totals, size, lambda tables: kappas(tables, Distance.QUADRATIC), classes),
        kappa_linear=group.tabled(totals, size, lambda tables: kappas(tables, Distance.LINEAR), classes),
        alpha=group.tabled(totals, size, lambda tables: pair_alphas(tables, Distance.ORDINAL), classes),
    )


@dataclass(frozen=True, slots=True)
class AnnotatorAgreement:
    """Agreement of any number of annotators (humans or judges) on the same items."""

    items: int
    """Items with two ratings or more."""
    ratings: int
    alpha: Measurement
    ac1: Measurement


def annotator_agreement(
    ratings: Sequence[Sequence[T | None]],
    *,
    labels: Sequence[T] | None = None,
    distance: Distance = Distance.NOMINAL,
    clusters: Sequence[Hashable] = (),
    resampling: Resampling = _AS_USUAL,
) -> AnnotatorAgreement:
    """Return Krippendorff's alpha (by `distance`) and Gwet's AC1 of rows of ratings; see those functions."""
    import numpy as np

    sums = rating_sums(ratings, labels=labels)
    if sums is None:
        unrated = Measurement(None, Interval(None, "cannot tell: no item has a rating"))
        return AnnotatorAgreement(0, 0, unrated, unrated)
    group = Clusters.of(clusters or range(len(ratings)), resampling)
    size, rows = len(sums.labels), len(ratings)
    pairs = group.sums(sums.coincidences.reshape(rows, -1))
    parts = group.sums(np.column_stack([sums.agreeing, sums.twice, sums.rated, sums.shares]))

    def ac1(found: Floats) -> Floats:
        return ac1s(found[:, 0], found[:, 1], found[:, 3:], found[:, 2])

    alike = "" if len(sums.labels) > 1 else "cannot tell: every rating is the same"
    nothing = alike if sums.twice.any() else "cannot tell: no item has two ratings"
    return AnnotatorAgreement(
        items=int(sums.twice.sum()),
        ratings=sum(each is not None for row in ratings for each in row),
        alpha=group.tabled(pairs, size, lambda tables: alphas(tables, distance), nothing),
        ac1=group.measured(of_sums(parts, ac1), nothing),
    )


def clustered_share(
    flags: Sequence[bool], *, clusters: Sequence[Hashable] = (), resampling: Resampling = _AS_USUAL
) -> Measurement:
    """Return the fraction of items with a flag, in [0, 1]; arguments as in `agreement`."""
    import numpy as np

    group = Clusters.of(clusters or range(len(flags)), resampling)
    both = group.sums(np.stack([np.asarray(flags, dtype=np.float64), np.ones(len(flags))], axis=1))
    return group.share(both[:, 0], both[:, 1])


def mean_of(parts: Sequence[Measurement]) -> Measurement:
    """Return the unweighted mean of measures of independent parts, such as sources, whatever their sizes.

    Its interval combines theirs: on each side the root of the summed squares of the parts' distances to their ends,
    divided by their number. Source: Zou & Donner, Statistics in Medicine 27 (2008), section 2. It holds for these
    parts, not for other parts that could have been chosen. None without a part; no interval if a part has none.
    """
    values = [each.value for each in parts if each.value is not None]
    if not values or len(values) < len(parts):
        return Measurement(
            None, Interval(None, "cannot tell: no source has a value" if not values else "a source has no value")
        )
    mean = sum(values) / len(values)
    ends = [each.interval.ends for each in parts if each.interval.ends is not None]
    if len(ends) < len(values):
        return Measurement(mean, Interval(None, "cannot tell: a source has no interval"))
    below = sqrt(sum((value - low) ** 2 for value, (low, _) in zip(values, ends, strict=True))) / len(values)
    above = sqrt(sum((high - value) ** 2 for value, (_, high) in zip(values, ends, strict=True))) / len(values)
    return Measurement(mean, Interval((mean - below, mean + above)))


# -- parts of the measures ------------------------------------------------------------------------------


def _ranked(
    group: Clusters, people: Sequence[bool], ranks: Sequence[float | None], nothing: str, *, units: int
) -> Measurement:
    import numpy as np

    given = [(index, rank) for index, rank in enumerate(ranks) if rank is not None]
    if not given:
        return Measurement(None, Interval(None, "the judge gives no probability"))
    places = np.asarray([index for index, _ in given], dtype=np.int64)
    own = Clusters.of(group.of_item[places].tolist(), group.resampling)
    yes, scores = np.asarray(people, dtype=np.float64)[places], np.asarray([rank for _, rank in given], np.float64)
    measure = Measure(
        lambda weights: aurocs(yes, scores, weights[:, own.of_item]), lambda: aurocs_without(yes, scores, own.of_item)
    )
    return own.measured(measure, nothing, units=units)


def _balanced(found: Measurement, *rates: Measurement) -> Measurement:
    """Return balanced accuracy, with the interval of its two rates if one of them is too near its end for a
    bootstrap.
    """
    if found.value is None or not any(each.interval.method is Method.WILSON for each in rates):
        return found
    return Measurement(found.value, mean_of(rates).interval)


def _one_class(items: int) -> str:
    return "cannot tell: the human labels are all equal" if items else "cannot tell: there is no item"


# -- rates by group of items --------------------------------------------------------------------------


MIN_LABELS: Final = 10
"""Minimum number of human labels of a kind (yes or no) for a rate of a group."""


@dataclass(frozen=True, slots=True)
class GroupRates:
    """A judge's rates on one group of items."""

    group: str | None
    """The group's name; None for items that belong to none."""
    items: int
    yes: int
    """Items with the human label yes; the others have a no."""
    yes_found: int
    """Of these, the items that the judge called yes."""
    no_found: int
    """Items with the human label no that the judge called no."""
    sensitivity: Measurement
    """`yes_found / yes`, in [0, 1]; None with fewer than 10 such labels."""
    specificity: Measurement
    """`no_found / no`, in [0, 1]; None with fewer than 10 such labels."""

    @property
    def no(self) -> int:
        """Items with the human label no."""
        return self.items - self.yes


def rates_by_group(
    people: Sequence[bool],
    judge: Sequence[bool],
    groups: Sequence[str | None],
    *,
    clusters: Sequence[Hashable] = (),
) -> tuple[GroupRates, ...]:
    """Return the rates of each group, with one entry for each item in every series; the largest group first.

    `clusters`: items with equal values are resampled together; if empty, each item is its own cluster. Intervals are
    those of `clustered_share`; with fewer than 6 clusters there is none. They are not corrected for the number of
    groups: of 20 intervals at 95 %, one misses the true rate on average. Raises ValueError for series of different
    lengths.
    """
    for series in (judge, groups, clusters or people):
        check_pairs(people, series)
    places: dict[str | None, list[int]] = {}
    for place, group in enumerate(groups):
        places.setdefault(group, []).append(place)
    units = clusters or range(len(people))
    items = [*zip(people, judge, units, strict=True)]
    names = sorted(places, key=lambda name: (-len(places[name]), name is None, name or ""))
    found: list[GroupRates] = []
    for name in names:
        own = [items[place] for place in places[name]]
        yes = [(judged, unit) for human, judged, unit in own if human]
        no = [(not judged, unit) for human, judged, unit in own if not human]
        right = sum(flag for flag, _ in yes), sum(flag for flag, _ in no)
        found.append(GroupRates(name, len(own), len(yes), *right, _rate(yes), _rate(no)))
    return tuple(found)


def _rate(found: Sequence[tuple[bool, Hashable]]) -> Measurement:
    if len(found) < MIN_LABELS:
        return Measurement(None, Interval(None, "too few"))
    return clustered_share([flag for flag, _ in found], clusters=[unit for _, unit in found])
