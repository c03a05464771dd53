"""Requests to decision models: a state and typed questions about it, answered with a probability for every option.

A decision model writes no text. Both wires of `merilo.providers.decisions` send the same
`DecisionRequest`, and both reply with the text that this module describes.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from math import fsum, isnan
from typing import TYPE_CHECKING, ClassVar, Final, cast

from merilo.judging.json_types import Json, as_list, compact, loaded
from merilo.judging.verdicts import Failure, FailureKind
from merilo.providers.base import Request
from merilo.providers.problems import json_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class AnswerType(StrEnum):
    """Types of questions that decision models answer."""

    YES_NO = "yes_no"
    """Two options: no, then yes."""
    CHOICE = "choice"
    """One of 2 to 255 named options."""
    SCORE = "score"
    """One of 2 to 10 levels, lowest first."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a question."""

    value: str
    """Its name, unique within the question; a level of a score is named by its position."""
    description: str = ""
    """The situation in which it is right, in words; blank if the name says it."""


@dataclass(frozen=True, slots=True)
class DecisionQuestion:
    """One typed question about the state of a request."""

    name: str
    """Identifies the question within its request; models do not see it on every wire."""
    type: AnswerType
    text: str
    """The instructions, in merilo's words: names in backquotes are parts of the state or of `fields`."""
    options: tuple[Option, ...]
    """The options in order; a yes/no question has two: no, then yes."""
    fields: tuple[tuple[str, str], ...] = ()
    """Names and texts that the question is about and the state lacks, such as a statement. They are data."""


@dataclass(frozen=True, slots=True)
class DecisionRequest(Request):
    """A request to a decision model. Its message is the state, as compact JSON; no reply text is charged."""

    max_reply_characters: ClassVar[int | None] = None
    questions: tuple[DecisionQuestion, ...] = ()

    @property
    def state(self) -> str:
        """The state as compact JSON."""
        return self.messages[0].text

    def asking(self, questions: Sequence[DecisionQuestion]) -> DecisionRequest:
        """Return the request with other questions about the same state."""
        return DecisionRequest(self.messages, max_tokens=0, questions=tuple(questions))


# Replies of decision models: their probabilities as one text, equal for equal answers over either wire.
#
# The text is a JSON object with one entry for each question of the request, by its name:
#
# - a list of probabilities in the order of the options, with the sum 1: `[0.1,0.9]` for no and yes;
# - `{"refused":true}` if the model declined to answer this question;
# - `{"fault":"..."}` for an answer that is missing or invalid.
#
# Only probabilities are read: `choice`, `score` and `legend` repeat them, and servers differ in how they compute
# `confidence`.

_TYPES: Final = {AnswerType.YES_NO: ("predicate", "noul"), AnswerType.CHOICE: ("choice",), AnswerType.SCORE: ("score",)}
"""The names of each type of answer on the wires."""
_P_YES: Final = {"predicate": "probability", "noul": "noul"}
"""The field with the probability of yes, by the name of the type."""
_NAMES: Final = ("id", "key", "question", "question_id")
"""The fields in which some servers write the name of an answer's question."""
_NUMBERED: Final = ("index", "id", "number")
_REFUSED: Final = {"refused": True}
_NUMBERS: Final = frozenset({int, float})
_MAX_SUM_ERROR: Final = 0.05 + 1e-9
_MAX_ROUNDING: Final = 1e-6
_DIGITS: Final = 9


def answers_text(body: str, request: DecisionRequest) -> str:
    """Return the answers in the body of a reply as the text described in the module."""
    try:
        received = json_object(json.loads(body, object_pairs_hook=_unique)) or {}
    except (ValueError, RecursionError):
        received = {}
    found = _by_name(received.get("answers"), request.questions)
    return compact({question.name: _entry(question, found.get(question.name)) for question in request.questions})


def answers_in(text: str, questions: Iterable[DecisionQuestion]) -> dict[str, tuple[float, ...] | Failure]:
    """Return the probabilities of each question's options, or its failure, by its name, from the text of a reply.

    A text that does not fit the questions, such as that of a damaged record, gives failures.
    """
    entries = answered_in(text)
    return {each.name: _answer(len(each.options), entries.get(each.name)) for each in questions}


def answered_in(text: str) -> Json:
    """Return the entries of a reply's text by the names of the questions; none for a damaged text."""
    try:
        return json_object(loaded(text)) or {}
    except ValueError:
        return {}


