"""Exceptions that merilo raises on purpose, as one tree.

::

    MeriloError
    ├── DataError                the data to evaluate is invalid; carries the problems
    │   └── MissingField         a sample lacks a required field
    ├── UsageError               a wrong name, parameter or option; says what to do
    ├── RubricError              a rubric text is missing, changed or does not fit its question
    ├── JudgeError               a judge gave no verdict
    │   ├── ReplyError           the reply could not be parsed as a verdict
    │   └── ProviderError        no usable reply was received
    │       ├── RateLimited      too many requests: retried later
    │       ├── Temporary        overloaded, broken connection: retried
    │       │   ├── TimedOut     no reply in time: retried
    │       │   └── Unreachable  a server that was reachable before is not any longer: retried, then the run stops
    │       ├── Refused          the provider refuses this request (content policy)
    │       ├── Permanent        this request is invalid and always will be
    │       │   └── TooLarge     this request is too large: one with fewer questions may succeed
    │       └── ProviderDown     no request can succeed (wrong key, wrong model): the run stops
    ├── RunError                 a run directory has a wrong format, is damaged or in use
    ├── LimitReached             a limit stopped an evaluation on several workers; its answers are stored
    └── Interrupted              the run was stopped, for instance by Ctrl-C; its answers are stored

Every message is short and readable: what is wrong, what was expected, and what to do.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of one record, with its location.

    `line` counts from 1. It is a line of a file or, if `unit` is "record", a position in a list. `expected`, `got` and
    `advice` are parts of a sentence; `advice` may be blank.
    """

    expected: str
    got: str
    field: str | None = None
    source: str | None = None
    line: int | None = None
    unit: str = "line"
    advice: str = ""

    @property
    def message(self) -> str:
        """The problem as one sentence (two with advice), starting with its location."""
        place = [] if self.source is None else [self.source]
        if self.line is not None:
            place.append(f"{self.unit} {self.line}")
        if self.field is not None:
            place.append(f"field {self.field!r}")
        where = f"{', '.join(place)}: " if place else ""
        sentence = f"{where}expected {self.expected}, got {self.got}."
        if self.advice:
            sentence += f" {self.advice[0].upper()}{self.advice[1:]}."
        return sentence[0].upper() + sentence[1:] if self.source is None else sentence

    def __str__(self) -> str:
        return self.message


class MeriloError(Exception):
    """Base class of all exceptions that merilo raises on purpose."""


class DataError(MeriloError):
    """The data to evaluate is invalid; `problems` lists every problem found, in order."""

    def __init__(self, message: str, *, problems: tuple[Problem, ...] = ()) -> None:
        super().__init__(message)
        self.problems = problems

    @classmethod
    def of(cls, *problems: Problem) -> "DataError":
        """Return an error with these problems, one sentence each."""
        return cls(" ".join(problem.message for problem in problems), problems=problems)


class MissingField(DataError):
    """A sample lacks a required field; `field` and `sample_id` name them."""

    def __init__(self, field: str, sample_id: str) -> None:
        super().__init__(f"Sample {sample_id!r} has no {field!r}.")
        self.args = (field, sample_id)  # copies and pickles are built from the arguments
        self.field = field
        self.sample_id = sample_id

    def __str__(self) -> str:
        return f"Sample {self.sample_id!r} has no {self.field!r}."


class UsageError(MeriloError):
    """A wrong metric name, parameter or option; the message names the valid ones or what to write instead."""


class RubricError(MeriloError):
    """A rubric text is missing, was changed after release or does not fit its question."""


class JudgeError(MeriloError):
    """A judge gave no verdict."""


class ReplyError(JudgeError):
    """A reply was received that cannot be parsed as a verdict."""


class ProviderError(JudgeError):
    """No usable reply was received; `status` is the HTTP status if there was one. `sent`: False if it was never sent.

    `received_bytes`: the size of a reply that was received and cannot be used; 0 for an error that the server reported.
    """

    def __init__(self, message: str, *, status: int | None = None, sent: bool = True, received_bytes: int = 0) -> None:
        super().__init__(message)
        self.status = status
        self.sent = sent
        self.received_bytes = received_bytes


class RateLimited(ProviderError):
    """Too many requests; `retry_after_s` is the wait that the provider asked for, in seconds, or None."""

    def __init__(self, message: str, *, retry_after_s: float | None = None, status: int | None = None) -> None:
        super().__init__(message, status=status)
        self.retry_after_s = retry_after_s


class Temporary(ProviderError):
    """The provider is overloaded or broke the connection; the same request may work later."""


class TimedOut(Temporary):
    """No reply came within the timeout; the same request may work later."""


class Unreachable(Temporary):
    """A server that was reachable before cannot be reached. It is retried for a short time; then the run stops."""


class Refused(ProviderError):
    """The provider refuses this request, for instance because of its content policy."""


class Permanent(ProviderError):
    """This request is invalid and always will be; other requests may succeed."""


class TooLarge(Permanent):
    """This request has too many questions or tokens; a request with fewer questions may succeed."""


class ProviderDown(ProviderError):
    """No request to this provider can succeed (wrong key, wrong model, no such address): the run stops."""


class RunError(MeriloError):
    """A run directory has a wrong format, is damaged or is in use."""


class LimitReached(MeriloError):
    """A limit stopped an evaluation on several workers; its answers are stored, and a higher limit resumes it."""


class Interrupted(MeriloError):
    """The run was stopped, for instance by Ctrl-C; its answers are stored."""
