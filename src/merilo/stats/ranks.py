"""Rank correlations: of two series, and of systems ranked by two judges, with intervals over queries."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.stats.agreement_tables import ratio
from merilo.stats.resampling import Clusters, Measurement, Resampling, of_sums

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from merilo.stats.agreement_tables import Floats

    Ranks = NDArray[np.int64]

_BLOCK: Final = 4_000_000
_DIGITS: Final = 9


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


class RankAgreement(NamedTuple):
    """Agreement of two rankings of the same systems."""

    queries: int
    tau: Measurement
    """Kendall's tau-b."""
    rho: Measurement
    """Spearman's rho, with mean ranks for ties."""


def rank_agreement(
    first: Sequence[Sequence[float]], second: Sequence[Sequence[float]], *, resampling: Resampling | None = None
) -> RankAgreement:
    """Return the agreement of the rankings of systems by their means over queries; queries are resampled.

    `first`, `second`: one row for each query with the score of each system, such as nDCG under the grades of one judge.
    The interval is that of other samples of as many queries: with more queries both correlations are higher. At least
    two systems.
    """
    import numpy as np

    one, other = (np.asarray(each, dtype=np.float64) for each in (first, second))
    systems = one.shape[1]
    parts = np.hstack([one, other])
    group = Clusters.of(range(len(one)), resampling or Resampling())

    def correlation(place: int) -> Measurement:
        def of_rows(sums: Floats) -> Floats:
            rows = np.array_split(np.round(sums, _DIGITS), 1 + len(sums) * systems**2 // _BLOCK)
            return np.concatenate([_correlations(each[:, :systems], each[:, systems:])[place] for each in rows])

        return group.measured(of_sums(parts, of_rows), "", span=(-1.0, 1.0))

    return RankAgreement(len(one), correlation(0), correlation(1))


def _correlations(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Return tau-b and rho of each two rows; NaN if all numbers of a row are equal."""
    import numpy as np

    x, y = (np.sign(each[:, :, None] - each[:, None, :]) for each in (first, second))
    tau = ratio((x * y).sum(axis=(1, 2)), np.sqrt(np.abs(x).sum(axis=(1, 2)) * np.abs(y).sum(axis=(1, 2))))
    # Signs add up to twice the distance of a system's mean rank from the middle.
    ranks, others = x.sum(axis=2), y.sum(axis=2)
    below = np.sqrt((ranks**2).sum(axis=1) * (others**2).sum(axis=1))
    return tau, ratio((ranks * others).sum(axis=1), below)


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
