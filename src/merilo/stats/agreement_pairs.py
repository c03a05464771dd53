"""Agreement of two raters with equal status, such as two judges: neither counts as true.

Swapping the raters only transposes the table. Intervals are as in agreement_intervals.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from merilo.stats.agreement import Confusion, confusion
from merilo.stats.agreement_tables import Distance, kappas, pair_ac1s, pair_alphas
from merilo.stats.resampling import Clusters, Measurement, Resampling

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from merilo.stats.agreement_tables import Floats

T = TypeVar("T", float, str)

_AS_USUAL: Final = Resampling()
_TWO: Final = 2


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """Agreement of the labels of two raters over the same items."""

    items: int
    clusters: int
    confusion: Confusion
    """Rows are the first rater's labels, columns the second's."""
    accuracy: Measurement
    """The fraction of items with equal labels."""
    kappa: Measurement
    """Cohen's kappa: every difference counts the same."""
    kappa_quadratic: Measurement | None
    """Weighted by the squares of the steps between labels; None for labels without an order, and for two."""
    kappa_linear: Measurement | None
    """Weighted by the steps themselves; None as above."""
    alpha: Measurement
    """Krippendorff's alpha: ordinal if labels have an order, otherwise nominal."""
    alpha_nominal: Measurement
    ac1: Measurement
    """Gwet's AC1."""
    by_label: tuple[Measurement, ...]
    """For each label the specific agreement: of all times that either rater gave it, the fraction that both did.

    Source: Cicchetti & Feinstein, Journal of Clinical Epidemiology 43 (1990), "High agreement but low kappa: II".
    """
    resampling: Resampling = field(default_factory=Resampling)


def pair_agreement(
    first: Sequence[T],
    second: Sequence[T],
    *,
    labels: Sequence[T],
    ordered: bool,
    clusters: Sequence[Hashable] = (),
    resampling: Resampling = _AS_USUAL,
) -> PairAgreement:
    """Return all measures of two raters, with one label of each for every item.

    `labels`: all possible ones; `ordered`: a higher one means more. `clusters`: items with equal values are resampled
    together; if empty, each item is its own cluster. If either rater gave one label only, there is no kappa; if both
    gave the same one, no alpha either. Raises ValueError for series of different lengths and a label that is not
    possible.
    """
    import numpy as np

    table = confusion(first, second, labels=labels)
    group = Clusters.of(clusters or range(len(first)), resampling)
    size = len(table.labels)
    totals = group.crossed(table.labels, first, second)
    counts = totals.reshape(-1, size, size)
    nothing = _one_label(first, second)
    units = _rarer(counts)
    more = ordered and size > _TWO

    def kappa(distance: Distance) -> Measurement:
        return group.tabled(totals, size, lambda tables: _kappas(tables, distance), nothing, units=units)

    alike = "cannot tell: both gave one and the same label" if len({*first, *second}) == 1 else ""

    def alpha(distance: Distance) -> Measurement:
        return group.tabled(totals, size, lambda tables: pair_alphas(tables, distance), _or_none(first, alike))

    nominal = alpha(Distance.NOMINAL)
    return PairAgreement(
        items=len(first),
        clusters=group.count,
        confusion=table,
        accuracy=group.share(np.trace(counts, axis1=1, axis2=2), totals.sum(axis=1)),
        kappa=kappa(Distance.NOMINAL),
        kappa_quadratic=kappa(Distance.QUADRATIC) if more else None,
        kappa_linear=kappa(Distance.LINEAR) if more else None,
        alpha=alpha(Distance.ORDINAL) if more else nominal,
        alpha_nominal=nominal,
        ac1=group.tabled(totals, size, pair_ac1s, _or_none(first, "")),
        by_label=tuple(
            group.share(2 * counts[:, each, each], counts[:, each].sum(axis=1) + counts[:, :, each].sum(axis=1))
            for each in range(size)
        ),
        resampling=resampling,
    )


def _kappas(tables: Floats, distance: Distance) -> Floats:
    """Return kappas that do not change if the raters are swapped: NaN if either gave one label only."""
    import numpy as np

    # `kappas` checks the rows only; checking the columns too makes the result the same after a swap.
    return np.where((tables.sum(axis=1) > 0).sum(axis=1) > 1, kappas(tables, distance), np.nan)


def _rarer(totals: Floats) -> int:
    """Return the number of clusters with a label other than each rater's most common one: a kappa depends on these."""
    if not len(totals):
        return 0
    found: list[int] = []
    for axis in (2, 1):
        given = totals.sum(axis=axis)
        common = int(given.sum(axis=0).argmax())
        off = given.sum(axis=1) - given[:, common]
        found.append(min(int((off > 0).sum()), int((given[:, common] > 0).sum())))
    return min(found)


def _one_label(first: Sequence[object], second: Sequence[object]) -> str:
    if not first:
        return "cannot tell: there is no item"
    if len({*first}) == 1 and len({*second}) == 1:
        return "cannot tell: each gave one label only"
    return "cannot tell: one of them gave one label only" if 1 in (len({*first}), len({*second})) else ""


def _or_none(first: Sequence[object], why: str) -> str:
    return why if first else "cannot tell: there is no item"
