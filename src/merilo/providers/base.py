"""The protocol of a provider, which sends requests to a model, with its request and reply.

A provider turns a `Request` into a `Reply`, and its own errors into those of merilo (`RateLimited`, `Temporary`,
`Refused`, `Permanent`, `ProviderDown`). Caching, limits, retries, cost and parsing of replies are done elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, runtime_checkable

from merilo.judging.json_extraction import MAX_REPLY_CHARACTERS

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from merilo.errors import ProviderError

REPLY_LIMITS: Final = ("max_completion_tokens", "max_tokens")
"""Names of the reply limit in chat requests: that of newer servers, and that of all others."""


FREE_TEXT: Final = "reply"
"""The name of the schema of requests that are not about one kind of question."""


class ReplyPath(StrEnum):
    """Way in which structured output was requested."""

    JSON_SCHEMA = "json_schema"
    JSON_MODE = "json_mode"
    PROMPTED = "prompted"
    TEXT = "text"
    """Free text was requested."""
    LOCAL = "local"
    """No model was asked: a program on this machine answered. Not counted as a request."""


class Finish(StrEnum):
    """Reason why the model stopped."""

    STOP = "stop"
    LENGTH = "length"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation; `author` is system, user or assistant."""

    author: str
    text: str
    shared: int = 0
    """Number of first characters that other questions about the same contexts begin with too."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request of a judge to a model."""

    messages: tuple[Message, ...]
    schema: Mapping[str, object] | None = None
    """JSON Schema of the reply; None for free text."""
    general_schema: Mapping[str, object] | None = None
    """The schema without what holds for this question only: for prompts, whose beginning others share."""
    schema_name: str = FREE_TEXT
    max_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    samples: int = 1
    """Number of completions requested."""
    max_reply_characters: ClassVar[int | None] = MAX_REPLY_CHARACTERS
    """Maximum length of each text of a model's reply to such a request; None for no limit."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request; None if the provider does not report them."""

    input_tokens: int | None = None
    """All input tokens, including those read from or written to the provider's prompt cache."""
    output_tokens: int | None = None
    cached_tokens: int | None = None
    """Input tokens read from the provider's prompt cache."""
    written_tokens: int | None = None
    """Input tokens written to the provider's prompt cache."""
    usd: float | None = None
    """The cost of the request in USD, if the reply states it."""


@dataclass(frozen=True, slots=True)
class TruncatedText:
    """The full size of a text of which a reply contains only the beginning."""

    index: int
    """The position of the text in the reply."""
    characters: int
    """The length of the whole text."""
    sha256: str
    """The SHA-256 of the whole text in UTF-8, as hex digits."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to a request."""

    texts: tuple[str, ...]
    """The completions; fewer than requested if the provider returns one at a time."""
    finish: Finish = Finish.STOP
    usage: Usage = Usage()
    path: ReplyPath = ReplyPath.TEXT
    model: str = ""
    """The model that answered, as the provider reports it."""
    seconds: float = field(default=0.0, compare=False)
    truncated: tuple[TruncatedText, ...] = ()
    """One entry for each text that was longer than judges read; empty for nearly all replies."""
    reasoning: str = field(default="", compare=False, repr=False)
    """The model's reasoning before its answer, if the server returns it; used only to estimate the reply's cost."""

    @property
    def text(self) -> str:
        """The first completion."""
        return self.texts[0]

    def within(self, max_characters: int | None) -> Reply:
        """Return the reply with each text truncated to a maximum length; this reply if no text is longer.

        Replies of programs on this machine (`ReplyPath.LOCAL`) are never truncated.
        """
        if (
            max_characters is None
            or self.path is ReplyPath.LOCAL
            or max(map(len, self.texts), default=0) <= max_characters
        ):
            return self
        cut = tuple(
            TruncatedText(index, len(text), sha256(text.encode("utf-8", "replace")).hexdigest())
            for index, text in enumerate(self.texts)
            if len(text) > max_characters
        )
        return replace(self, texts=tuple(text[:max_characters] for text in self.texts), truncated=cut)


class Connection(Protocol):
    """An open connection to a provider; belongs to one event loop."""

    async def send(self, request: Request) -> Reply:
        """Return the reply to one request. Raises the provider errors of `merilo.errors`."""
        ...

    def adaptations(self) -> Mapping[str, str]:
        """Return the parameters that the server rejected, and what replaced them, for the run's manifest."""
        return {}

    def notices(self) -> Sequence[str]:
        """Return messages to show the user once, such as a dropped parameter. None by default."""
        return ()


@runtime_checkable
class AdaptingConnection(Connection, Protocol):
    """A connection whose rejected requests are sent again by the engine instead of the connection."""

    async def attempt(self, request: Request) -> Reply | None:
        """Send a request once; None if it must be sent again in another form. Raises the errors of `send`."""
        ...


class Provider(Protocol):
    """A frozen description of an endpoint and a model; contains no secret and no open socket."""

    def fingerprint(self) -> Mapping[str, object]:
        """Return the fields that identify the answers: kind, address, model, extra body. JSON-able, without secrets."""
        ...

    def connect(self, *, known: Mapping[str, str] | None = None) -> AbstractAsyncContextManager[Connection]:
        """Open a connection for one event loop; `known` are adaptations learnt earlier.

        Raises UsageError if a key is missing.
        """
        ...

    def price_usd(self, usage: Usage) -> float | None:
        """Return the price of a request with this usage; None if unknown, 0.0 only if it is free."""
        ...


class BatchProvider(Provider, Protocol):
    """A provider that answers many requests together; a run in rounds needs no event loop for it."""

    def send_batch(self, requests: Sequence[Request]) -> Generator[tuple[int, Reply | ProviderError], None, None]:
        """Yield the reply to each request with its index, in any order, each as soon as it is available.

        Called in a thread; a run sends one batch at a time and may close the generator early. A reply never depends on
        the other requests of the batch. Raises ProviderDown if no request can succeed.
        """
        ...
