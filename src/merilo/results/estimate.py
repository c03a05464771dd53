"""A number with what qualifies it, and the one function that concludes from it.

A caveat is worded once, where its fact is known. Commands collect estimates; every output draws the same ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.results.basis import Basis


class Verdict(StrEnum):
    """The conclusion from a difference: a run against the base."""

    BETTER = "better"
    WORSE = "worse"
    NOT_SHOWN = "no difference shown"
    NO_CHANGE = "no change"
    """Inputs and outcomes are equal on every sample."""
    CANNOT_TELL = "cannot tell"


DECIDED: Final = frozenset({Verdict.BETTER, Verdict.WORSE})


class Level(StrEnum):
    """Where a caveat is shown; the first three on every page."""

    DECIDES = "decides"
    """As the reason of the verdict that it forces, whatever the interval."""
    LEADS = "leads"
    """Below the conclusion; only the first caveat of a code."""
    WARNS = "warns"
    """Before the numbers."""
    INFORMS = "informs"
    """In the notes under its topic; without a topic, in the explanation of the verdict."""


@dataclass(frozen=True, slots=True)
class Caveat:
    """A fact that qualifies a number."""

    code: str
    sentence: str = ""
    """A clause that can follow "because", without a full stop; a sentence if it warns; may be empty."""
    level: Level = Level.INFORMS
    forces: Verdict | None = None
    """The verdict, if the level is `DECIDES`."""
    topic: str = ""
    about: str = ""
    """A metric or a run."""
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])  # Any: JSON
    """Its figures for the JSON."""

    @property
    def full(self) -> str:
        """The clause as a sentence."""
        return self.sentence if self.level is Level.WARNS else f"{self.sentence[:1].upper()}{self.sentence[1:]}."


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number, its interval, what it rests on, and its caveats: first those that force a verdict, by rank."""

    value: float | None
    interval: tuple[float, float] | None
    samples: int
    missing: int
    """Samples without a value that could change the conclusion."""
    basis: Basis
    caveats: tuple[Caveat, ...] = ()

    def caveat(self, code: str) -> Caveat | None:
        """Return the caveat with this code; None without one."""
        return next((each for each in self.caveats if each.code == code), None)

    @property
    def forced(self) -> Caveat | None:
        """The caveat that forces the verdict; None if the interval decides."""
        return next((each for each in self.caveats if each.forces is not None), None)

    @property
    def sign(self) -> int:
        """1 if the interval is above 0, -1 if it is below 0, otherwise 0."""
        low, high = self.interval or (0.0, 0.0)
        return (low > 0) - (high < 0)

    def __str__(self) -> str:
        return f"{signed(self.value)} ({between(self.interval)})"


def verdict(found: Estimate, *, higher_is_better: bool) -> Verdict:
    """Return the verdict on a difference: as a caveat forces, otherwise by its interval."""
    if found.forced is not None and found.forced.forces is not None:
        return found.forced.forces
    if not found.sign:
        return Verdict.NOT_SHOWN
    return Verdict.BETTER if (found.sign > 0) == higher_is_better else Verdict.WORSE


def signed(value: float | None) -> str:
    """Return a difference with its sign and three decimals."""
    return "-" if value is None else f"{value:+.3f}"


def between(ends: tuple[float, float] | None) -> str:
    """Return the interval of a difference."""
    return "no interval" if ends is None else f"{signed(ends[0])} to {signed(ends[1])}"
