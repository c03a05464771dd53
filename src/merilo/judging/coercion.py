"""Conversion of a value from user code or a file to a verdict: a verdict, a mapping of its fields, or a failure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from merilo.judging.json_types import as_mapping
from merilo.judging.matrix import MatrixVerdict, matrix_from
from merilo.judging.verdicts import DecisionVerdict, Failure, Verdict, probability_of

if TYPE_CHECKING:
    from merilo.judging.ask import Answer
    from merilo.judging.questions import Question

Given = Verdict | Failure | Mapping[str, object] | None
"""A function's return value for a question; None if it has no answer."""


def verdict_given(question: Question[Any], given: object) -> Answer | str:
    """Return the given verdict or failure, or the problem with it as the end of a sentence "it ...".

    Indices in a mapping are 0-based, as everywhere in Python. The verdict is checked against the question: indices in
    range, no contradiction within itself.
    """
    if isinstance(given, Failure):
        return given
    if given is None:
        return "is None: it has no answer"
    wanted = type(question).verdict
    if wanted is MatrixVerdict and not isinstance(given, Verdict):
        given = matrix_from(given, getattr(question, "right", None))
    fields = as_mapping(given)
    if fields is not None:
        try:
            given = wanted.from_fields(dict(fields))
        except ValueError as error:  # pydantic's ValidationError is one
            return f"has fields that are not valid for {wanted.__name__} ({_first_line(error)})"
    if not isinstance(given, wanted):
        got = type(given).__name__
        numbers = "numbers, " if wanted is MatrixVerdict else ""
        return f"must be {numbers}a {wanted.__name__}, a mapping of its fields or a Failure, but is of type {got}"
    fault = question.fault(given) or _probability_fault(given)
    return given if fault is None else fault


def _probability_fault(verdict: Verdict) -> str | None:
    """Return the problem with a probability that metrics would average; None if there is none."""
    if not isinstance(verdict, DecisionVerdict) or not verdict.averaged:
        return None
    probability = probability_of(verdict)
    if probability is not None and 0 <= probability <= 1:
        return None
    return f"sets averaged, which needs a probability from 0 to 1, but its probability is {probability}"


def _first_line(error: ValueError) -> str:
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
