"""How far judges and people agree: one number from labels, without an interval (those: agreement_intervals.py).

Labels are numbers or texts; `people` and `judge` have one for each item, in the same order. A measure that the data
does not allow is None, never 0: kappa and AUROC need items of at least two labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from math import isnan
from typing import TYPE_CHECKING, TypeVar

from merilo.stats.agreement_tables import (
    Distance,
    ac1s,
    accuracies,
    alphas,
    aurocs,
    calibration_errors,
    kappas,
    recalls,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from merilo.stats.agreement_tables import Floats, Places

    Label = float | str

T = TypeVar("T", float, str)

BINS = 10
PERFECT_DRAWS = 400


@dataclass(frozen=True, slots=True)
class Confusion:
    """How often each pair of labels was given."""

    labels: tuple[Label, ...]
    """In ascending order."""
    counts: tuple[tuple[int, ...], ...]
    """One row for each label of people, one column for each label of the judge."""

    @property
    def items(self) -> int:
        """How many items there are."""
        return sum(map(sum, self.counts))

    @property
    def accuracy(self) -> float | None:
        """The share of items with equal labels, in [0, 1]; None without items."""
        return _only(accuracies(self._stack))

    @property
    def recall(self) -> tuple[float | None, ...]:
        """For each label of people, the share of its items to which the judge gave it too; None without one.

        For labels no and yes these are specificity and sensitivity.
        """
        return tuple(map(_known, recalls(self._stack)[0].tolist()))

    @property
    def balanced_accuracy(self) -> float | None:
        """The mean recall over the labels of people, in [0, 1]; None where people gave fewer than two labels.

        Source: Brodersen et al., "The balanced accuracy and its posterior distribution", ICPR 2010, section 2; a label
        that only the judge gave has no recall and is left out.
        """
        found = [each for each in self.recall if each is not None]
        return sum(found) / len(found) if len(found) > 1 else None

    def kappa(self, distance: Distance = Distance.NOMINAL) -> float | None:
        """Cohen's kappa, at most 1: 1 - observed / expected disagreement; None where people gave fewer than two labels.

        0 is agreement by chance alone, given how often each side gave each label. Source: Cohen, Educational and
        Psychological Measurement 20 (1960); weighted: Cohen, Psychological Bulletin 70 (1968), with the steps
        between labels, or their squares, as weights of disagreement. We differ: with one label of people it is 0
        by the formula, and None here.
        """
        return _only(kappas(self._stack, distance))

    @property
    def _stack(self) -> Floats:
        import numpy as np

        return np.asarray([self.counts], dtype=np.float64)


def confusion(people: Sequence[T], judge: Sequence[T], *, labels: Sequence[T] | None = None) -> Confusion:
    """The table of two series of labels; `labels`: all that are possible, where the data may lack some.

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
    """See `Confusion.kappa`. Raises ValueError for series of different lengths."""
    return confusion(people, judge).kappa(distance) if people else None


def krippendorff_alpha(ratings: Sequence[Sequence[T | None]], *, distance: Distance = Distance.NOMINAL) -> float | None:
    """Krippendorff's alpha of any number of annotators, at most 1; 0 is what ratings dealt out at random would have.

    `ratings`: one row for each item with the labels it got, one for each annotator, None where one gave none. Rows may
    have any length: who gave a label does not matter. Items with one label say nothing and are left out. `distance`:
    nominal, ordinal, or linear and quadratic steps between the labels that occur, in ascending order. None where
    fewer than two labels occur among items with two ratings. Source: Krippendorff, "Computing Krippendorff's
    Alpha-Reliability" (2011), sections C and E.
    """
    sums = rating_sums(ratings)
    return None if sums is None else _only(alphas(sums.coincidences.sum(axis=0)[None], distance))


def gwet_ac1(ratings: Sequence[Sequence[T | None]], *, labels: Sequence[T] | None = None) -> float | None:
    """Gwet's AC1 of any number of annotators, at most 1: like kappa, but steady where nearly all items have one label.

    `ratings`: as in `krippendorff_alpha`. `labels`: all that are possible; those that occur where it is left out. Items
    with one label count for how common labels are. None where no item has two ratings, and with fewer than two labels.
    Source: Gwet, British Journal of Mathematical and Statistical Psychology 61 (2008), section 5, equations 10-11.
    """
    sums = rating_sums(ratings, labels=labels)
    if sums is None:
        return None
    return _only(ac1s(*(each.sum(axis=0)[None] for each in (sums.agreeing, sums.twice, sums.shares, sums.rated))))


def auroc(people: Sequence[bool], scores: Sequence[float]) -> float | None:
    """The chance that a random item of yes has a higher score than a random item of no, in [0, 1]; ties count half.

    None where people gave one label only. Source: Hanley & McNeil, Radiology 143 (1982), by Mann-Whitney's statistic.
    Raises ValueError for series of different lengths.
    """
    check_pairs(people, scores)
    if len({*map(bool, people)}) < 2:
        return None
    import numpy as np

    return _only(
        aurocs(np.asarray(people, dtype=np.float64), np.asarray(scores, np.float64), np.ones((1, len(scores))))
    )


