"""The rate, cost and remaining time of a run, estimated from its progress so far."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.engine.schedule import BLOCK

if TYPE_CHECKING:
    from merilo.engine.progress import Traffic

_SPAN_S: Final = 60.0
"""Seconds of history that the rate is computed from; longer while it holds fewer than two blocks of samples."""
_RATE_SPAN_S: Final = 10.0
_APART_S: Final = 1.0
"""Minimum seconds between two entries of the history of requests, and that a rate is computed from."""
_SETTLED_S: Final = 5.0
"""Seconds before the first estimate of the remaining time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgressStats:
    """The progress of a run; None for what is unknown, or not known yet."""

    done: int
    samples: int
    seconds: float
    """Seconds since this command began the run."""
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


class ProgressMeter:
    """Estimates the pace of a run; `look` is called several times per second. `now` is any clock in seconds."""

    def __init__(self, samples: int, now: float) -> None:
        self._samples = samples
        self._began = now
        self._first = _Seen(now, 0, 0.0)
        self._seen: deque[_Seen] = deque([self._first])
        self._sends: deque[tuple[float, int]] = deque([(now, 0)])
        self._asking = False

    def look(self, now: float, done: int, traffic: Traffic | None) -> ProgressStats:
        """Return the pace at this moment; `done` samples are finished."""
        sent, cost = (0, None) if traffic is None else (traffic.sent, traffic.cost_usd)
        self._remember(now, done, cost or 0.0, sent)
        seconds, left_s = now - self._began, self._left_s(now, done)
        if traffic is None or not sent:
            return ProgressStats(done=done, samples=self._samples, seconds=seconds, seconds_left=left_s)
        return ProgressStats(
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
        if sent and not self._asking:  # stored and cached answers take no time: count from the first request
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
        """The minimum number of finished samples for an estimate."""
        return min(BLOCK, max(1, self._samples // 4))

    def _requests_per_s(self, now: float, sent: int) -> float | None:
        if now - self._sends[-1][0] >= _APART_S:
            self._sends.append((now, sent))
        while len(self._sends) > 1 and now - self._sends[1][0] >= _RATE_SPAN_S:
            self._sends.popleft()
        since, before = self._sends[0]
        return (sent - before) / (now - since) if now - since >= _APART_S else None

    def _left_s(self, now: float, done: int) -> float | None:
        """Return the seconds left; they count down between samples, and up again if the next block is late."""
        since, last = self._seen[0], self._seen[-1]
        if now - since.at < _SETTLED_S or last.at <= since.at or done - since.done < self._needed:
            return None
        sample_s = (last.at - since.at) / (last.done - since.done)
        waited_s = now - last.at
        late_s = max(0.0, waited_s - BLOCK * sample_s)
        return max(0.0, (self._samples - done) * sample_s - waited_s + 2 * late_s)

    def _in_all_usd(self, done: int, cost_usd: float) -> float | None:
        """Return the estimated final cost of the run, from the cost per finished sample.

        Unfinished samples are partly paid for, which inflates the cost per finished one. Samples finish in blocks, and
        right after a block the inflation is smallest. So the lowest recent cost per sample is the best estimate.
        """
        if done == self._samples:
            return cost_usd
        first = self._first.done
        finished = [each for each in self._seen if each.done - first >= self._needed]
        if not finished:
            return None
        sample_usd = min(each.cost_usd / (each.done - first) for each in finished)
        return max(cost_usd, sample_usd * (self._samples - first))
