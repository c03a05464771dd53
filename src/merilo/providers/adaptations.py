"""The forms in which a connection sends its requests: changed when the endpoint rejects a request, and then kept.

A part of a request (its system message, the way it asks for JSON, a parameter) has a few forms in a fixed order. Which
part to change follows from the error: its parameter, its code, then the names of fields in its message. An error that
names nothing changes nothing.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.providers.base import Request
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
        """Send a smaller limit: the largest number in the message that is one, otherwise a quarter; False if none is
        worth trying.
        """
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
