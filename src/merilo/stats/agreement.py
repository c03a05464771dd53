"""Measures of agreement of a judge with human labels, without intervals (those: agreement_intervals.py).

Labels are numbers or texts; `people` (the human labels) and `judge` have one for each item, in the same order. A
measure that the data does not allow is None, never 0: kappa and AUROC need items of at least two labels.

Formulas work on a stack of tables at once, as a bootstrap needs; a single value is a stack of one. A table is square,
one row and one column for each label. `Floats` of shape (tables, labels, labels) contain weighted counts. Such a
function returns one number for each table, NaN if it is undefined: callers turn NaN into a reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    Counts = tuple[tuple[int, ...], ...]
    Floats = NDArray[np.float64]
    Places = NDArray[np.int64]

T = TypeVar("T", float, str)


def confusion(people: Sequence[T], judge: Sequence[T], labels: Sequence[T]) -> Counts:
    """Return the count of each pair of labels: one row for each human label, one column for each label of the judge.

    Raises ValueError for series of different lengths, and for a label that is not among `labels`.
    """
    check_pairs(people, judge)
    place = {label: index for index, label in enumerate(labels)}
    counts = [[0] * len(labels) for _ in labels]
    for one, other in zip(people, judge, strict=True):
        if strange := [label for label in (one, other) if label not in place]:
            raise ValueError(f"Labels must be among {', '.join(map(repr, labels))}; got {strange[0]!r}.")
        counts[place[one]][place[other]] += 1
    return tuple(map(tuple, counts))


def check_pairs(left: Sequence[object], right: Sequence[object]) -> None:
    """Raise ValueError for series of different lengths."""
    if len(left) != len(right):
        raise ValueError(f"Two series must have the same length, got {len(left)} and {len(right)} labels.")


# Kendall's rank correlation.


# -- formulas over a stack of tables ------------------------------------------------------------------


def ratio(above: Floats, below: Floats) -> Floats:
    """Return `above / below`, NaN if `below` is 0."""
    import numpy as np

    return np.divide(above, below, out=np.full_like(above, np.nan), where=below != 0)


def recalls(tables: Floats) -> Floats:
    """Return the fraction of each row that is on the diagonal, shape (tables, labels)."""
    import numpy as np

    return ratio(np.diagonal(tables, axis1=1, axis2=2).copy(), tables.sum(axis=2))


def kappas(tables: Floats, *, squared: bool = False) -> Floats:
    """Return Cohen's kappa, at most 1: 1 - observed / expected disagreement; NaN for fewer than two labels in rows.

    0 is agreement by chance, given how often each side gave each label. `squared`: disagreement counts the squared
    steps between the labels. Source: Cohen, Educational and Psychological Measurement 20 (1960); weighted: Cohen,
    Psychological Bulletin 70 (1968).
    """
    import numpy as np

    places = np.arange(tables.shape[1], dtype=np.float64)
    apart = np.abs(places[:, None] - places[None, :])
    weights = apart**2 if squared else np.asarray(apart > 0, dtype=np.float64)
    rows, cols = tables.sum(axis=2), tables.sum(axis=1)
    total = rows.sum(axis=1)
    observed = (tables * weights).sum(axis=(1, 2)) * total
    expected = np.einsum("bi,ij,bj->b", rows, weights, cols)
    # With one human label the formula gives 0 for any judge, which would look like chance agreement.
    return np.where((rows > 0).sum(axis=1) > 1, 1 - ratio(observed, expected), np.nan)


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
