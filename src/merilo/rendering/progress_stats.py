"""How fast a run goes, what it costs, and how long it still takes, from what was seen of it so far."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.engine.schedule import BLOCK

if TYPE_CHECKING:
    from merilo.engine.traffic import Traffic

_SPAN_S: Final = 60.0
"""Samples finished within it say how fast the run is; where that are few, it is longer."""
_RATE_SPAN_S: Final = 10.0
_APART_S: Final = 1.0
_SETTLED_S: Final = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Pace:
    """Where a run is; None for what cannot be told yet, or at all."""

    done: int
    samples: int
    seconds: float
    """Since the run began, in this call."""
    requests_per_s: float | None = None
    in_flight: int = 0
    retries: int = 0
    paused_s: float = 0.0
    cost_usd: float | None = None
    cost_in_all_usd: float | None = None
    seconds_left: float | None = None


class _Seen(NamedTuple):
    at: float
    done: int
    cost_usd: float


class Pacer:
    """Looks at a run some times a second; `now` is any clock in seconds."""

    def __init__(self, samples: int, now: float) -> None:
        self._samples = samples
        self._began = now
        self._first = _Seen(now, 0, 0.0)
        self._seen: deque[_Seen] = deque([self._first])
        self._sends: deque[tuple[float, int]] = deque([(now, 0)])
        self._asking = False

    def look(self, now: float, done: int, traffic: Traffic | None) -> Pace:
        """The pace at this moment; `done` samples are finished."""
        sent, cost = (0, None) if traffic is None else (traffic.sent, traffic.cost_usd)
        self._remember(now, done, cost or 0.0, sent)
        seconds, left_s = now - self._began, self._left_s(now, done)
        if traffic is None or not sent:
            return Pace(done=done, samples=self._samples, seconds=seconds, seconds_left=left_s)
        return Pace(
            done=done,
            samples=self._samples,
            seconds=seconds,
            requests_per_s=self._requests_per_s(now, sent),
            in_flight=traffic.in_flight,
            retries=traffic.retries,
            paused_s=traffic.paused_s,
            cost_usd=cost,
            cost_in_all_usd=None if cost is None else self._in_all_usd(done, cost),
            seconds_left=left_s,
        )

    def _remember(self, now: float, done: int, cost_usd: float, sent: int) -> None:
        if sent and not self._asking:  # what was known before takes no time: count from the first request
            self._asking = True
            self._first = _Seen(now, done, 0.0)
            self._seen = deque([self._first])
        seen = self._seen
        if done != seen[-1].done:
            seen.append(_Seen(now, done, cost_usd))
        while len(seen) > 1 and now - seen[1].at >= _SPAN_S and done - seen[1].done >= 2 * BLOCK:
            seen.popleft()

    @property
    def _needed(self) -> int:
        """Finished samples that say enough."""
        return min(BLOCK, max(1, self._samples // 4))

    def _requests_per_s(self, now: float, sent: int) -> float | None:
        if now - self._sends[-1][0] >= _APART_S:
            self._sends.append((now, sent))
        while len(self._sends) > 1 and now - self._sends[1][0] >= _RATE_SPAN_S:
            self._sends.popleft()
        since, before = self._sends[0]
        return (sent - before) / (now - since) if now - since >= _APART_S else None

    def _left_s(self, now: float, done: int) -> float | None:
        """Counted down from when a sample was finished last; up again where the next block is late."""
        since, last = self._seen[0], self._seen[-1]
        if now - since.at < _SETTLED_S or last.at <= since.at or done - since.done < self._needed:
            return None
        sample_s = (last.at - since.at) / (last.done - since.done)
        waited_s = now - last.at
        late_s = max(0.0, waited_s - BLOCK * sample_s)
        return max(0.0, (self._samples - done) * sample_s - waited_s + 2 * late_s)

    def _in_all_usd(self, done: int, cost_usd: float) -> float | None:
        """What the run costs in the end, from the cost of a finished sample.

        Samples that are not finished are paid in part. Blocks of them end together, and just then that part is
        least, so the lowest cost of a sample that was seen of late is nearest to the truth.
        """
        if done == self._samples:
            return cost_usd
        first = self._first.done
        finished = [each for each in self._seen if each.done - first >= self._needed]
        if not finished:
            return None
        sample_usd = min(each.cost_usd / (each.done - first) for each in finished)
        return max(cost_usd, sample_usd * (self._samples - first))
