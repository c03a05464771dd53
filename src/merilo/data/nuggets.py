"""Nuggets of a question: the facts that a good answer has, stored with the data set in the metadata as `nuggets`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.data import check

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.data.check import JSON

NUGGETS: Final = "nuggets"
"""The key in the metadata; a column of this name is stored there."""
NO_NUGGETS: Final = "the sample has no nuggets"
INVALID_NUGGETS: Final = 'nuggets are not a list of texts, or of objects with "text" and "vital" or "importance"'
_IMPORTANCE: Final = {"vital": True, "okay": False}


class Nugget(NamedTuple):
    """A fact that an answer to the question can state."""

    text: str
    vital: bool = True
    """True if a good answer must state it; False if it is only worth stating."""


class NuggetError(ValueError):
    """The nuggets of a sample are missing or invalid; the message is a reason for having no score."""


def nuggets_in(metadata: Mapping[str, JSON]) -> tuple[Nugget, ...]:
    """Return the nuggets of a sample, in order; equal texts are one nugget, which is vital if any of them is.

    A nugget is a text, which is vital, or an object with `text` and either `vital` (true or false) or `importance`
    ("vital" or "okay"), as nuggetizer writes it. Other keys are ignored. A CSV cell has the list as JSON. Raises
    NuggetError.
    """
    given: object = metadata.get(NUGGETS)
    if given is None:
        raise NuggetError(NO_NUGGETS)
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            raise NuggetError(INVALID_NUGGETS) from None
    if not check.is_list(given):
        raise NuggetError(INVALID_NUGGETS)
    found: dict[str, bool] = {}
    for item in given:
        nugget = _nugget(item)
        found[nugget.text] = found.get(nugget.text, False) or nugget.vital
    return tuple(Nugget(text, vital) for text, vital in found.items())


def _nugget(item: object) -> Nugget:
    fields: Mapping[object, object] = item if check.is_mapping(item) else {"text": item}
    text, vital = fields.get("text"), fields.get("vital", True)
    if "vital" not in fields and "importance" in fields:
        importance = fields["importance"]
        vital = _IMPORTANCE.get(importance) if isinstance(importance, str) else None
    if not isinstance(text, str) or not text.strip() or not isinstance(vital, bool):
        raise NuggetError(INVALID_NUGGETS)
    return Nugget(text.strip(), vital)
