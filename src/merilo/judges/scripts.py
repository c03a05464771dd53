"""Parsing of script files: entries that name the questions they answer. See `scripted` for the format."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from merilo.errors import UsageError
from merilo.judging.json_types import as_list, as_object, loaded
from merilo.judging.registry import KINDS
from merilo.judging.verdicts import Failure, FailureKind, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from merilo.judging.coercion import Given
    from merilo.judging.json_types import Json
    from merilo.judging.questions import Question

_KEYS = frozenset({"kind", "match", "verdict", "failure"})


@dataclass(frozen=True)
class Entry:
    """One answer and the questions that it fits."""

    kind: str
    match: Mapping[str, object]
    given: Given
    json: str
    """The entry as canonical JSON; input of the script's digest."""

    def fits(self, question: Question[Any]) -> bool:
        """Return True if the question is of this kind and each named field matches."""
        return question.kind == self.kind and all(
            _matches(getattr(question, name), wanted) for name, wanted in self.match.items()
        )


def entries_from(path: Path) -> tuple[Entry, ...]:
    """Return the entries of a JSON or JSON Lines file. Raises UsageError that names the position of a problem."""
    try:
        if path.is_char_device():  # such as /dev/zero, which has no end
            raise UsageError(f"Cannot read the script {path}: it is a device.")
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"Cannot read the script {path} ({error}); expected a JSON or JSON Lines file.") from error
    if text.lstrip().startswith("["):
        items = as_list(_loaded(text, str(path))) or []
        places = [(f"entry {n}", item) for n, item in enumerate(items, start=1)]
    else:
        lines = enumerate(text.splitlines(), start=1)
        places = [(f"line {n}", _loaded(line, f"{path}, line {n}")) for n, line in lines if line.strip()]
    if not places:
        raise UsageError(f"The script {path} has no entries.")
    return tuple(_entry(item, f"{path}, {place}") for place, item in places)


def given_json(given: Given) -> str:
    """Return an answer to a question as canonical JSON; equal answers give equal text."""
    if isinstance(given, Verdict):
        return f"{type(given).__name__} {given.to_json()}"
    if isinstance(given, Failure):
        return json.dumps({"failure": given.to_fields()}, sort_keys=True)
    return json.dumps(given, sort_keys=True, ensure_ascii=False, default=str)


def _loaded(text: str, place: str) -> object:
    try:
        return loaded(text)
    except ValueError as error:
        raise UsageError(f"{place}: not valid JSON ({error}).") from error


def _entry(item: object, place: str) -> Entry:
    parts = as_object(item)
    if parts is None or not parts.keys() <= _KEYS or ("verdict" in parts) == ("failure" in parts):
        raise UsageError(
            f"{place}: an entry is an object with 'kind', either 'verdict' or 'failure', and optionally 'match'."
        )
    kind, match = parts.get("kind"), as_object(parts.get("match", {}))
    if not isinstance(kind, str) or kind not in KINDS:
        raise UsageError(f"{place}: the kind must be one of {', '.join(KINDS)}, got {kind!r}.")
    known = {field.name for field in fields(KINDS[kind])}
    if match is None or not match.keys() <= known or not all(map(_can_match, match.values())):
        raise UsageError(
            f"{place}: 'match' must name fields of {kind} ({', '.join(sorted(known))}), each with its value or "
            f'{{"contains": text}}, got {parts["match"]!r}.'
        )
    return Entry(kind, match, _given(parts, place), json.dumps(parts, sort_keys=True, ensure_ascii=False))


def _given(parts: Json, place: str) -> Given:
    if "verdict" in parts:
        verdict = as_object(parts["verdict"])
        if verdict is None:
            raise UsageError(f"{place}: 'verdict' must be an object of the verdict's fields, got {parts['verdict']!r}.")
        return verdict
    failure = as_object(parts["failure"]) or {}
    kind, message = failure.get("kind"), failure.get("message")
    if kind not in set(FailureKind) or not isinstance(message, str):
        kinds = ", ".join(FailureKind)
        raise UsageError(f"{place}: 'failure' needs 'kind' (one of {kinds}) and 'message', got {parts['failure']!r}.")
    return Failure(FailureKind(str(kind)), message)


def _can_match(wanted: object) -> bool:
    pattern = as_object(wanted)
    return pattern is None or (list(pattern) == ["contains"] and isinstance(pattern["contains"], str))


def _matches(value: str | int | tuple[str, ...], wanted: object) -> bool:
    pattern = as_object(wanted)
    if pattern is not None:
        texts = value if isinstance(value, tuple) else (str(value),)
        return any(str(pattern["contains"]) in text for text in texts)
    items = as_list(wanted)
    return value == (wanted if items is None else tuple(items))
