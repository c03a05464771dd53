"""Statistics of the requests of a run, readable at any time, and events for listeners."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class EventKind(StrEnum):
    """Kind of event of a request."""

    SENT = "sent"
    REPLIED = "replied"
    RETRIED = "retried"
    """It failed for a temporary reason and is sent again after `seconds`."""
    GAVE_UP = "gave_up"
    LIMITED = "limited"
    """The endpoint answered "too many requests"."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event of one request. `seconds` is the time until the reply, or the wait before the next attempt."""

    kind: EventKind
    endpoint: str
    seconds: float = 0.0
    detail: str = ""
    """The reason as a sentence; empty without an error. It may quote the endpoint, and so text of the data."""
    status: int | None = None
    """The HTTP status of the error, if there was one."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Statistics of one call's requests so far, without earlier parts of a resumed run."""

    sent: int = 0
    """Requests sent, retries included."""
    in_flight: int = 0
    queued: int = 0
    """Requests that wait in the queue or for a retry."""
    retries: int = 0
    given_up: int = 0
    known: int = 0
    """Answers found in the run or the cache, for which no request was sent."""
    input_tokens: int = 0
    """Tokens of answered requests, as reported or otherwise estimated; likewise `output_tokens`."""
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    """Charged so far, unanswered requests included; None if the price of any part is unknown."""
    paused_s: float = 0.0
    """Seconds until a paused endpoint may receive requests again; 0 if none is paused."""
