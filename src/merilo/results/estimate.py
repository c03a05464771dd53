"""A number with what qualifies it, and the one function that concludes from it.

A caveat is worded once, where its fact is known. Commands collect estimates; every output draws the same ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from merilo.metrics.registry import asks_judge
from merilo.numbers import between, signed

if TYPE_CHECKING:
    from collections.abc import Mapping


class Basis(StrEnum):
    """What a mean or difference rests on."""

    NO_JUDGE = "no judge"
    """Computed without a judge, so there is no judge's error."""
    JUDGE = "judge alone"
    """Verdicts of a judge, or imported scores, whose error is not known on this data."""
    LABELS = "human labels"
    """Verdicts of a judge, corrected by human labels."""


def basis_of(metric: str, *, corrected: bool) -> Basis:
    """Return what a metric's number rests on. `corrected`: True if human labels correct it."""
    if corrected:
        return Basis.LABELS
    return Basis.JUDGE if asks_judge(metric) else Basis.NO_JUDGE


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
    def in_row(self) -> bool:
        """True if it is shown next to its number."""
        return self.level is Level.INFORMS and not self.topic

    @property
    def full(self) -> str:
        """The clause as a sentence."""
        return self.sentence if self.level is Level.WARNS else f"{self.sentence[:1].upper()}{self.sentence[1:]}."


@dataclass(frozen=True, slots=True)
class Missing:
    """Samples without a value that could change the conclusion."""

    undefined: int = 0
    failed: int = 0
    not_judged: int = 0

    @property
    def total(self) -> int:
        """Their number."""
        return self.undefined + self.failed + self.not_judged

    @property
    def words(self) -> list[str]:
        """Each count that is not 0, in words."""
        named = {"not judged": self.not_judged, "undefined": self.undefined, "failed": self.failed}
        return [f"{amount:,} {name}" for name, amount in named.items() if amount]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number, its interval, what it rests on, and its caveats: first those that force a verdict, by rank."""

    value: float | None
    interval: tuple[float, float] | None
    samples: int
    missing: Missing
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


# -- words of several caveats -------------------------------------------------------------------------

BY_JUDGE: Final = "by the judge alone"
STOPPED = "stopped before its last sample; the numbers cover only the samples so far"
"""Describes an incomplete run (after "This run was")."""
REMARKS = "Notes on intervals"
"""The heading of caveats on some intervals."""
HUMAN_LABELS = "Human labels"
"""The heading of corrections by human labels."""


def covers(sampled: str) -> str:
    """Return which errors intervals cover without human labels; `sampled`: for example "questions"."""
    return f"cover sampling of {sampled}, not judge error"


OWN_ERROR = covers("questions")
"""Follows the subject "Intervals" or "Limits"."""


def covers_imported(origin: str = "", sampled: str = "questions") -> str:
    """Return which errors intervals of imported scores cover; `origin`: the program that computed them, if known."""
    scores = f"the scores imported from {origin}" if origin else "the imported scores"
    return f"cover sampling of {sampled}, not the error of {scores}"
