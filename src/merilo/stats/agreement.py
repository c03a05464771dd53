"""Agreement of a judge with human labels: one number without an interval (intervals: agreement_intervals.py).

Labels are numbers or texts; `people` (the human labels) and `judge` have one for each item, in the same order. A
measure that the data does not allow is None, never 0: kappa and AUROC need items of at least two labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from math import isnan, sqrt
from typing import TYPE_CHECKING, TypeVar

from merilo.stats.agreement_tables import (
    Distance,
    ac1s,
    alphas,
    kappas,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from merilo.stats.agreement_tables import Floats

    Label = float | str
    import numpy as np
    from numpy.typing import NDArray

    Ranks = NDArray[np.int64]

T = TypeVar("T", float, str)


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
        return _only(kappas(self._stack, distance))

    @property
    def _stack(self) -> Floats:
        import numpy as np

        return np.asarray([self.counts], dtype=np.float64)


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


def kendall_tau_b(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Return Kendall's rank correlation with ties (tau-b), in [-1, 1]; None if all numbers of a series are equal.

    `left`, `right`: one number for each item, in the same order. 1 if both order the items the same, 0 if the orders
    are unrelated. Source: Kendall, "The treatment of ties in ranking problems", Biometrika 33 (1945). Raises
    ValueError for different lengths.
    """
    if len(left) != len(right):
        raise ValueError(f"Two series must have the same length, got {len(left)} and {len(right)} numbers.")
    if len(set(left)) < 2 or len(set(right)) < 2:
        return None
    return tau_b(left, right)


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
    return _known(float(values[0]))


def _known(value: float) -> float | None:
    return None if isnan(value) else value


# Kendall's rank correlation.


def tau_b(left: Sequence[float] | NDArray[np.float64], right: Sequence[float] | NDArray[np.float64]) -> float:
    """Return Kendall's tau-b of two series of equal length, in [-1, 1]; both must have at least two different values.

    1 means the same order, -1 the opposite one. Ties are corrected for. Takes O(n log n) steps.

    Source: Kendall, "The treatment of ties in ranking problems", Biometrika 33 (1945); Knight, JASA 61 (1966) for
    counting discordant pairs as inversions.
    """
    import numpy as np

    x, y = (np.unique(series, return_inverse=True)[1].astype(np.int64) for series in (left, right))
    pairs = len(x) * (len(x) - 1) // 2
    tied_x, tied_y, tied_in_both = _tied(x), _tied(y), _tied(x * (y.max() + 1) + y)
    discordant = _inversions(y[np.lexsort((y, x))])
    concordant = pairs - tied_x - tied_y + tied_in_both - discordant
    return (concordant - discordant) / sqrt((pairs - tied_x) * (pairs - tied_y))


def _tied(ranks: Ranks) -> int:
    """Return the number of pairs with equal ranks."""
    import numpy as np

    counts = np.unique(ranks, return_counts=True)[1]
    return int((counts * (counts - 1) // 2).sum())


def _inversions(ranks: Ranks) -> int:
    """Return the number of pairs of which the earlier one has the greater rank.

    Splits the ranks by their highest bit, then each half by the next one, and so on, in the order of the series. A pair
    is an inversion if the first bit that differs is 1 in the earlier rank; it is counted at that bit.
    """
    import numpy as np

    found = 0
    for bit in reversed(range(int(ranks.max()).bit_length())):
        half = ranks >> (bit + 1)
        ones = (ranks >> bit) & 1
        before = np.cumsum(ones) - ones
        first = np.flatnonzero(np.concatenate(([True], half[1:] != half[:-1])))
        at_start = np.repeat(before[first], np.diff(np.append(first, len(ranks))))
        found += int(((before - at_start) * (1 - ones)).sum())
        ranks = ranks[np.argsort(ranks >> bit, kind="stable")]
    return found
