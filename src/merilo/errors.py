"""Everything that merilo raises on purpose, as one tree.

::

    MeriloError
    ├── DataError                what was to be judged is bad; carries the problems
    │   └── MissingField         a sample lacks a field that was asked for
    ├── UsageError               a wrong name, parameter or option; says what to do
    ├── RubricError              a rubric text is missing, changed or does not fit its question
    ├── JudgeError               a judge gave no verdict
    │   ├── ReplyError           the reply could not be read as a verdict
    │   └── ProviderError        the reply did not come
    │       ├── RateLimited      too many requests: ask again later
    │       ├── Temporary        overloaded, broken connection: ask again
    │       │   ├── TimedOut     no reply in time: ask again
    │       │   └── Unreachable  nobody at the address, which was reached before: ask again, then stop
    │       ├── Refused          the provider will not answer this request (content policy)
    │       ├── Permanent        this request is wrong and always will be
    │       └── ProviderDown     no request can work (wrong key, wrong model): the run stops
    ├── RunError                 a run directory has a wrong format, is damaged or in use
    └── Interrupted              somebody stopped the run; what was answered is kept

Every message is one readable sentence: what was wrong, what was expected, what came, what to do.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of one record, with the place where it stands.

    `line` counts from 1; it is a line of a file or, where `unit` is "record", a position in a list.
    `expected`, `got` and `advice` are pieces of a sentence; `advice` may be blank.
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
        """The fault as one sentence (two where there is advice), beginning with its place."""
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
    """Anything that merilo raises on purpose."""


class DataError(MeriloError):
    """What was to be judged is bad; `problems` holds every fault that was found, in order."""

    def __init__(self, message: str, *, problems: tuple[Problem, ...] = ()) -> None:
        super().__init__(message)
        self.problems = problems

    @classmethod
    def of(cls, *problems: Problem) -> "DataError":
        """The error that says these problems, one sentence each."""
        return cls(" ".join(problem.message for problem in problems), problems=problems)


class MissingField(DataError):
    """A sample lacks a field that was asked for; `field` and `sample_id` name them."""

    def __init__(self, field: str, sample_id: str) -> None:
        super().__init__(f"Sample {sample_id!r} has no {field!r}.")
        self.args = (field, sample_id)  # so that a copy made from the arguments is the same error
        self.field = field
        self.sample_id = sample_id

    def __str__(self) -> str:
        return f"Sample {self.sample_id!r} has no {self.field!r}."


class UsageError(MeriloError):
    """A wrong metric name, parameter or option; the message says what to write instead."""


class RubricError(MeriloError):
    """A rubric text is missing, was changed after release or does not fit its question."""


class JudgeError(MeriloError):
    """A judge gave no verdict."""


class ReplyError(JudgeError):
    """A reply came that cannot be read as a verdict."""


class ProviderError(JudgeError):
    """No usable reply came; `status` is the HTTP status if there was one. `sent`: False if the request never left.

    `received_bytes`: the size of what arrived as a reply and cannot be used; 0 for an error that the server reported.
    """

    def __init__(self, message: str, *, status: int | None = None, sent: bool = True, received_bytes: int = 0) -> None:
        super().__init__(message)
        self.status = status
        self.sent = sent
        self.received_bytes = received_bytes


class RateLimited(ProviderError):
    """Too many requests; `retry_after_s` is what the provider asked for, in seconds, or None."""

    def __init__(self, message: str, *, retry_after_s: float | None = None, status: int | None = None) -> None:
        super().__init__(message, status=status)
        self.retry_after_s = retry_after_s


class Temporary(ProviderError):
    """The provider is overloaded or broke the connection; the same request may work later."""


class TimedOut(Temporary):
    """No reply came within the timeout; the same request may work later."""


class Unreachable(Temporary):
    """Nobody is at the address any more; it may come back soon, and if not, no other request will do better."""


class Refused(ProviderError):
    """The provider will not answer this request, for instance for its content policy."""


class Permanent(ProviderError):
    """This request is wrong and always will be; others may work."""


class ProviderDown(ProviderError):
    """No request to this provider can work (wrong key, wrong model, no such address): the run stops."""


class RunError(MeriloError):
    """A run directory has a wrong format, is damaged or is in use."""


class Interrupted(MeriloError):
    """Somebody stopped the run; what had been answered is kept."""
