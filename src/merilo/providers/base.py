"""Who carries a request to a model: the request, the reply, and the protocol of a provider.

A provider turns a `Request` into a `Reply` and its own errors into ours (`RateLimited`, `Temporary`,
`Refused`, `Permanent`, `ProviderDown`). Cache, limits, retries, cost and reading the reply are not its business.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, runtime_checkable

from merilo.judging.reading import MAX_REPLY_CHARACTERS

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from merilo.errors import ProviderError

REPLY_LIMITS: Final = ("max_completion_tokens", "max_tokens")
"""What bodies of chat requests call the limit of a reply: newer servers, and all others."""


class ReplyPath(StrEnum):
    """How structured output was asked for."""

    JSON_SCHEMA = "json_schema"
    JSON_MODE = "json_mode"
    PROMPTED = "prompted"
    TEXT = "text"
    """Free text was wanted."""
    LOCAL = "local"
    """No model was asked: a program on this machine answered. Not counted as a request."""


class Finish(StrEnum):
    """Why the model stopped."""

    STOP = "stop"
    LENGTH = "length"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation; `author` is system, user or assistant."""

    author: str
    text: str
    shared: int = 0
    """Characters at the beginning of the text that other questions about the same contexts begin with too."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a judge wants sent to a model."""

    messages: tuple[Message, ...]
    schema: Mapping[str, object] | None = None
    """JSON Schema of the reply; None for free text."""
    schema_name: str = "reply"
    max_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    samples: int = 1
    """Completions wanted from this one request."""
    max_reply_characters: ClassVar[int | None] = MAX_REPLY_CHARACTERS
    """Maximum length of each text of a model's reply to such a request; None for no limit."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request; None where the provider does not say."""

    input_tokens: int | None = None
    """All that was sent, what was read from or written to the provider's prompt cache included."""
    output_tokens: int | None = None
    cached_tokens: int | None = None
    """Those of the input that were read from the provider's prompt cache."""
    written_tokens: int | None = None
    """Those of the input that were written to the provider's prompt cache."""


@dataclass(frozen=True, slots=True)
class TruncatedText:
    """The size of a text of which a reply holds only the beginning."""

    index: int
    """The position of the text in the reply."""
    characters: int
    """The length of the whole text."""
    sha256: str
    """The SHA-256 of the whole text in UTF-8, as hex digits."""

    @classmethod
    def from_fields(cls, fields: Mapping[str, object]) -> TruncatedText:
        """Return the entry with these fields, as JSON holds them. Raises KeyError or TypeError for other fields."""
        index, characters, digest = fields["index"], fields["characters"], fields["sha256"]
        if not (isinstance(index, int) and isinstance(characters, int) and isinstance(digest, str)):
            raise TypeError("a truncated text needs two integers and a digest")
        return cls(index, characters, digest)


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back."""

    texts: tuple[str, ...]
    """The completions; fewer than asked where the provider gives one at a time."""
    finish: Finish = Finish.STOP
    usage: Usage = Usage()
    path: ReplyPath = ReplyPath.TEXT
    model: str = ""
    """The model that the provider says has answered."""
    seconds: float = field(default=0.0, compare=False)
    truncated: tuple[TruncatedText, ...] = ()
    """One entry for each text that was longer than is read; empty for nearly all replies."""
    reasoning: str = field(default="", compare=False, repr=False)
    """What the model wrote before its answer, if the server shows it; read only to estimate what the reply costs."""

    @property
    def text(self) -> str:
        """The first completion."""
        return self.texts[0]

    def within(self, max_characters: int | None) -> Reply:
        """Return the reply with each text cut to a maximum length; this reply if nothing is longer.

        Replies of this machine's own programs (`ReplyPath.LOCAL`) are never cut.
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
    """An open provider; belongs to one event loop."""

    async def send(self, request: Request) -> Reply:
        """The reply to one request. Raises the provider errors of `merilo.errors`."""
        ...

    def adaptations(self) -> Mapping[str, str]:
        """Parameters the server made us drop or rename so far, with what was done; goes into the run's manifest."""
        ...

    def notices(self) -> Sequence[str]:
        """Sentences a user should see once (a parameter was dropped, a reply path was given up)."""
        ...


@runtime_checkable
class AdaptingConnection(Connection, Protocol):
    """A connection that leaves it to the engine to send a request again whose parameters were refused."""

    async def attempt(self, request: Request) -> Reply | None:
        """Send a request once; None if it has to be sent again in another form. Raises as `send` does."""
        ...


class Provider(Protocol):
    """A frozen description of an endpoint and a model; holds no secret and no open socket."""

    def fingerprint(self) -> Mapping[str, object]:
        """What identifies the answers: endpoint kind, address, model, extra body; JSON-able, without secrets."""
        ...

    def connect(self, *, known: Mapping[str, str] | None = None) -> AbstractAsyncContextManager[Connection]:
        """An open connection for one event loop; `known` are adaptations learnt earlier.

        Raises UsageError when a key is missing.
        """
        ...

    def price_usd(self, usage: Usage) -> float | None:
        """What a request with this usage costs; None when unknown, 0.0 only when it is free."""
        ...


class BatchProvider(Provider, Protocol):
    """A provider that answers many requests together; where a run asks in rounds, it needs no event loop."""

    def send_batch(self, requests: Sequence[Request]) -> Generator[tuple[int, Reply | ProviderError], None, None]:
        """What came back for each request, with its place among them, in any order, each as soon as it is there.

        Called in a thread, by one run one batch at a time; whoever takes the replies may close it early. A reply
        never depends on what else is in the batch. Raises ProviderDown where no request can work.
        """
        ...
