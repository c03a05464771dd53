"""A verdict from what a person's function or file gave: a verdict, a mapping of its fields, or a failure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from merilo.judging.untyped import as_mapping
from merilo.judging.verdicts import Failure, Verdict

if TYPE_CHECKING:
    from merilo.judging.ask import Answer
    from merilo.judging.questions import Question

Given = Verdict | Failure | Mapping[str, object] | None
"""What a function may return for a question; None: it has no answer to it."""


def verdict_given(question: Question[Any], given: object) -> Answer | str:
    """The verdict or failure that was given, or what is wrong with it as the end of a sentence "it ...".

    Indices in a mapping are 0-based, as everywhere in Python. A verdict is held to the question:
    indices in range, no contradiction within itself.
    """
    if isinstance(given, Failure):
        return given
    if given is None:
        return "is None: it has no answer"
    wanted = type(question).verdict
    fields = as_mapping(given)
    if fields is not None:
        try:
            given = wanted.from_fields(dict(fields))
        except ValueError as error:  # pydantic's ValidationError is one
            return f"holds fields that make no {wanted.__name__} ({_first_line(error)})"
    if not isinstance(given, wanted):
        got = type(given).__name__
        return f"must be a {wanted.__name__}, a mapping of its fields or a Failure, but is of type {got}"
    fault = question.fault(given)
    return given if fault is None else fault


def _first_line(error: ValueError) -> str:
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
