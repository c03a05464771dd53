"""The arithmetic of metrics: pure functions of numbers, each with its source."""

from __future__ import annotations

from math import fsum, hypot, inf, log2
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def mean(values: Iterable[float]) -> float:
    """Return the arithmetic mean, the same for every order of the values. Raises ValueError for no values."""
    numbers = tuple(values)
    if not numbers:
        raise ValueError("The mean of no values is undefined.")
    return fsum(numbers) / len(numbers)


def average_precision(flags: Sequence[bool], *, relevant: int | None = None) -> float:
    """Return the average precision of a ranking, in [0, 1]; 0.0 if nothing in it is relevant.

    `flags`: one for each rank, best rank first; True for a relevant item. `relevant`: the number of relevant items,
    retrieved or not.

    The mean, over the relevant ranks r, of the fraction of relevant items among the first r (Buckley & Voorhees,
    "Retrieval System Evaluation", in: TREC, MIT Press 2005). There the sum is divided by the number of all relevant
    items in the collection. Here it is divided by `relevant` if given, otherwise by the number of relevant items in
    the ranking, because items that were not retrieved were not judged.
    """
    found = 0
    precisions: list[float] = []
    for rank, flag in enumerate(flags, start=1):
        if flag:
            found += 1
            precisions.append(found / rank)
    return fsum(precisions) / (relevant or found) if precisions else 0.0


def cosine(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Return the cosine of the angle between two vectors, in [-1, 1]; None if a length is zero or not finite."""
    lengths = hypot(*left) * hypot(*right)
    if not 0 < lengths < inf:
        return None
    return max(-1.0, min(1.0, fsum(a * b for a, b in zip(left, right, strict=True)) / lengths))


def ndcg(grades: Sequence[float], k: int | None = None, *, judged: Sequence[float] | None = None) -> float | None:
    """Return the normalised discounted cumulated gain of a ranking, in [0, 1]; None if no grade is above 0.

    `grades`: one for each rank, best rank first, each ≥ 0. `k`: only the first k ranks count, None for all; the ideal
    ranking is that of *all* given grades, truncated at the same k. `judged`: the grades of all items, retrieved or
    not; if given, the ideal ranking consists of these.

    After Järvelin & Kekäläinen, "Cumulated gain-based evaluation of IR techniques", ACM TOIS 20 (2002): linear gain
    (the grade itself), and the common discount 1/log2(rank + 1). The paper divides by the logarithm of the rank and
    leaves the first ranks undiscounted. Raises ValueError.
    """
    if k is not None and k < 1:
        raise ValueError(f"nDCG needs k of at least 1, got k={k}.")
    if any(grade < 0 for grade in grades):
        raise ValueError(f"nDCG needs grades of at least 0, got {min(grades)}.")
    ideal = _dcg(sorted(grades if judged is None else judged, reverse=True)[:k])
    return _dcg(grades[:k]) / ideal if ideal > 0 else None


def f_measure(precision: float, recall: float, *, beta: float = 1.0) -> float:
    """Return the weighted harmonic mean of precision and recall, in [0, 1]; 0.0 if both are 0.

    `beta`: the weight of recall relative to precision (van Rijsbergen, "Information Retrieval", 1979, ch. 7). Raises
    ValueError unless beta is a finite number above 0.
    """
    if not 0 < beta < inf:
        raise ValueError(f"An F measure needs a finite beta above 0, got {beta}.")
    weight = beta * beta
    if precision == 0 or recall == 0:
        return 0.0
    if weight == inf:
        return recall
    return (1 + weight) / (weight / recall + 1 / precision)


def _dcg(grades: Sequence[float]) -> float:
    return fsum(grade / log2(rank + 1) for rank, grade in enumerate(grades, start=1))
