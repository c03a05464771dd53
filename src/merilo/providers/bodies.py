"""Request bodies that differ in a small part: the constant text around that part is encoded once.

A body is a JSON object with one placeholder for the messages, which change from request to request. The rest (the
model, the rubric, the schema, the parameters) is the same for thousands of requests, and takes most of the encoding
time.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from merilo.errors import UsageError
from merilo.judging.json_types import as_object
from merilo.providers.adaptations import DROPPED, FOLDED, LIMIT, Adaptations
from merilo.providers.base import Message, ReplyPath

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from merilo.providers.adaptations import Form
    from merilo.providers.base import Request
    from merilo.providers.problems import EndpointProblem

SYSTEM: Final = "system"
_PLACE: Final = "\x00the place of what changes\x00"
"""Placeholder in a body for the messages of a request."""
_PLACE_IN_JSON: Final = json.dumps(_PLACE)
_MAX_TEMPLATES: Final = 256
_encoded = json.JSONEncoder(ensure_ascii=False).encode
_PATHS: Final = {path.value: path for path in ReplyPath}


class BodyTemplate(NamedTuple):
    """The bytes of a body before and after its placeholder."""

    before: bytes
    after: bytes


class Bodies(ABC):
    """Creates the request bodies of one connection, and changes their form if the endpoint rejects them."""

    STRUCTURED: ClassVar[str]
    """The name of the form that asks for JSON."""
    PARAMETERS: ClassVar[Mapping[str, str]]
    """The parameters in the order of the body: the wire's name of each by the name of its part."""
    NO_SEED: ClassVar[str] = ""
    """The notice of an API without a seed parameter."""

    def __init__(
        self, model: str, extra: Mapping[str, object], known: Mapping[str, str], forms: Sequence[Form]
    ) -> None:
        """`extra`: the user's own fields. `known`: the adaptations of an earlier run. `forms`: those of this wire."""
        self.model = model
        self._extra = extra
        self._adaptations = Adaptations(model, known, forms)
        self._templates: dict[Hashable, tuple[Mapping[str, object] | None, BodyTemplate]] = {}
        self._shortened: set[int] = set()
        """Ids of the requests in flight that were too long and are tried once with another limit."""
        self._known: set[Hashable] = set()
        """Marks of requests that were accepted in the present forms, so that further ones show nothing new."""
        self.done = self._adaptations.done
        """Each part that is not sent in its first form, with its present form."""
        self.note = self._adaptations.note
        self.notices = self._adaptations.notices
        """Messages to show the user once."""
        path = self.done.get(self.STRUCTURED)
        paths = [step.value for form in forms if form.name == self.STRUCTURED for step in form.steps]
        if path is not None and path not in paths:
            allowed = ", ".join((ReplyPath.JSON_SCHEMA, *paths))
            raise UsageError(f"The known adaptation of {self.STRUCTURED} must be one of {allowed}, got {path!r}.")

    @abstractmethod
    def _fields(self, request: Request, system: str | None, messages: Sequence[object]) -> dict[str, object]:
        """Return the fields of a body; `system` is None if the system message is part of another one."""

    def _message(self, message: Message) -> str:
        """Return a message as JSON."""
        return f'{{"role": {encode_basestring(message.author)}, "content": {encode_basestring(message.text)}}}'

    def _opens(self, system: str | None) -> bool:
        """Return True if instructions are sent at the start of the first message."""
        return system is None or self.done.get(SYSTEM) == FOLDED

    def _parts(self) -> dict[str, object]:
        """Return the parts of every request that only this wire has, each with a value that identifies its form."""
        return {}

    def body_for(self, request: Request) -> bytes:
        """Return the JSON body of one request in the present form."""
        if self.NO_SEED and request.seed is not None:
            self.note("seed", DROPPED, self.NO_SEED)
        system, messages = split_system(request)
        opens = self._opens(system)
        if opens:
            first, *rest = messages
            messages = (Message(first.author, self._prompt(request, system, first.text), first.shared), *rest)
        limit = self._adaptations.reply_limit(request)
        # schemas are compared by identity, since a mapping cannot be part of a key
        own = (request.schema_name, id(request.schema), limit, request.temperature, request.seed, request.samples)
        key = (None if opens else system, own)
        found = self._templates.get(key)
        if found is None or found[0] is not request.schema:
            whole = self._fields(request, None if opens else self._prompt(request, system), [_PLACE])
            before, _, after = json_text(whole).partition(_PLACE_IN_JSON)
            if len(self._templates) >= _MAX_TEMPLATES:
                self._templates.clear()
            found = self._templates[key] = (request.schema, BodyTemplate(json_bytes(before), json_bytes(after)))
        template = found[1]
        if not template.after:  # the user's extra body replaces the messages
            return template.before
        shown = self._message(messages[0]) if len(messages) == 1 else ", ".join(map(self._message, messages))
        return b"%s%s%s" % (template.before, json_bytes(shown), template.after)

    def used(self, request: Request) -> dict[str, object]:
        """Return the parts of a request that have other forms, by name, each with a value that identifies its form."""
        found: dict[str, object] = {**self._sampling(request), **self._parts()}
        if LIMIT in found:
            found[LIMIT] = self.done.get(LIMIT)
        if split_system(request)[0] is not None:
            found[SYSTEM] = self.done.get(SYSTEM)
        if request.schema is not None:
            found[self.STRUCTURED] = (self.path, request.schema_name)
        return {name: found[name] for name in found if name in self._adaptations.forms and name not in self._extra}

    @property
    def path(self) -> ReplyPath:
        """How JSON is requested at present."""
        return _PATHS[self.done.get(self.STRUCTURED, "json_schema")]

    def path_for(self, request: Request) -> ReplyPath:
        """Return how structured output is requested at present; TEXT for free text."""
        return ReplyPath.TEXT if request.schema is None else self.path

    def learn(self, problem: EndpointProblem, request: Request, body: bytes) -> bool:
        """Change the form after a request was rejected with this body; return True if it is worth sending again, once
        if it is too long. See `Adaptations`.
        """
        too_long = problem.too_long
        again = too_long and id(request) in self._shortened
        # the body differs if another request in flight has learnt the same in the meantime
        learnt = not again and body != self.body_for(request)
        if not learnt:
            self._known.clear()
            before = dict(self.done)
            learnt = self._adaptations.learn(problem, self.used(request), request, last=again)
            if self.done != before:
                self._templates.clear()
        (self._shortened.add if learnt and too_long else self._shortened.discard)(id(request))
        return learnt

    @property
    def unsure(self) -> bool:
        """True if a form has changed since the last request that was accepted."""
        return self._adaptations.unsure

    def worked(self, request: Request, body: bytes) -> None:
        """Record that a request was accepted with this body."""
        if self._shortened:
            self._shortened.discard(id(request))
        own = (request.max_tokens, request.temperature, request.seed, request.samples)
        marks = (request.schema_name, request.schema is None, split_system(request)[0] is None, own)
        if marks in self._known:  # `learn` clears them
            return
        if self.unsure and body != self.body_for(request):
            return
        self._adaptations.worked(self.used(request), request)
        self._known.add(marks)

    def _sampling(self, request: Request) -> dict[str, float]:
        """Return the parameters that are sent in their present form, by the name of the part."""
        wanted = {
            "temperature": self._adaptations.temperature(request),
            "seed": request.seed,
            "n": request.samples if request.samples > 1 else None,
            LIMIT: self._adaptations.reply_limit(request),
        }
        sent = {name: wanted[name] for name in self.PARAMETERS if self.done.get(name) != DROPPED}
        return {name: value for name, value in sent.items() if value is not None}

    def _parameters(self, request: Request) -> dict[str, object]:
        """Return the parameters that are sent, by their names on the wire."""
        return {self.PARAMETERS[name]: value for name, value in self._sampling(request).items()}

    def _prompt(self, request: Request, *texts: str | None) -> str:
        """Return the texts of one message, with the schema in words after the first one if it is not a parameter."""
        parts = [text for text in texts if text]
        if request.schema is not None and self.path is not ReplyPath.JSON_SCHEMA:
            parts.insert(1, schema_in_words(request))
        return "\n\n".join(parts)


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
    return encode_basestring(value) if type(value) is str else _encoded(value)


def schema_in_words(request: Request) -> str:
    """Return the sentence that asks for a reply of this schema, for endpoints without a parameter for it."""
    schema = json_text(request.general_schema or request.schema)
    return f"The reply is one JSON object that fits this JSON Schema ({request.schema_name}):\n{schema}"


def split_system(request: Request) -> tuple[str | None, tuple[Message, ...]]:
    """Return the system text, None if there is none, and the other messages."""
    first, *rest = request.messages
    return (first.text, tuple(rest)) if first.author == SYSTEM and rest else (None, request.messages)


def json_bytes(text: str) -> bytes:
    """Return JSON as bytes; half a surrogate pair becomes a question mark."""
    return text.encode("utf-8", "replace")
