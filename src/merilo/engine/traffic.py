"""What is on its way between a run and its endpoints: figures to be read at any moment, and events for who listens."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class EventKind(StrEnum):
    """What happened to a request."""

    SENT = "sent"
    REPLIED = "replied"
    RETRIED = "retried"
    """It failed for a reason that may pass, and goes again after `seconds`."""
    GAVE_UP = "gave_up"
    LIMITED = "limited"
    """The endpoint said that it is asked too much."""


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened to a request; `seconds` is how long the reply took, or how long is waited."""

    kind: EventKind
    endpoint: str
    seconds: float = 0.0
    detail: str = ""
    """Why, as a sentence; empty where nothing went wrong. It may quote the endpoint, and so what was asked."""
    status: int | None = None
    """The HTTP status, where something went wrong and there was one."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """One call's requests so far; earlier parts of a resumed run are not in it."""

    sent: int = 0
    """Requests begun, those sent again included."""
    in_flight: int = 0
    queued: int = 0
    """Requests that wait for their turn, or to be sent again."""
    retries: int = 0
    given_up: int = 0
    known: int = 0
    """Answers that the run or the cache held, so that nothing was sent for them."""
    input_tokens: int = 0
    """Of the replies, as reported or else estimated; likewise output."""
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    """Charged so far, unanswered requests included; None if the price of any part is unknown."""
    paused_s: float = 0.0
    """Seconds until a paused endpoint may be asked again; 0 when none is paused."""
