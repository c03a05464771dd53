"""What a task shows and how it is answered: the texts that stay in sight, the keys, and what a typed text means."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import inf, isfinite
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from merilo.commands.label.task_file import OpenTask

_RANGE: Final = re.compile(r"a number from (\S+) to (\S+)")
"""The `labels` text of a task that asks for a number."""
_LETTERS: Final = {"yes": "y", "no": "n"}
READ: Final = frozenset({"context", "contexts", "texts", "response", "reference"})
"""Names of the texts to read, which may be long; all others name what the task is about."""
_LONGEST_NUMBER: Final = 24
_NUMBER: Final = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)(e[+-]?\d+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Key:
    """One possible answer: the text to type and the label it stands for."""

    typed: str
    label: str
    meaning: str


def keys_of(task: OpenTask, reserved: frozenset[str]) -> tuple[Key, ...]:
    """Return what can be typed: one-letter labels, or numbers if a label is longer or among `reserved`.

    Empty if the answer is a number. `reserved`: keys of commands.
    """
    short = [_LETTERS.get(label, label) for label in task.labels]
    if any(len(each) > 1 or each.casefold() in reserved for each in short) or len({*short}) < len(short):
        short = [str(place) for place in range(1, len(short) + 1)]
    meanings = _meanings(task)
    return tuple(Key(*each) for each in zip(short, task.labels, meanings, strict=True))


def about(texts: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the texts that a task is about, such as the user input and the statement: they stay in sight."""
    return [(name, text) for name, text in texts if name not in READ]


def named(name: str) -> str:
    """Return the name of a text for people."""
    return name.replace("_", " ")


def range_of(task: OpenTask) -> tuple[float, float]:
    """Return the smallest and the largest number that a task accepts; infinite if it names no range."""
    ends = _RANGE.fullmatch(task.explained)
    try:
        return (float(ends[1]), float(ends[2])) if ends else (-inf, inf)
    except ValueError:
        return (-inf, inf)


def meant(keys: tuple[Key, ...], task: OpenTask, text: str) -> str | None:
    """Return the label that a text stands for, or a number in the range as it was typed; None for any other text."""
    if keys:
        return next((key.label for key in keys if text in {key.typed.casefold(), key.label.casefold()}), None)
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        return None
    low, high = range_of(task)
    value = float(text.replace(",", "."))
    return text if isfinite(value) and low <= value <= high else None


def _meanings(task: OpenTask) -> list[str]:
    """Return the meaning of each label; all blank if the text has no longer one part per label."""
    parts = task.explained.split("; ")
    if len(parts) != len(task.labels):
        return [""] * len(task.labels)
    pairs = zip(parts, task.labels, strict=True)
    return [part[len(label) + 2 :] if part.startswith(f"{label}: ") else "" for part, label in pairs]
