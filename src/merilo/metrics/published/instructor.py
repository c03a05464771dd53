"""Replies as the package instructor reads them for ragas, and the re-asks that follow a reply it cannot read.

The collections of ragas 0.4 send every request through instructor in its JSON mode, with its default `max_retries=3`.
Up to instructor 1.15.1 that is 3 requests in all, from 1.15.3 on 4. A reply that is no JSON, or that pydantic refuses
in its strict mode, is sent back as the assistant's turn, followed by a turn of the user that says what was wrong.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from merilo.metrics.published.replies import Fields, ReplyFault, fields_of, given, without_halves

if TYPE_CHECKING:
    from collections.abc import Callable

    from merilo.judging.ask import Plan
    from merilo.metrics.published.asking import Asker, Reply, RequestTemplate

T = TypeVar("T")

REASKS: Final = 2
"""Re-asks after an unreadable reply by instructor up to 1.15.1; 3 from 1.15.3 on."""
_LARGEST: Final = 10**15


@dataclass(frozen=True, slots=True)
class Reask(Generic[T]):
    """The `Recovery` of instructor: the reply and what was wrong with it are sent back in the same conversation."""

    asker: Asker
    template: RequestTemplate[T]
    times: int

    def again(self, reply: Reply, fault: str, number: int) -> Plan[tuple[Reply, Callable[[Reply], T]]]:
        """See `Recovery.again`."""
        del number
        correction = f"{fault} Correct it, and reply with the whole JSON object only."
        return (yield from self.asker.reask(reply, correction)), self.template.read


def object_of(text: str) -> Fields:
    """Return the JSON object from the first `{` to the last `}`, or the whole text. Raises ReplyFault.

    As pydantic reads JSON: no control characters in texts, no comma too many, no half of a character.
    """
    start, end = text.find("{"), text.rfind("}")
    part = text[start : end + 1] if start >= 0 and end >= 0 else text
    try:
        value: object = json.loads(part)
    except (ValueError, RecursionError):
        raise ReplyFault("The reply is not one valid JSON object.") from None
    if without_halves(part) != part:
        raise ReplyFault("The reply holds half of a character.")
    return fields_of(value)


def strict_integer_in(fields: Fields, name: str) -> int:
    """Return the JSON integer in this field: no text, no number with a point, no truth value. Raises ReplyFault."""
    value = given(fields, name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ReplyFault(f'The reply gives something else than a JSON integer as "{name}".')
    if abs(value) > _LARGEST:
        raise ReplyFault(f'The reply gives a number as "{name}" that is too large to count with.')
    return value
