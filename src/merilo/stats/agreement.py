"""Agreement of a judge with human labels: one number without an interval (intervals: agreement_intervals.py).

Labels are numbers or texts; `people` (the human labels) and `judge` have one for each item, in the same order. A
measure that the data does not allow is None, never 0: kappa and AUROC need items of at least two labels.

Formulas work on a stack of tables at once, as a bootstrap needs; a single value is a stack of one. A table is square,
one row and one column for each label. `Floats` of shape (tables, labels, labels) contain weighted counts. Such a
function returns one number for each table, NaN if it is undefined: callers turn NaN into a reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from math import isnan
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    Label = float | str
    Floats = NDArray[np.float64]
    Places = NDArray[np.int64]

T = TypeVar("T", float, str)


class Distance(StrEnum):
    """Distances between two labels, for measures that count near misses as partial agreement."""

    NOMINAL = "nominal"
    """Equal or not."""
    ORDINAL = "ordinal"
    """By the number of ratings between them; only for Krippendorff's alpha."""
    LINEAR = "linear"
    """The number of steps between them, with the labels in ascending order."""
    QUADRATIC = "quadratic"
    """The square of the steps; for alpha on evenly spaced labels this is its interval scale."""


@dataclass(frozen=True, slots=True)
class Confusion:
    """The count of each pair of labels."""

    labels: tuple[Label, ...]
    """The labels, in ascending order."""
    counts: tuple[tuple[int, ...], ...]
    """One row for each human label, one column for each label of the judge."""

    def kappa(self, distance: Distance = Distance.NOMINAL) -> float | None:
        """Return Cohen's kappa, at most 1: 1 - observed / expected disagreement; None for fewer than two human
        labels.

        0 is agreement by chance, given how often each side gave each label. Source: Cohen, Educational and
        Psychological Measurement 20 (1960); weighted: Cohen, Psychological Bulletin 70 (1968), with the steps between
        labels, or their squares, as weights of disagreement. One difference: with one human label the formula gives
        0, and this method None.
        """
        import numpy as np

        return _only(kappas(np.asarray([self.counts], dtype=np.float64), distance))


def confusion(people: Sequence[T], judge: Sequence[T], *, labels: Sequence[T] | None = None) -> Confusion:
    """Return the table of two series of labels; `labels`: all possible ones, if the data may lack some.

    Raises ValueError for series of different lengths, and for a label that is not among `labels`.
    """
    check_pairs(people, judge)
    known = _known_labels(list(chain(people, judge)), labels)
    place = {label: index for index, label in enumerate(known)}
    counts = [[0] * len(known) for _ in known]
    for one, other in zip(people, judge, strict=True):
        counts[place[one]][place[other]] += 1
    return Confusion(known, tuple(map(tuple, counts)))


def cohen_kappa(people: Sequence[T], judge: Sequence[T], *, distance: Distance = Distance.NOMINAL) -> float | None:
    """Return Cohen's kappa; see `Confusion.kappa`. Raises ValueError for series of different lengths."""
    return confusion(people, judge).kappa(distance) if people else None


def krippendorff_alpha(ratings: Sequence[Sequence[T | None]], *, distance: Distance = Distance.NOMINAL) -> float | None:
    """Return Krippendorff's alpha of any number of annotators, at most 1; 0 is the agreement of random ratings.

    `ratings`: one row for each item with its labels, one per annotator, None for a missing one. Rows may have any
    length: it does not matter who gave a label. Items with one label are left out. `distance`: nominal, ordinal, or
    linear and quadratic steps between the labels that occur, in ascending order. None if fewer than two labels occur
    among items with two ratings. Source: Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), sections
    C and E.
    """
    sums = rating_sums(ratings)
    return None if sums is None else _only(alphas(sums.coincidences.sum(axis=0)[None], distance))


def gwet_ac1(ratings: Sequence[Sequence[T | None]], *, labels: Sequence[T] | None = None) -> float | None:
    """Return Gwet's AC1 of any number of annotators, at most 1: like kappa, but stable if nearly all labels are
    equal.

    `ratings`: as in `krippendorff_alpha`. `labels`: all possible ones; by default those that occur. Items with one
    label count for how common labels are. None if no item has two ratings, and with fewer than two labels. Source:
    Gwet, British Journal of Mathematical and Statistical Psychology 61 (2008), section 5, equations 10-11.
    """
    sums = rating_sums(ratings, labels=labels)
    if sums is None:
        return None
    return _only(ac1s(*(each.sum(axis=0)[None] for each in (sums.agreeing, sums.twice, sums.shares, sums.rated))))


