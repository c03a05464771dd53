"""Agreement of judges and annotators, each measure with its interval over clusters (resampling.py).

If a measure compares labels, the number of clusters with the rarer label determines the interval. Intervals cover
sampling of items, with the human labels assumed correct.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Final, TypeVar

from merilo.stats.agreement import (
    aurocs,
    aurocs_without,
    check_pairs,
    confusion,
    kappas,
    recalls,
)
from merilo.stats.intervals import Interval, Method
from merilo.stats.resampling import Clusters, Measure, Measurement, Resampling

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from merilo.stats.agreement import Counts


T = TypeVar("T", float, str)

_AS_USUAL: Final = Resampling()


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of a judge's labels with human labels, each item yes or no."""

    items: int
    yes: int
    """Items with the human label yes."""
    confusion: Counts
    """The count of each pair of the labels False and True, by the human label and the judge's."""
    sensitivity: Measurement
    """The fraction of items with the human label yes that the judge called yes."""
    specificity: Measurement
    """The fraction of items with the human label no that the judge called no."""
    balanced_accuracy: Measurement
    kappa: Measurement
    auroc: Measurement
    """By the items with a score of the judge."""


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
    there is no interval. With one class there is only its rate. Raises ValueError for series of
    different lengths.
    """
    for series in filter(len, (judge, scores, clusters)):
        check_pairs(people, series)
    group = Clusters.of(clusters or range(len(people)), resampling)
    totals = group.crossed((False, True), people, judge)
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
        confusion=confusion(people, judge, (False, True)),
        sensitivity=sensitivity,
        specificity=specificity,
        balanced_accuracy=_balanced(balanced, sensitivity, specificity),
        kappa=group.tabled(totals, 2, kappas, classes, units=rarer),
        auroc=_ranked(group, people, ranks, classes, units=rarer),
    )


@dataclass(frozen=True, slots=True)
class LabelAgreement:
    """Agreement of a judge's labels, of more than two, with human labels."""

    confusion: Counts
    kappa: Measurement
    """For ordered labels weighted by the squares of the steps between them."""


def label_kappa(
    people: Sequence[T],
    judge: Sequence[T],
    *,
    labels: Sequence[T],
    ordered: bool,
    clusters: Sequence[Hashable] = (),
    resampling: Resampling = _AS_USUAL,
) -> LabelAgreement:
    """Return Cohen's kappa with its interval; arguments as in `agreement`, `labels`: all possible ones.

    Raises ValueError for series of different lengths and a label that is not possible.
    """
    table = confusion(people, judge, labels)
    group = Clusters.of(clusters or range(len(people)), resampling)
    totals, size = group.crossed(labels, people, judge), len(labels)
    classes = "" if len({*people}) > 1 else _one_class(len(people))
    kappa = group.tabled(totals, size, lambda tables: kappas(tables, squared=ordered), classes)
    return LabelAgreement(table, kappa)


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
