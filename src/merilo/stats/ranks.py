"""Kendall's rank correlation."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    Ranks = NDArray[np.int64]


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
