"""A judge's sensitivity and specificity by group of items, such as languages or systems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from merilo.stats.agreement import check_pairs
from merilo.stats.agreement_intervals import clustered_share
from merilo.stats.intervals import Interval
from merilo.stats.resampling import Measurement, Resampling

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

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
    resampling: Resampling | None = None,
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
    own = resampling or Resampling()
    return tuple(_rates(name, [items[place] for place in places[name]], own) for name in names)


def _rates(group: str | None, items: Sequence[tuple[bool, bool, Hashable]], resampling: Resampling) -> GroupRates:
    """Return the rates of items: the human label, the judge's label, the cluster."""
    yes = [(judged, unit) for human, judged, unit in items if human]
    no = [(not judged, unit) for human, judged, unit in items if not human]
    return GroupRates(
        group=group,
        items=len(items),
        yes=len(yes),
        yes_found=sum(found for found, _ in yes),
        no_found=sum(found for found, _ in no),
        sensitivity=_rate(yes, resampling),
        specificity=_rate(no, resampling),
    )


def _rate(found: Sequence[tuple[bool, Hashable]], resampling: Resampling) -> Measurement:
    if len(found) < MIN_LABELS:
        return Measurement(None, Interval(None, "too few", level=resampling.level))
    return clustered_share([flag for flag, _ in found], clusters=[unit for _, unit in found], resampling=resampling)
