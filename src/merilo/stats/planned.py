"""Gates that decide at planned looks only: drops, and clustered samples, of a run that may stop early."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from merilo.stats.gate import Decision, GateVerdict, gate_drop, gate_minimum
from merilo.stats.looks import look_levels

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from merilo.stats.column import Column
    from merilo.stats.compare import Policy

FIRST_LOOK = 40
"""Samples (clusters if samples are clustered) at the first look; each further look has twice as many."""
_LARGEST_BEFORE_LAST = 0.8
"""Largest fraction of the data at the look before the last one, as a look just before the end decides little."""


class Look(NamedTuple):
    """A planned look at the first samples of a run."""

    number: int
    """1 for the first look."""
    size: int
    """Samples at this look; pairs for a drop."""
    level: float
    """Confidence of each one-sided limit at this look."""


class Looked(NamedTuple):
    """A decision and the look that it was made at."""

    decision: Decision
    look: Look


@dataclass(frozen=True, slots=True)
class Looks:
    """The planned looks of a run."""

    units: tuple[int, ...]
    """Samples, or clusters, at each look; the last look has all of them."""
    sizes: tuple[int, ...]
    """Samples at each look; `units` if samples are not clustered."""

    def levels(self, level: float) -> tuple[float, ...]:
        """Return the one-sided level at each look, so that all looks together have confidence `level`."""
        return look_levels([each / self.units[-1] for each in self.units], level)

    def reached(self, samples: int, level: float) -> tuple[Look, ...]:
        """Return the looks that the first `samples` samples reach."""
        pairs = zip(self.sizes, self.levels(level), strict=True)
        return tuple(Look(number, size, at) for number, (size, at) in enumerate(pairs, start=1) if size <= samples)


def planned_units(count: int) -> tuple[int, ...]:
    """Return the numbers of samples or clusters at which `count` of them are looked at: 40, 80, 160, ... and all."""
    found: list[int] = []
    units = FIRST_LOOK
    while units <= _LARGEST_BEFORE_LAST * count:
        found.append(units)
        units *= 2
    return (*found, count)


def planned_minimum(
    column: Column,
    at_least: float,
    looks: Sequence[Look],
    *,
    clusters: Sequence[Hashable] | None = None,
    undefined: Policy | None = None,
) -> Looked:
    """Decide as `gate_minimum` at the first look that decides, or else at the last of these looks."""

    def decide(look: Look) -> Decision:
        groups = None if clusters is None else clusters[: look.size]
        return gate_minimum(column.first(look.size), at_least, clusters=groups, undefined=undefined, level=look.level)

    return _decided(decide, looks)


def planned_drop(
    base: Column,
    new: Column,
    max_drop: float,
    looks: Sequence[Look],
    *,
    strict: bool = False,
    clusters: Sequence[Hashable] | None = None,
    undefined: Policy | None = None,
) -> Looked:
    """Decide as `gate_drop` at the first look that decides, or else at the last of these looks."""

    def decide(look: Look) -> Decision:
        columns = (base.first(look.size), new.first(look.size))
        groups = None if clusters is None else clusters[: look.size]
        return gate_drop(*columns, max_drop, strict=strict, clusters=groups, undefined=undefined, level=look.level)

    return _decided(decide, looks)


def _decided(decide: Callable[[Look], Decision], looks: Sequence[Look]) -> Looked:
    """Return the first decision. Raises ValueError without a look."""
    for look in looks:
        found = decide(look)
        if found.verdict is not GateVerdict.CANNOT_TELL or look is looks[-1]:
            reason = f"{found.reason[:-1]} at look {look.number} (one-sided level {look.level:.3f})."
            # No deciding samples are named: more samples decide.
            return Looked(replace(found, reason=reason, deciding=(), would=None), look)
    raise ValueError("A decision at planned looks needs at least one look.")
