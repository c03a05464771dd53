"""Request bodies that differ in a small part: the constant text around that part is encoded once.

A body is a JSON object with one placeholder for the part that changes from request to request. The rest (the model, the
rubric, the schema, the parameters) is the same for thousands of requests, and takes most of the encoding time.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

from merilo.errors import UsageError
from merilo.judging.json_types import as_object
from merilo.providers.base import ReplyPath

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from merilo.providers.adaptations import Adaptations
    from merilo.providers.base import Message, Request
    from merilo.providers.problems import EndpointProblem

PLACE = "\x00the place of what changes\x00"
"""Placeholder in a body for the part that changes with each request."""
_PLACE_IN_JSON = json.dumps(PLACE)
_MAX_FRAMES = 256
_encoded = json.JSONEncoder(ensure_ascii=False).encode


class Bodies(ABC):
    """Creates the request bodies of one connection, and changes their form if the endpoint rejects them."""

    def __init__(self, adaptations: Adaptations, structured: str = "") -> None:
        """`structured`: the name of the form that asks for JSON; empty if it never changes."""
        self._adaptations = adaptations
        self._structured = structured
        self._frames = BodyTemplates()
        self.done = adaptations.done
        """Each part that is not sent in its first form, with its present form."""
        self.notices = adaptations.notices
        """Messages to show the user once."""
        known = self.done.get(structured)
        if known is not None and known not in (paths := adaptations.values_of(structured)):
            allowed = ", ".join((ReplyPath.JSON_SCHEMA, *paths))
            raise UsageError(f"The known adaptation of {structured} must be one of {allowed}, got {known!r}.")

    @abstractmethod
    def body_for(self, request: Request) -> bytes:
        """Return the JSON body of one request in the present form."""

    @abstractmethod
    def used(self, request: Request) -> dict[str, object]:
        """Return the parts of a request that have other forms, by name, each with a value that identifies its form."""

    @property
    def path(self) -> ReplyPath:
        """How JSON is requested at present."""
        return ReplyPath(self.done.get(self._structured, ReplyPath.JSON_SCHEMA))

    def path_for(self, request: Request) -> ReplyPath:
        """Return how structured output is requested at present; TEXT for free text."""
        return ReplyPath.TEXT if request.schema is None else self.path

    def learn(self, problem: EndpointProblem, request: Request, *, search: bool = True) -> bool:
        """Change the form after a rejected request; return True if it is worth sending again. See `Adaptations`."""
        before = dict(self.done)
        learnt = self._adaptations.learn(problem, self.used(request), request, search=search)
        if self.done != before:
            self._frames.forget()
        return learnt

    @property
    def unsure(self) -> bool:
        """True if a form has changed since the last request that was accepted."""
        return self._adaptations.unsure

    def worked(self, request: Request, body: bytes) -> None:
        """Record that a request was accepted with this body."""
        used = self.used(request)
        if self.unsure and body != self.body_for(request):
            if not self._adaptations.stop_search(used):
                return
            self._frames.forget()
            used = self.used(request)
        self._adaptations.worked(used, request)


class BodyTemplate(NamedTuple):
    """The bytes of a body before and after its placeholder."""

    before: bytes
    after: bytes


class BodyTemplates:
    """The encoded frames of a connection, by the values that determine them."""

    def __init__(self) -> None:
        self._frames: dict[Hashable, tuple[Mapping[str, object] | None, BodyTemplate]] = {}

    def frame(
        self, key: Hashable, schema: Mapping[str, object] | None, make: Callable[[], Mapping[str, object]]
    ) -> BodyTemplate:
        """Return the frame of the body that `make` returns, which contains `PLACE` once; created once per key and
        schema.

        Schemas are compared by identity, since a mapping cannot be part of a key.
        """
        key = (key, id(schema))
        found = self._frames.get(key)
        if found is not None and found[0] is schema:
            return found[1]
        before, _, after = json_text(make()).partition(_PLACE_IN_JSON)
        if len(self._frames) >= _MAX_FRAMES:
            self._frames.clear()
        frame = BodyTemplate(json_bytes(before), json_bytes(after))
        self._frames[key] = (schema, frame)
        return frame

    def forget(self) -> None:
        """Drop all frames, since bodies have changed."""
        self._frames.clear()


def with_extra(fields: dict[str, object], extra: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of a body with the user's own fields, which take precedence.

    Objects of both, such as `options`, are merged, so that a user can add one option without losing the others.
    """
    for name, value in extra.items():
        own, added = as_object(fields.get(name)), as_object(value)
        fields[name] = value if own is None or added is None else {**own, **added}
    return fields


def json_text(value: object) -> str:
    """Return the value as JSON, with non-ASCII characters unescaped."""
    return _encoded(value)


def schema_in_words(request: Request) -> str:
    """Return the sentence that asks for a reply of this schema, for endpoints without a parameter for it."""
    schema = json_text(request.general_schema or request.schema)
    return f"The reply is one JSON object that fits this JSON Schema ({request.schema_name}):\n{schema}"


def split_system(request: Request) -> tuple[str, tuple[Message, ...]]:
    """Return the system text, empty if there is none, and the other messages."""
    first, *rest = request.messages
    return (first.text, tuple(rest)) if first.author == "system" and rest else ("", request.messages)


def json_bytes(text: str) -> bytes:
    """Return JSON as bytes; half a surrogate pair becomes a question mark."""
    return text.encode("utf-8", "replace")