@dataclass(frozen=True, slots=True)
class Bin:
    """Items with neighbouring probabilities."""

    items: int
    probability: float
    """The mean that the judge gave."""
    observed: float
    """The share that people called yes."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """How far probabilities are from what came true."""

    error: float
    """Expected calibration error: mean of |observed - probability| over the bins, weighted by items, in [0, 1]."""
    perfect: float
    """The mean error that a perfectly calibrated judge with these probabilities would show on so many items."""
    perfect_high: float
    """What 95 % of such judges stay below; an error above it is no accident of few items."""
    bins: tuple[Bin, ...]
    seed: int


def calibration(
    people: Sequence[bool], probabilities: Sequence[float], *, bins: int = BINS, seed: int = 0
) -> Calibration | None:
    """The calibration error over `bins` bins of equal mass, and what a perfect judge would show; None without items.

    `probabilities`: of yes, in [0, 1]. Items are cut into bins by probability; equal ones share a bin, so bins may be
    fewer and unequal. With few items even a perfect judge shows an error: its mean is found by drawing labels from the
    probabilities themselves, item by item (which takes items as independent, and so is low where they are not).
    Source: Naeini et al., AAAI 2015, section 2, with bins of equal mass as Nguyen & O'Connor, EMNLP 2015, section
    4.1. Raises ValueError for series of different lengths and for a probability outside [0, 1].
    """
    check_pairs(people, probabilities)
    if not people:
        return None
    if not all(0 <= each <= 1 for each in probabilities):
        raise ValueError("A probability lies between 0 and 1; leave out items without one.")
    import numpy as np

    yes, chances = np.asarray(people, dtype=np.float64), np.asarray(probabilities, dtype=np.float64)
    places = mass_bins(chances, bins)
    count = int(places.max()) + 1
    parts = [np.bincount(places, each, count) for each in (np.ones_like(yes), yes, chances)]
    sums = np.stack(parts, axis=1).astype(np.float64)
    raw = np.random.PCG64(seed).random_raw(PERFECT_DRAWS * len(yes))
    uniform = (np.atleast_1d(raw) >> np.uint64(11)).astype(np.float64).reshape(PERFECT_DRAWS, -1) * 2.0**-53
    drawn = np.repeat(sums[None], PERFECT_DRAWS, axis=0)
    order = np.argsort(places, kind="stable")
    starts = np.searchsorted(places[order], np.arange(count))
    drawn[:, :, 1] = np.add.reduceat((uniform < chances)[:, order], starts, axis=1, dtype=np.float64)
    perfect = calibration_errors(drawn)
    return Calibration(
        error=float(calibration_errors(sums[None])[0]),
        perfect=float(perfect.mean()),
        perfect_high=float(np.quantile(perfect, 0.95)),
        bins=tuple(Bin(int(n), float(p / n), float(y / n)) for n, y, p in sums.tolist()),
        seed=seed,
    )


def kendall_tau_b(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Kendall's rank correlation with ties (tau-b), in [-1, 1]; None when either series has no two different numbers.

    `left`, `right`: one number for each item, in the same order. 1 when both order the items alike, 0 when the
    orders have nothing in common. Source: Kendall, "The treatment of ties in ranking problems", Biometrika 33
    (1945). Raises ValueError when the lengths differ.
    """
    if len(left) != len(right):
        raise ValueError(f"Two series are compared item by item, but have {len(left)} and {len(right)} numbers.")
    if len(set(left)) < 2 or len(set(right)) < 2:
        return None
    from scipy.stats import kendalltau

    return float(kendalltau(left, right, variant="b").statistic)


# -- what intervals are made of too -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RatingSums:
    """What alpha and AC1 are made of, for each item; both are functions of the sums over items."""

    labels: tuple[Label, ...]
    coincidences: Floats
    """(items, labels, labels); nothing for an item with fewer than two ratings."""
    agreeing: Floats
    """The share of agreeing pairs of ratings; 0 for an item with fewer than two."""
    twice: Floats
    """1 for an item with two ratings or more, else 0."""
    shares: Floats
    """(items, labels): the share of ratings with each label."""
    rated: Floats
    """1 for an item with a rating, else 0."""


def rating_sums(ratings: Sequence[Sequence[T | None]], *, labels: Sequence[T] | None = None) -> RatingSums | None:
    """See `RatingSums`; None where there is no rating. Raises ValueError for a label that is not among `labels`."""
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
    """All labels in ascending order: those that are possible, where they are said, else those found."""
    known = tuple(sorted(set(found) if labels is None else set(labels)))
    strange = [label for label in found if label not in known]
    if strange:
        raise ValueError(f"A label is one of {', '.join(map(repr, known))}; got {strange[0]!r}.")
    return known


def mass_bins(values: Floats, bins: int) -> Places:
    """The bin of each value, from 0: as many values in each as can be, equal values always in one."""
    import numpy as np

    order = np.argsort(values, kind="stable")
    ranked = values[order]
    firsts = np.searchsorted(ranked, ranked)  # a value goes where the first of its equals goes
    bin_of_rank = firsts * bins // len(values)
    places = np.empty(len(values), dtype=np.int64)
    places[order] = np.unique(bin_of_rank, return_inverse=True)[1]
    return places


def check_pairs(left: Sequence[object], right: Sequence[object]) -> None:
    """Nothing. Raises ValueError for series of different lengths."""
    if len(left) != len(right):
        raise ValueError(f"Two series are compared item by item, but have {len(left)} and {len(right)} labels.")


def _only(values: Floats) -> float | None:
    return _known(float(values[0]))


def _known(value: float) -> float | None:
    return None if isnan(value) else value