# -- parts that the intervals use too -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RatingSums:
    """The sums for each item from which alpha and AC1 are computed; both are functions of the totals."""

    labels: tuple[Label, ...]
    coincidences: Floats
    """(items, labels, labels); zeros for an item with fewer than two ratings."""
    agreeing: Floats
    """The fraction of agreeing pairs of ratings; 0 for an item with fewer than two."""
    twice: Floats
    """1 for an item with two ratings or more, otherwise 0."""
    shares: Floats
    """(items, labels): the fraction of ratings with each label."""
    rated: Floats
    """1 for an item with a rating, otherwise 0."""


def rating_sums(ratings: Sequence[Sequence[T | None]], *, labels: Sequence[T] | None = None) -> RatingSums | None:
    """Return the sums of each item; None without ratings. Raises ValueError for a label that is not among `labels`."""
    import numpy as np

    found = [each for row in ratings for each in row if each is not None]
    if not found:
        return None
    known = _known_labels(found, labels)
    place = {label: index for index, label in enumerate(known)}
    counts = np.zeros((len(ratings), len(known)))
    for index, row in enumerate(ratings):
        for each in row:
            if each is not None:
                counts[index, place[each]] += 1
    size = counts.sum(axis=1)
    # 1 instead of 0 avoids a division by zero; such items are set to 0 below.
    more = np.where(size > 1, size - 1, 1)[:, None, None]
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(len(known))
    coincidences = np.where((size > 1)[:, None, None], pairs / more, 0.0)
    at_least_one = np.where(size > 0, size, 1)
    return RatingSums(
        labels=known,
        coincidences=coincidences,
        agreeing=np.trace(coincidences, axis1=1, axis2=2) / at_least_one,
        twice=(size > 1).astype(np.float64),
        shares=counts / at_least_one[:, None],
        rated=(size > 0).astype(np.float64),
    )


def _known_labels(found: Iterable[T], labels: Sequence[T] | None) -> tuple[T, ...]:
    """Return all labels in ascending order: the possible ones if given, otherwise those that occur."""
    known = tuple(sorted(set(found) if labels is None else set(labels)))
    strange = [label for label in found if label not in known]
    if strange:
        raise ValueError(f"Labels must be among {', '.join(map(repr, known))}; got {strange[0]!r}.")
    return known


def check_pairs(left: Sequence[object], right: Sequence[object]) -> None:
    """Raise ValueError for series of different lengths."""
    if len(left) != len(right):
        raise ValueError(f"Two series must have the same length, got {len(left)} and {len(right)} labels.")


def _only(values: Floats) -> float | None:
    value = float(values[0])
    return None if isnan(value) else value


# Kendall's rank correlation.


# -- formulas over a stack of tables ------------------------------------------------------------------


def steps(labels: int, distance: Distance) -> Floats:
    """Return the distance between each two labels by their index, shape (labels, labels); 0 on the diagonal."""
    import numpy as np

    places = np.arange(labels, dtype=np.float64)
    apart = np.abs(places[:, None] - places[None, :])
    match distance:
        case Distance.NOMINAL:
            return np.asarray(apart > 0, dtype=np.float64)
        case Distance.LINEAR:
            return apart
        case Distance.QUADRATIC:
            return apart**2
        case Distance.ORDINAL:
            raise ValueError("Ordinal distances depend on the ratings; only Krippendorff's alpha supports them.")


def ratio(above: Floats, below: Floats) -> Floats:
    """Return `above / below`, NaN if `below` is 0."""
    import numpy as np

    return np.divide(above, below, out=np.full_like(above, np.nan), where=below != 0)


def recalls(tables: Floats) -> Floats:
    """Return the fraction of each row that is on the diagonal, shape (tables, labels)."""
    import numpy as np

    return ratio(np.diagonal(tables, axis1=1, axis2=2).copy(), tables.sum(axis=2))


def kappas(tables: Floats, distance: Distance) -> Floats:
    """Return Cohen's kappa, weighted by `distance`: 1 - observed / expected distance; NaN for fewer than two labels
    in rows.
    """
    import numpy as np

    weights = steps(tables.shape[1], distance)
    rows, cols = tables.sum(axis=2), tables.sum(axis=1)
    total = rows.sum(axis=1)
    observed = (tables * weights).sum(axis=(1, 2)) * total
    expected = np.einsum("bi,ij,bj->b", rows, weights, cols)
    # With one human label the formula gives 0 for any judge, which would look like chance agreement.
    return np.where((rows > 0).sum(axis=1) > 1, 1 - ratio(observed, expected), np.nan)


