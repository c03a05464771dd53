"""The types of the pages of `merilo view`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from merilo.rendering.wording import count, duration, money

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.commands.runs.run import ListedRun
    from merilo.runs.scales import Scale


@dataclass(frozen=True, slots=True)
class ViewedRun:
    """A run in the list."""

    id: str
    """Names the run in addresses; a digest of its place in the directory."""
    name: str
    listed: ListedRun


@dataclass(frozen=True, slots=True)
class Point:
    """The mean of a metric in one run of a group."""

    place: int
    """The index of the run in its group."""
    mean: float
    interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Trend:
    """One metric over the runs of a group."""

    metric: str
    scale: Scale
    weak: bool
    lines: tuple[tuple[Point, ...], ...]
    """Points that are comparable with each other, oldest first; the line with the newest run comes last."""


@dataclass(frozen=True, slots=True)
class TrendGroup:
    """Runs over the same questions, oldest first."""

    runs: tuple[ViewedRun, ...]
    trends: tuple[Trend, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """The difference of a mean from that of the comparable run before."""

    difference: float
    apart: bool
    """True if the two intervals do not overlap."""
    better: bool


@dataclass(frozen=True, slots=True)
class LiveProgress:
    """The progress of a run that another process is writing; None for what is unknown, or not known yet."""

    done: int
    samples: int
    failed: int
    """Number of failed outcomes so far."""
    requests: int = 0
    cost_usd: float | None = None
    seconds_left: float | None = None

    @property
    def text(self) -> str:
        """The progress in words."""
        if not self.samples:  # the run is still reading its data
            return "starting"
        parts = [f"{self.done:,} of {count(self.samples, 'sample')} ({self.done / self.samples:.0%})"]
        if self.failed:
            parts.append(f"{self.failed:,} failed")
        if self.requests:
            parts.append(count(self.requests, "request"))
        if self.cost_usd:
            parts.append(f"${money(self.cost_usd)} so far")
        if self.seconds_left is not None and self.done < self.samples:
            parts.append(f"{duration(max(1.0, self.seconds_left))} left")
        return ", ".join(parts)

    def record(self) -> Mapping[str, Any]:  # Any: JSON
        """Return the progress as a JSON-able object."""
        return {
            "done": self.done,
            "samples": self.samples,
            "failed": self.failed,
            "requests": self.requests,
            "cost_usd": self.cost_usd,
            "seconds_left": self.seconds_left,
            "text": self.text,
        }
