"""The state that the workers of one evaluation share: its limits, its progress, and the order to stop."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final

from merilo.engine.leases import LeaseBook
from merilo.engine.progress import Traffic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.engine.budget import Budget
    from merilo.engine.leases import SharedLimit

Used = dict["SharedLimit", float]
DEATHS: Final = 3
"""Workers that may die on one block in a row without another sample done; more would only cost requests."""


@dataclass(frozen=True, slots=True)
class Status:
    """The state of all blocks together."""

    done: int
    """Samples that are done."""
    traffic: Traffic
    notes: tuple[str, ...] = ()
    """Messages since the last call."""
    refused: Mapping[SharedLimit, float] = field(default_factory=dict["SharedLimit", float])
    """The smallest amount of each limit that was refused; empty if none was."""


class Board:
    """Shared limits and progress. The workers and the driver call it."""

    def __init__(self, budget: Budget, workers: int, used: Mapping[int, Used]) -> None:
        """`used`: the amounts of each limit that each block used in earlier calls."""
        names: tuple[SharedLimit, ...] = ("max_cost_usd", "max_requests")
        limits: dict[SharedLimit, float | None] = {name: getattr(budget, name) for name in names}
        before: dict[SharedLimit, dict[int, float]] = {
            name: {block: each[name] for block, each in used.items()} for name in names
        }
        self._book = LeaseBook(limits, workers, before)
        self._done: dict[int, int] = {}
        self._traffic: dict[int, Traffic] = {}
        self._earlier = Traffic()
        self._begun: set[int] = set()
        self._deaths: dict[int, tuple[int, int]] = {}  # by block: samples done, and deaths since then
        self._notes: dict[str, bool] = {}
        self._stop = False

    def reserve(self, endpoint: str, kind: str, per_minute: float, amount: float) -> float:
        """See `SharedLimits.reserve`."""
        return self._book.reserve(endpoint, kind, per_minute, amount)

    def grant(self, block: int, name: SharedLimit, used: float, more: float) -> float:
        """See `SharedLimits.grant`."""
        return self._book.grant(block, name, used, more)

    def begin(self, block: int) -> bool:
        """Note that a block begins; return False if it must not, after a stop or at a limit."""
        if block in self._begun:
            self.note(f"The worker of shard {block} died. Another one resumes the shard.")
            last = self._traffic.pop(block, Traffic())
            self._earlier = _sum(self._earlier, replace(last, in_flight=0, queued=0))
            done = self._done.get(block, 0)
            before, deaths = self._deaths.get(block, (done, 0))
            self._deaths[block] = done, 1 if done > before else deaths + 1
        self._begun.add(block)
        return not self._stop and not self._book.refused and not self.fatal(block)

    def fatal(self, block: int) -> bool:
        """Return True if a block kills its workers."""
        return self._deaths.get(block, (0, 0))[1] >= DEATHS

    def report(self, block: int, done: int, traffic: Traffic) -> bool:
        """Update the progress of a block; return False if its evaluation must stop."""
        self._done[block] = max(done, self._done.get(block, 0))
        self._traffic[block] = traffic
        return not self._stop

    def finish(self, block: int, used: Used) -> None:
        """Note that a block ended. `used`: the amount of each limit that it used."""
        self._book.release(block, used)
        self._begun.discard(block)
        last = self._traffic.pop(block, Traffic())
        self._earlier = _sum(self._earlier, replace(last, in_flight=0, queued=0))

    def note(self, text: str) -> None:
        """Show a message to the user; equal messages are shown once."""
        self._notes.setdefault(text, False)

    def stop(self) -> None:
        """Stop all blocks; what is in flight is stored."""
        self._stop = True

    def status(self) -> Status:
        """Return the state of all blocks."""
        new = tuple(text for text, shown in self._notes.items() if not shown)
        self._notes |= dict.fromkeys(new, True)
        return Status(sum(self._done.values()), self._all(), new, dict(self._book.refused))

    def _all(self) -> Traffic:
        total = self._earlier
        for each in self._traffic.values():
            total = _sum(total, each)
        return total


def _sum(one: Traffic, other: Traffic) -> Traffic:
    known = one.cost_usd is not None and other.cost_usd is not None
    cost_usd = (one.cost_usd or 0.0) + (other.cost_usd or 0.0) if known else None
    numbers = [each.name for each in fields(Traffic) if each.name not in {"cost_usd", "paused_s"}]
    added: dict[str, Any] = {name: getattr(one, name) + getattr(other, name) for name in numbers}  # Any: as the field
    return Traffic(**added, cost_usd=cost_usd, paused_s=max(one.paused_s, other.paused_s))
