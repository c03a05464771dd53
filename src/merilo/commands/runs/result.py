"""The types of a list of runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from pathlib import Path

    from merilo.runs.manifest import Manifest


class State(StrEnum):
    """The state of a run directory."""

    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    RUNNING = "running"
    """A command is writing the run."""
    UNREADABLE = "unreadable"
    """A file is missing or damaged, or belongs to a newer merilo."""


@dataclass(frozen=True, slots=True)
class ListedRun:
    """One run directory; a value that its files do not give is None."""

    path: Path
    state: State
    changed: datetime
    """The last time that merilo wrote the results, with a time zone."""
    reason: str = ""
    """The reason for the state; empty for a finished or running one."""
    data: str | None = None
    judge: str | None = None
    origin: str | None = None
    """The program that computed imported scores."""
    done: int | None = None
    samples: int | None = None
    cost_usd: float | None = None
    means: Mapping[str, float | None] = field(default_factory=dict[str, "float | None"])
    weak: frozenset[str] = frozenset()
    """The metrics that are weak with the judge."""
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, "tuple[float, float]"])
    """The intervals of the means that have one."""
    failed: int = 0
    """Number of failed outcomes, over all metrics."""
    manifest: Manifest | None = None


@dataclass(frozen=True, slots=True)
class RunList:
    """The runs below a directory, the newest first."""

    directory: Path
    runs: tuple[ListedRun, ...]
    found: int
    """Number of runs, including those that a limit leaves out."""