def _answer(options: int, entry: object) -> tuple[float, ...] | Failure:
    if entry == _REFUSED:
        return Failure(FailureKind.REFUSED, "The model declined to answer.")
    numbers = _probabilities(as_list(entry) or ())
    if len(numbers) == options and abs(fsum(numbers) - 1) <= _MAX_ROUNDING:
        return numbers
    fault = (json_object(entry) or {}).get("fault", "the recorded answer is damaged")
    return Failure(FailureKind.UNREADABLE, f"The model gave no valid answer: {fault}.")


def _unique(pairs: list[tuple[str, object]]) -> Json:
    """Return an object of JSON; a key that it has several times has the value None."""
    found = dict(pairs)
    if len(found) < len(pairs):
        times = Counter(key for key, _ in pairs)
        found.update({key: None for key in found if times[key] > 1})
    return found


def _by_name(answers: object, questions: Sequence[DecisionQuestion]) -> dict[str, object]:
    """Return the answers by the name of their question; None for a name that several answers have.

    Some servers write the name in another field. Answers without any name belong to the questions in order, if there
    are as many and their numbers, if any, ascend.
    """
    if (by_name := json_object(answers)) is not None:
        return by_name
    rows = [json_object(row) or {} for row in as_list(answers) or ()]
    own = [question.name for question in questions]
    names = [row.get("name") or next((row[key] for key in _NAMES if row.get(key) in own), None) for row in rows]
    numbers = [[n for row in rows if type(n := row.get(key)) is int] for key in _NUMBERED]
    ascending = all(each == sorted({*each}) for each in numbers)
    if len(rows) == len(own) and ascending and all(name is None for name in names):
        names = [*own]
    found: dict[str, object] = {}
    for name, row in zip(names, rows, strict=True):
        if isinstance(name, str):
            found[name] = None if name in found else row
    return found


def _entry(question: DecisionQuestion, answer: object) -> object:
    """Return the entry of a question in the text of the reply."""
    fields = json_object(answer)
    if fields is None:
        return _fault("it has no answer, or several")
    kind = fields.get("type")
    if kind == "refusal":
        return _REFUSED
    if not isinstance(kind, str) or kind not in _TYPES[question.type]:
        return _fault("its answer has another type")
    if question.type is AnswerType.YES_NO:
        by_option: list[object] | None = [fields.get(_P_YES[kind])]
    else:
        by_option = _by_option(question, fields.get("probabilities"))
    if by_option is None:
        return _fault("its answer has other options")
    numbers = _probabilities(by_option)
    if not numbers:
        return _fault("its answer has a probability that is not a number from 0 to 1")
    numbers = (1 - numbers[0], *numbers) if question.type is AnswerType.YES_NO else numbers
    total = fsum(numbers)
    if abs(total - 1) > _MAX_SUM_ERROR:
        return _fault("the sum of its probabilities is not 1")
    return [round(p / total, _DIGITS) + 0.0 for p in numbers]  # + 0.0 turns -0.0 into 0.0


def _by_option(question: DecisionQuestion, given: object) -> list[object] | None:
    """Return what an answer has for each option, in order; None if its options are not exactly those of the question.

    They are compared by type, too: `true` is not "true". A level is named by its position, as a number in a list of
    options and as a text in an object.
    """
    values: Sequence[object] = [option.value for option in question.options]
    if (by_value := json_object(given)) is not None:
        pairs: list[tuple[object, object]] = list(by_value.items())
        values = [str(n) for n in range(len(values))] if question.type is AnswerType.SCORE else values
    else:
        rows = [json_object(row) or {} for row in as_list(given) or ()]
        pairs = [(row.get("value"), row.get("probability")) for row in rows]
        values = range(len(values)) if question.type is AnswerType.SCORE else values
    kind = type(values[0])
    found = {value: p for value, p in pairs if type(value) is kind}
    if len(pairs) != len(values) or found.keys() != set(values):
        return None
    return [found[value] for value in values]


def _probabilities(values: Sequence[object]) -> tuple[float, ...]:
    """Return the values if all are numbers from 0 to 1, otherwise none. NaN and booleans are not."""
    if not (values and _NUMBERS.issuperset(map(type, values))):
        return ()
    numbers = cast("Sequence[float]", values)
    # min() and max() do not see a NaN at every place, the sum does
    whole = min(numbers) >= 0 and max(numbers) <= 1 and not isnan(sum(numbers))
    return tuple(map(float, numbers)) if whole else ()


def _fault(what: str) -> Json:
    return {"fault": what}
