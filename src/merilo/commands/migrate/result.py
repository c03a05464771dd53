"""The result of a migration: old and recomputed scores of a sample of rows, or the facts in a script."""

from __future__ import annotations

from dataclasses import dataclass
from math import isclose
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from merilo.commands.migrate.script import ScriptFacts
    from merilo.commands.migrate.source import Match, Source


SAMPLE: Final = 20
"""Default number of rows to recompute."""
TOLERANCE: Final = 0.01
"""Default largest difference of two scores that count as equal."""
SEED: Final = 0


@dataclass(frozen=True, slots=True)
class Pair:
    """One sample's score in the file and here."""

    sample: str
    old: float | None
    """None if the file has no score."""
    new: float | None
    """None if the score is undefined or failed here."""
    reason: str = ""
    """The reason why there is no score here."""

    @property
    def difference(self) -> float | None:
        """The new score minus the old one; None if one of them is missing."""
        return None if self.old is None or self.new is None else self.new - self.old


@dataclass(frozen=True, slots=True)
class MigratedMetric:
    """A metric of the file, with the definition that matches it."""

    match: Match
    computed: str | None
    """The metric that was computed; None if it was not, see `reason`."""
    reason: str = ""
    pairs: tuple[Pair, ...] = ()
    tolerance: float = 0.0
    old_judge: str = ""
    """The model that judged in the file; empty if the file does not name it."""
    causes: tuple[str, ...] = ()
    """Known reasons why old and new scores differ, a sentence each; empty if none differ."""

    @property
    def compared(self) -> tuple[Pair, ...]:
        """The samples that have both scores."""
        return tuple(pair for pair in self.pairs if pair.difference is not None)

    @property
    def equal(self) -> int:
        """Number of compared samples whose scores differ by at most the tolerance."""
        return len(self.compared) - len(self.parted)

    @property
    def parted(self) -> tuple[Pair, ...]:
        """The compared samples whose scores differ by more than the tolerance, the largest difference first."""
        return tuple(
            sorted(
                (pair for pair in self.compared if not self._within(pair)),
                key=lambda pair: -abs(pair.difference or 0.0),
            )
        )

    @property
    def one_sided(self) -> tuple[Pair, ...]:
        """The samples that are scored in the file or here only."""
        return tuple(pair for pair in self.pairs if (pair.old is None) != (pair.new is None))

    @property
    def means(self) -> tuple[float, float] | None:
        """The means of the old and the new scores over the compared samples; None if there are none."""
        if not (compared := self.compared):
            return None
        old, new = (pair.old or 0.0 for pair in compared), (pair.new or 0.0 for pair in compared)
        return sum(old) / len(compared), sum(new) / len(compared)

    def _within(self, pair: Pair) -> bool:
        return isclose(pair.old or 0.0, pair.new or 0.0, rel_tol=0.0, abs_tol=self.tolerance + 1e-12)


@dataclass(frozen=True, slots=True)
class ResultMigration:
    """A file of scores, recognised, and compared with scores computed here for a sample of its rows."""

    file: str
    source: Source
    rows: int
    """Number of rows in the file."""
    sampled: int
    """Number of rows that were recomputed."""
    seed: int
    metrics: tuple[MigratedMetric, ...]
    unmatched: tuple[Match, ...]
    judge: str
    """The judge that answered here; empty if nothing was computed."""
    run: Path | None
    """The run of the recomputed rows; None if nothing was computed."""
    commands: Mapping[str, str]
    """Purpose → the command for it."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ScriptMigration:
    """The facts in a script, and the command that stands for it."""

    file: str
    facts: ScriptFacts
    commands: Mapping[str, str]
    notes: Sequence[str] = ()


Migration = ResultMigration | ScriptMigration
