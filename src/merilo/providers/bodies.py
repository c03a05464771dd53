"""The bodies of requests, and their forms, which a connection changes when the endpoint rejects a request.

A part of a request (its system message, the way it asks for JSON, a parameter) has a few forms in a fixed order. Which
part to change follows from the error: its parameter, its code, then the names of fields in its message. An error that
names nothing changes nothing.

A body is a JSON object with one placeholder for the messages, which change from request to request. The rest (the
model, the rubric, the schema, the parameters) is the same for thousands of requests, and takes most of the encoding
time.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from merilo.errors import UsageError
from merilo.judging.json_types import as_object
from merilo.providers.base import Message, ReplyPath, Request

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from merilo.providers.problems import EndpointProblem

DROPPED: Final = "dropped"
FOLDED: Final = "folded into the user message"
_POSITIVE: Final = "0.01"
"""The temperature for endpoints that reject 0."""
LIMIT: Final = "max_tokens"
SIZE: Final = "reply length"
"""The adaptation that makes the limit of replies smaller."""
DEMANDED: Final = "demanded parameter"
"""The adaptation that sends a parameter with the value that the endpoint named."""
_DEMAND: Final = re.compile(
    r"(?:^|[\s.\"'`])([a-z][a-z0-9_]{2,40})[\"'`]? (?:must|has to|needs to|should) be (?:set to )?"
    r"[\"'`]?(true|false|null|\d{1,6})\b"
)
_REJECTED: Final = frozenset({400, 422})
_REJECTED_BY_NAME: Final = frozenset({404, 405, 500, 501})
"""Statuses with which some endpoints reject a part of a request that their message names."""
_UNSUPPORTED: Final = re.compile(r"unsupported|unknown|unrecogni[sz]ed|extra_forbidden", re.IGNORECASE)
_NUMBER: Final = re.compile(
    r"(?<![\w.-])(?<!\d,)\d{1,3}(?:,\d{3})++(?![\w,])|(?<![\w.-])\d{1,9}(?!\w|[.,]\d|-\w)", re.ASCII
)
_STORED_SIZE: Final = re.compile(r"at most (\d+) tokens")
_SHORTEST: Final = 16
"""Smallest limit of a reply that is sent, in tokens."""
_QUARTER: Final = 64
"""Smallest limit that is tried without a number in the error: a quarter of the one before."""
_MAX_CHANGES: Final = 24
"""Maximum changes of form between two replies."""


class Step(NamedTuple):
    """One form of a part of a request."""

    value: str
    sentence: str


@dataclass(frozen=True)
class Form:
    """A part of a request with the forms to try after its first one, in order."""

    name: str
    """The key of its adaptation."""
    steps: tuple[Step, ...]
    words: re.Pattern[str]
    """Matches the names by which error messages mean this part."""
    strict: re.Pattern[str] | None = None
    """Matches the message of an error 404, 405, 500 or 501 that rejects this part."""
    codes: frozenset[str] = frozenset()
    """Error codes about this part; they change its form also after a success."""
    omitted_if_unsupported: bool = False
    """True if an error code such as `unsupported_value` means that only the last form can work."""

    def left(self, value: str | None) -> tuple[Step, ...]:
        """Return the steps after the current value; None is the first form."""
        values = [step.value for step in self.steps]
        return self.steps[values.index(value) + 1 :] if value in values else self.steps


def dropped(name: str, *, words: str = "") -> Form:
    """Return the form of a parameter that is omitted once it is rejected."""
    return Form(name, (Step(DROPPED, f"{name} is no longer sent"),), _words(words or rf"\b{re.escape(name)}\b"))


def folded(name: str = "system") -> Form:
    """Return the form of the system message, which can be sent in the user message."""
    return Form(
        name,
        (Step(FOLDED, "the system message is sent at the start of the user message"),),
        _words(r"\bsystem|\bdeveloper\b|\broles?\b|instruction"),
        _words(r"\bsystem[ _]?(?:role|message|prompt|instruction)|\brole.{0,20}\bsystem\b|\bdeveloper instruction"),
    )


def structured(name: str, *values: str) -> Form:
    """Return the forms of asking for JSON: these values of `ReplyPath`, after the JSON Schema."""
    how = {"json_mode": "in JSON mode", "prompted": "by the prompt alone"}
    return Form(
        name,
        tuple(Step(value, f"JSON is now requested {how[value]}") for value in values),
        _words(
            r"response_?format|json(?!\W*(?:payload|body|dec(?:ode|oding)|pars))|schema|structured.?output|guided|grammar|output_?(?:config|format)|text_?format"
            r"|mime_?type|\bformat\b"
        ),
        _words(r"response_?format|json_?(?:schema|object)|json mode|structured output|guided|grammar|\bformat\b"),
        frozenset({"json_validate_failed"}),
    )


def temperature() -> Form:
    """Return the forms of the temperature: a small one in place of 0, then none."""
    positive = Step(_POSITIVE, f"temperature {_POSITIVE} is sent instead of 0")
    omitted = dropped("temperature")
    return replace(omitted, steps=(positive, *omitted.steps), omitted_if_unsupported=True)


def limit(*names: str, omitted: bool = True) -> Form:
    """Return the form of the reply limit: sent under these names in turn, then omitted if it can be.

    Its size changes too, see `Adaptations.reply_limit`.
    """
    steps = [Step(name, f"the length limit is sent as {name}") for name in names]
    steps += [Step(DROPPED, "replies have no length limit")] if omitted else []
    words = _words(r"max_?(?:completion_?|new_?|output_?)?tokens|token limit")
    return Form(LIMIT, tuple(steps), words)


class Adaptations:
    """The forms of one connection; `done` maps each part that is not sent in its first form to its present one."""

    def __init__(self, model: str, known: Mapping[str, str], forms: Sequence[Form]) -> None:
        self._model = model
        self.forms = {form.name: form for form in forms}
        self.done: dict[str, str] = dict(known)
        self.notices: list[str] = []
        self._accepted = dict(self.done)
        """The forms of the last request that succeeded."""
        self._proven: set[tuple[str, object]] = set()
        self._longest = 0
        """The largest reply limit that was accepted."""
        self._sentences: dict[str, str] = {}
        """Notices to show once a request succeeds."""
        self._changes = 0

    def note(self, name: str, what: str, sentence: str) -> None:
        """Record and report an adaptation that does not follow from an error, once."""
        if self.done.get(name) != what:
            self.done[name] = what
            self.notices.append(f"{self._model}: {sentence}.")

    def reply_limit(self, request: Request) -> int | None:
        """Return the limit to send for a reply; None for no limit."""
        tokens = request.max_tokens
        if tokens is None or self.done.get(LIMIT) == DROPPED:
            return None
        stored = _STORED_SIZE.fullmatch(self.done.get(SIZE, "")) if SIZE in self.done else None
        return tokens if stored is None else min(tokens, int(stored[1]))

    def temperature(self, request: Request) -> float | None:
        """Return the temperature to send; None to send none."""
        form = self.done.get("temperature")
        if form == DROPPED:
            return None
        return float(form) if form is not None and request.temperature == 0 else request.temperature

    def demanded(self) -> dict[str, object]:
        """Return the parameter that the endpoint demanded, with its value; empty if it demanded none."""
        name, _, value = self.done.get(DEMANDED, "").partition("=")
        return {name: json.loads(value)} if value else {}

    @property
    def unsure(self) -> bool:
        """True if a form has changed since the last request that succeeded."""
        return bool(self._changes)

    def worked(self, used: Mapping[str, object], request: Request) -> None:
        """Record that a request was accepted; `used` maps the parts it had to their values."""
        self._proven.update(used.items())
        self._longest = max(self._longest, self.reply_limit(request) or 0)
        if self._changes:
            self.notices += [self._sentences[name] for name in self._sentences if name in self.done]
            self._sentences.clear()
            self._accepted = dict(self.done)
            self._changes = 0

    def learn(
        self, problem: EndpointProblem, used: Mapping[str, object], request: Request, *, last: bool = False
    ) -> bool:
        """Change a form after a rejected request; return True if the request is worth sending again.

        The forms are those of the last success again if there is nothing left to change, or if this was the `last` try.
        """
        if problem.status not in _REJECTED and problem.status not in _REJECTED_BY_NAME and not problem.too_long:
            return False
        self._changes += 1
        if not last and self._changes <= _MAX_CHANGES and self._changed(problem, used, request):
            return True
        self._changes = 0
        self._sentences.clear()
        for name in (*self.forms, SIZE, DEMANDED):  # `done` also holds what no form decides, such as a digest
            self.done.pop(name, None)
            if name in self._accepted:
                self.done[name] = self._accepted[name]
        return False

    def _changed(self, problem: EndpointProblem, used: Mapping[str, object], request: Request) -> bool:
        limited = self.reply_limit(request) if LIMIT in used else None
        if limited is not None and self._is_size(problem, limited) and self._shorter(problem, limited):
            return True
        if problem.too_long:  # the prompt itself is too long
            return False
        if (found := _DEMAND.search(problem.message)) and found[1] not in self.forms and DEMANDED not in self.done:
            sent = f"{found[1]}={found[2]}"
            self._set(DEMANDED, Step(sent, f"{sent} is sent"), problem)
            return True
        return any(
            ((form.name in used and (form.name, used[form.name]) not in self._proven) or problem.code in form.codes)
            and self._step(form, problem)
            for form in self._named(problem)
        )

    def _named(self, problem: EndpointProblem) -> list[Form]:
        """Return the parts that an error names: by its parameter, its code, its message, or the rest of its body."""
        forms = list(self.forms.values())
        if by_parameter := [form for form in forms if problem.parameter and form.words.search(problem.parameter)]:
            return by_parameter
        if problem.parameter in self.forms:
            return [self.forms[problem.parameter]]
        if by_code := [form for form in forms if problem.code in form.codes]:
            return by_code
        if problem.status not in _REJECTED:
            return [form for form in forms if form.strict and form.strict.search(problem.message)]
        places = [(match.start(), form) for form in forms if (match := form.words.search(problem.message))]
        if places:
            return [form for _, form in sorted(places, key=lambda place: place[0])]
        by_body = [form for form in forms if form.words.search(problem.body)]
        return by_body if len(by_body) == 1 else []  # a body that names several parts quotes the request

    def _step(self, form: Form, problem: EndpointProblem) -> bool:
        """Send a part in its next form; False if there is none."""
        left = form.left(self.done.get(form.name))
        if not left:
            return False
        step = left[-1 if (form.omitted_if_unsupported and _UNSUPPORTED.search(problem.code)) else 0]
        self._set(form.name, step, problem)
        return True

    def _set(self, name: str, step: Step, problem: EndpointProblem) -> None:
        self.done[name] = step.value
        self._sentences[name] = f"{self._model}: the endpoint rejected {name} ({problem.shown}); {step.sentence}."

    def _is_size(self, problem: EndpointProblem, tokens: int) -> bool:
        """Return True if an error is about the length of the reply, or of prompt and reply together."""
        numbers = _numbers(problem.message)
        named = self.forms[LIMIT].words.search(f"{problem.parameter} {problem.message}")
        return problem.too_long or (
            not _UNSUPPORTED.search(problem.code) and (tokens in numbers or bool(named and numbers))
        )

    def _shorter(self, problem: EndpointProblem, tokens: int) -> bool:
        """Send a smaller limit: the largest that the message names, else a quarter; False if that is too little."""
        fitting = [number for number in _numbers(problem.message) if _SHORTEST <= number < tokens]
        allowed = max(fitting, default=tokens // 4)
        if not fitting and allowed < max(_QUARTER, self._longest + 1):
            return False
        value = f"at most {allowed} tokens"
        self._set(SIZE, Step(value, f"replies are now limited ({value})"), problem)
        return True


def _numbers(text: str) -> set[int]:
    """Return the whole numbers in a text; not those in names, versions and dates."""
    return {int(match[0].replace(",", "")) for match in _NUMBER.finditer(text)}


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


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
        """Change the form after a rejection; return True if the request is worth sending again. See `Adaptations`."""
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
