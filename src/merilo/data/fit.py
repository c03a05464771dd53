"""The fields whose form a value has, for columns whose names alone do not decide."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from merilo.data import check

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_CONTEXTS: Final = frozenset({"retrieved_contexts", "reference_contexts"})
_IDS: Final = frozenset({"retrieved_context_ids", "reference_context_ids"})
_MAX_ID: Final = 200
_ADDRESS: Final = re.compile(r"\s*(?:https?|file|s3)://\S*\s*")
_LISTED: Final = re.compile(r"\s*(?:\[|array\(|\()")
_ENVELOPES: Final = ("kwargs", "node", "id_", "blob")
"""Keys of a serialised document of LangChain, LlamaIndex or Haystack."""
_ROLES: Final = ("role", "type", "speaker", "from")


def fitting(value: object, text_keys: Collection[str]) -> frozenset[str]:
    """Return the fields whose form a value has; empty for a missing value. `text_keys`: names of a context's text."""
    if isinstance(value, str):
        return _of_text(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return frozenset({"id"})
    if check.is_record(value):
        listed = columns_of(value) or [{}]
        return _CONTEXTS if not listed[0].keys().isdisjoint(text_keys) else frozenset()
    if not check.is_list(value) or not value:
        return frozenset()
    first = value[0]
    if are_messages(value):
        return frozenset({"user_input", "history"} | ({"reference"} if len(value) == 1 else set()))
    if isinstance(first, str):
        own = _IDS if all(isinstance(each, str) and _is_id(each) for each in value) else frozenset[str]()
        texts = {"reference", "history"} | (
            _CONTEXTS if any(isinstance(each, str) and _is_prose(each) for each in value) else frozenset[str]()
        )
        return own | texts
    if isinstance(first, int):
        return _IDS
    if check.is_record(first):
        is_context = not first.keys().isdisjoint((*text_keys, *_ENVELOPES))
    else:
        is_context = check.is_list(first) and len(first) == 2 and isinstance(first[0], str)
    return _CONTEXTS if is_context else frozenset()


def are_messages(value: object) -> bool:
    """Return True for a list of turns of a conversation: objects that name a speaker, with a text each."""
    return (
        check.is_list(value)
        and bool(value)
        and all(
            check.is_record(each)
            and any(isinstance(each.get(name), str) for name in _ROLES)
            and any(name in each for name in ("content", "text", "value", "data"))
            for each in value
        )
    )


def columns_of(value: Mapping[str, object]) -> list[dict[str, object]] | None:
    """Return an object of lists of equal length, one for each key, as a list of objects; None for any other object."""
    lists = [item for item in value.values() if check.is_list(item)]
    if not lists or len(lists) < len(value) or len({len(each) for each in lists}) != 1:
        return None
    return [dict(zip(value, items, strict=True)) for items in zip(*lists, strict=True)]


def _of_text(text: str) -> frozenset[str]:
    found: set[str] = set()
    if not text.strip() or _ADDRESS.fullmatch(text):
        return frozenset()
    if _LISTED.match(text):
        found |= {"reference", "history", *_CONTEXTS, *_IDS}
    if _is_prose(text):
        found |= {"user_input", *_CONTEXTS}
    if _is_prose(text) or not _is_id(text) or text.strip(".,;:!?'\"").isalpha():
        found |= {"response", "reference"}
    if _is_id(text):
        found.add("id")
    return frozenset(found)


def _is_prose(text: str) -> bool:
    """Return True for several words, or for text in a script that need not divide words by spaces."""
    return len(text.split()) > 1 or any(ord(char) >= 0x0E00 for char in text[:_MAX_ID])


def _is_id(text: str) -> bool:
    return 0 < len(text) <= _MAX_ID and not any(char.isspace() for char in text)
