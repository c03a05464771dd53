"""Writes request bodies that differ in little: what surrounds the new text is turned into bytes once.

A body is a JSON object with one place for what changes from request to request. All else (the model, the rubric,
the schema, the parameters) is the same for thousands of requests, and most of a body's cost.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from merilo.providers.base import ReplyPath, Request
    from merilo.providers.problems import Problem

PLACE = "\x00the place of what changes\x00"
"""Stands in a body for what is written anew with each request."""
_PLACE_IN_JSON = json.dumps(PLACE)
_MOST_FRAMES = 256
_encoded = json.JSONEncoder(ensure_ascii=False).encode


class Bodies(Protocol):
    """Makes bodies for one connection, and learns from what is refused."""

    @property
    def done(self) -> Mapping[str, str]:
        """Each refused parameter, with what was done about it."""
        ...

    @property
    def notices(self) -> Sequence[str]:
        """Sentences a user should see once."""
        ...

    def path_for(self, request: Request) -> ReplyPath:
        """How structured output is asked for at this moment; TEXT for free text."""
        ...

    def body_for(self, request: Request) -> bytes:
        """The JSON body of one request, without what was refused so far."""
        ...

    def learn(self, problem: Problem) -> bool:
        """True when the refusal names something that can be left out or written otherwise, and now is."""
        ...


class Frame(NamedTuple):
    """The bytes before and after the place of what changes."""

    before: bytes
    after: bytes


class Frames:
    """The frames of a connection, by everything that decides them."""

    def __init__(self) -> None:
        self._frames: dict[Hashable, tuple[Mapping[str, object] | None, Frame]] = {}

    def frame(
        self, key: Hashable, schema: Mapping[str, object] | None, make: Callable[[], Mapping[str, object]]
    ) -> Frame:
        """The frame of the body that `make` gives, in which `PLACE` stands once; made once for a key and a schema.

        A schema is told by being the very object, since a mapping cannot be part of a key.
        """
        found = self._frames.get(key)
        if found is not None and found[0] is schema:
            return found[1]
        before, _, after = json_text(make()).partition(_PLACE_IN_JSON)
        if len(self._frames) >= _MOST_FRAMES:
            self._frames.clear()
        frame = Frame(json_bytes(before), json_bytes(after))
        self._frames[key] = (schema, frame)
        return frame

    def forget(self) -> None:
        """Make all frames anew, since bodies are written otherwise from now on."""
        self._frames.clear()


def json_text(value: object) -> str:
    """The value as JSON, letters of all scripts as they are."""
    return _encoded(value)


def schema_in_words(request: Request) -> str:
    """The sentence that asks for a reply of this schema where there is no parameter for it."""
    schema = json_text(request.schema)
    return f"The reply is one JSON object that fits this JSON Schema ({request.schema_name}):\n{schema}"


def json_bytes(text: str) -> bytes:
    """JSON as bytes; half a character becomes a question mark."""
    return text.encode("utf-8", "replace")
