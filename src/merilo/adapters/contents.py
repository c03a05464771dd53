"""Texts and documents in the inputs and outputs of spans, which may be text, JSON, messages or objects of a library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.adapters.attributes import decoded, finite, first, items_of
from merilo.adapters.conventions import conventions
from merilo.data import check

if TYPE_CHECKING:
    from collections.abc import Iterable

_MAX_DEPTH: Final = 8
_PAIR: Final = 2  # a document and its score


def question_in(value: object) -> str | None:
    """Return the user's text in an input: the last message of the user, or the value of a known key."""
    return _text(value, "user", 0)


def answer_in(value: object) -> str | None:
    """Return the answer in an output: the last message of the assistant, or the value of a known key."""
    return _text(value, "assistant", 0)


def documents_in(value: object) -> list[dict[str, object]]:
    """Return the documents in a value as contexts: objects with `text`, `id`, `score` and `metadata` where known.

    A document without text keeps its id only; a value without documents gives an empty list.
    """
    return list(_documents(decoded(value), 0))


def _text(value: object, role: str, depth: int) -> str | None:
    if isinstance(value, str):
        inner = decoded(value)
        return value if isinstance(inner, str) else _text(inner, role, depth + 1) or value
    if depth > _MAX_DEPTH or value is None:
        return None
    if items := items_of(value):
        return _text_of_items(items, role, depth)
    if not check.is_record(value):
        return None
    if _role(value) is not None:
        return _content(value, depth) if _role(value) == role else None
    keys = conventions().keys
    for key in keys.input if role == "user" else keys.output:
        if (found := value.get(key)) is not None and (text := _text(found, role, depth + 1)) is not None:
            return text
    if len(value) == 1:
        return _text(next(iter(value.values())), role, depth + 1)
    return None


def _text_of_items(items: list[object], role: str, depth: int) -> str | None:
    """Return the text of the last message with a role; of the first item if the items are not messages."""
    messages = [item for each in items if check.is_record(item := _message(each)) and _role(item) is not None]
    if messages:
        texts = (_content(each, depth) for each in reversed(messages) if _role(each) == role)
        return next((text for text in texts if text), None)
    return _text(items[0], role, depth + 1)


def _message(item: object) -> object:
    """Return the message in an item: OpenInference has it under `message`, LangChain in `kwargs`, or as a pair."""
    if check.is_list(item) and len(item) == _PAIR and isinstance(item[0], str):
        return {"role": item[0], "content": item[1]}
    if not check.is_record(item):
        return item
    inner = item.get("message")
    if check.is_record(inner) and "role" not in item:
        return inner
    made, names = item.get("kwargs"), item.get("id")
    if check.is_record(made) and check.is_list(names) and names:
        return {"role": names[-1], **made}
    return item


def _role(message: object) -> str | None:
    """Return `user`, `assistant` or another role of a message; None if the value is not a message."""
    if not check.is_record(message) or not ({"content", "parts", "contents"} & message.keys()):
        return None
    named = message.get("role") or message.get("type")
    return conventions().keys.roles.get(named, named) if isinstance(named, str) else None


def _content(message: object, depth: int) -> str | None:
    """Return the text of a message: a string, or its parts that are text, joined."""
    if not check.is_record(message):
        return None
    found = first(message, ("parts", "content", "contents"))
    if isinstance(found, str):
        return found
    texts = [text for part in items_of(found) if (text := _part(part)) is not None]
    if texts:
        return "".join(texts)
    return _text(found, "user", depth + 1) if check.is_record(found) else None


def _part(part: object) -> str | None:
    if isinstance(part, str):
        return part
    if check.is_record(part) and check.is_record(inner := part.get("message_content")):
        part = inner
    if not check.is_record(part) or part.get("type", "text") != "text":
        return None
    found = first(part, ("text", "content"))
    return found if isinstance(found, str) else None


def _documents(value: object, depth: int) -> Iterable[dict[str, object]]:
    if depth > _MAX_DEPTH:
        return
    items = items_of(value)
    if items:
        for each in items:
            found = _document(decoded(each), 0)
            if found is not None:
                yield found
    elif check.is_record(value):
        for key in conventions().keys.documents:
            if (inner := decoded(value.get(key))) is not None and (items_of(inner) or check.is_record(inner)):
                yield from _documents(inner, depth + 1)
                return


def _document(item: object, depth: int) -> dict[str, object] | None:
    """Return a document as a context; None if it has neither text nor id."""
    if isinstance(item, str):
        return {"text": item}
    if check.is_list(item) and len(item) == _PAIR and not isinstance(item[0], str):
        found = _document(item[0], depth + 1)
        return _scored(found, item[1]) if found is not None else None
    if not check.is_record(item) or depth > _MAX_DEPTH:
        return None
    keys = conventions().keys.document
    for key in keys.inside:
        if check.is_record(inner := item.get(key)) and (found := _document(inner, depth + 1)) is not None:
            return _scored(found, first(item, keys.score))
    made: dict[str, object] = {}
    if isinstance(text := first(item, keys.text), str):
        made["text"] = text
    if isinstance(name := first(item, keys.id), str | int) and not isinstance(name, bool):
        made["id"] = name
    if not made:
        return None
    metadata = decoded(first(item, keys.metadata))
    if check.is_record(metadata):
        made["metadata"] = dict(metadata)
    return _scored(made, first(item, keys.score))


def _scored(document: dict[str, object], score: object) -> dict[str, object]:
    if not isinstance(score, bool) and finite(score) is not None:
        document["score"] = score
    return document
