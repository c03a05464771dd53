"""Regular expressions over texts that strangers control take time that grows with the length of the text only."""

import re
from collections.abc import Iterator
from pathlib import Path

from each_case import each_case
from pumping import Found, expressions, growth, inputs

import merilo

_MAX_GROWTH = 3.2
"""A text twice as long takes twice the time if it is linear, four times if it is quadratic."""


def slow_inputs(found: Found) -> Iterator[str]:
    """The inputs on which an expression is slow, measured again to exclude a busy machine."""
    for call in sorted(found.calls):
        for pumped in inputs(found.pattern):
            if all(growth(found, call, *pumped) > _MAX_GROWTH for _ in range(3)):
                yield f"{found.place} {call}: {pumped!r}"


@each_case(
    ("pattern", "call"),
    [
        (r"(?:a|a)*b", "match"),
        (r"(\w+\s*)*\Z", "match"),
        (r"\s+,", "search"),
        (r"x*x*y", "match"),
        (r"(?:\\?x|x)" * 36, "match"),
    ],
)
def test_ambiguous_expressions_are_recognised(pattern: str, call: str) -> None:
    """Exponential and quadratic expressions are found slow."""
    assert next(slow_inputs(Found("", re.compile(pattern), frozenset({call}))), None)


def test_every_expression_of_the_sources_is_linear() -> None:
    """On pumped inputs, every expression in `merilo` takes at most about twice the time for twice the text."""
    found = list(expressions(Path(merilo.__file__).parent))
    assert len(found) > 100
    assert not list(filter(None, (next(slow_inputs(each), None) for each in found)))