def alphas(coincidences: Floats, distance: Distance) -> Floats:
    """Return Krippendorff's alpha from coincidence matrices: symmetric, with the weight of each rating counted once.

    1 - (n - 1) sum o_ck d_ck / sum n_c n_k d_ck. NaN if fewer than two labels occur.
    """
    import numpy as np

    margins = coincidences.sum(axis=2)
    total = margins.sum(axis=1)
    if distance is Distance.ORDINAL:
        upto = np.cumsum(margins, axis=1) - margins / 2
        apart = (upto[:, :, None] - upto[:, None, :]) ** 2
    else:
        apart = np.broadcast_to(steps(coincidences.shape[1], distance), coincidences.shape)
    observed = (coincidences * apart).sum(axis=(1, 2)) * (total - 1)
    expected = np.einsum("bi,bij,bj->b", margins, apart, margins)
    return 1 - ratio(observed, expected)


def ac1s(agreeing: Floats, rated_twice: Floats, shares: Floats, rated: Floats) -> Floats:
    """Return Gwet's AC1 from sums over items.

    agreeing: sum of each item's fraction of agreeing pairs of ratings; rated_twice: items with two ratings or more;
    shares, shape (tables, labels): sum of each item's fraction of ratings with the label; rated: items with a rating.
    """
    import numpy as np

    labels = shares.shape[1]
    if labels < 2:
        return np.full(len(shares), np.nan)
    prevalence = ratio(shares, np.repeat(rated[:, None], labels, axis=1))
    chance = (prevalence * (1 - prevalence)).sum(axis=1) / (labels - 1)
    return ratio(ratio(agreeing, rated_twice) - chance, 1 - chance)


def pair_ac1s(tables: Floats) -> Floats:
    """Return Gwet's AC1 of two raters who both rated every item."""
    import numpy as np

    total = tables.sum(axis=(1, 2))
    shares = (tables.sum(axis=1) + tables.sum(axis=2)) / 2
    return ac1s(np.trace(tables, axis1=1, axis2=2), total, shares, total)


def pair_alphas(tables: Floats, distance: Distance) -> Floats:
    """Return Krippendorff's alpha of two raters who both rated every item."""
    return alphas(tables + tables.transpose(0, 2, 1), distance)


def aurocs(yes: Floats, scores: Floats, weights: Floats) -> Floats:
    """Return the fraction of pairs, one yes and one no item, in which yes has the higher score; ties count half.

    yes: 1.0 or 0.0 for each item; scores: one for each item; weights, shape (tables, items): how often an item
    counts.
    """
    import numpy as np

    order = np.argsort(scores, kind="stable")
    ranked = scores[order]
    starts = np.flatnonzero(np.concatenate(([True], ranked[1:] != ranked[:-1])))
    drawn = weights[:, order]
    above = np.add.reduceat(drawn * yes[order], starts, axis=1)
    below = np.add.reduceat(drawn * (1 - yes[order]), starts, axis=1)
    beaten = np.cumsum(below, axis=1) - below / 2
    return ratio((above * beaten).sum(axis=1), above.sum(axis=1) * below.sum(axis=1))


def aurocs_without(yes: Floats, scores: Floats, clusters: Places) -> Floats:
    """Return the AUROC without each of the clusters; NaN if one label is left. In n log n, by midranks.

    `yes`: 1.0 or 0.0 for each item; `clusters`: the number of each item's cluster, from 0. The pairs that include an
    item of the cluster are subtracted from all pairs. Sources: Hanley & McNeil, Radiology 143 (1982); by midranks:
    Sun & Xu, IEEE Signal Processing Letters 21 (2014).
    """
    import numpy as np

    count, ours = int(clusters.max()) + 1, yes > 0
    among_all = _midranks(scores, np.zeros(len(scores), dtype=np.int64))
    among_equal = _midranks(scores, ours.astype(np.int64))
    others_below = among_all - among_equal  # of the other label, ties counted half
    won = np.where(ours, others_below, ours.sum() - others_below)
    positives = np.bincount(clusters, yes, count)
    negatives = np.bincount(clusters, minlength=count) - positives
    within_ranks = np.bincount(clusters, np.where(ours, _midranks(scores, clusters), 0.0), count)
    within = within_ranks - positives * (positives + 1) / 2
    total = float(others_below[ours].sum())
    left = total - np.bincount(clusters, won, count) + within  # pairs within the cluster were subtracted twice
    return ratio(left, (positives.sum() - positives) * (negatives.sum() - negatives))


def _midranks(values: Floats, groups: Places) -> Floats:
    """Return the rank of each value within its group, from 1; equal values share the mean of their ranks."""
    import numpy as np

    order = np.lexsort((values, groups))
    ranked, own = values[order], groups[order]
    first = np.flatnonzero(np.concatenate(([True], (ranked[1:] != ranked[:-1]) | (own[1:] != own[:-1]))))
    sizes = np.diff(np.append(first, len(values)))
    starts = np.flatnonzero(np.concatenate(([True], own[1:] != own[:-1])))
    before = np.repeat(starts, np.diff(np.append(starts, len(values))))
    found = np.empty(len(values))
    found[order] = np.repeat(first + (sizes + 1) / 2, sizes) - before
    return found
