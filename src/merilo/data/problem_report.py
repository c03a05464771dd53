"""Problems of records as messages: equal ones grouped, with advice on mapping columns with other names."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from merilo.data.aliases import aliases
from merilo.data.sample import FIELDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.errors import Problem

_NEAR: Final = 0.75
_MAX_SPANS: Final = 4
_MAX_COLUMNS: Final = 200
_WORDS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def grouped_messages(problems: Sequence[Problem], *, records: int) -> list[str]:
    """Return one sentence per problem; equal problems of several records are grouped with their places.

    `records`: the number of records read, good and bad; it identifies a problem that all records have.
    """
    alike: dict[Problem, list[Problem]] = {}
    for each in problems:
        alike.setdefault(replace(each, line=None), []).append(each)
    return [
        same[0].message if len(same) == 1 else _of_several(fault, [each.line for each in same], records)
        for fault, same in alike.items()
    ]


def _of_several(fault: Problem, places: Sequence[int | None], records: int) -> str:
    lines = sorted({place for place in places if place is not None})
    if len(lines) < len(places):
        where = f"{len(places)} times"
    elif len(lines) == records:
        where = f"all {records} records"
    else:
        where = f"{fault.unit}s {_spans(lines)}"
    source = where if fault.source is None else f"{fault.source}, {where}"
    return replace(fault, source=source).message


def _spans(lines: Sequence[int]) -> str:
    """Return numbers in rising order as text: `1 to 30`, `1 to 3, 7 and 12 more`."""
    spans: list[list[int]] = []
    for line in lines:
        if spans and line == spans[-1][1] + 1:
            spans[-1][1] = line
        else:
            spans.append([line, line])
    shown = ", ".join(f"{low}" if low == high else f"{low} to {high}" for low, high in spans[:_MAX_SPANS])
    more = sum(high - low + 1 for low, high in spans[_MAX_SPANS:])
    return f"{shown} and {more} more" if more else shown


@lru_cache(maxsize=64)
def mapping_advice(columns: tuple[str, ...]) -> str:
    """Return advice for data without any known column: `--map` options that can be typed as shown.

    Each field appears once, for the first column with a similar name; if no name is similar, only the form is shown.
    """
    found: dict[str, str] = {}
    for column in columns[:_MAX_COLUMNS]:
        field = _near(column)
        if field is not None:
            found.setdefault(field, column)
    if not found:
        return "map columns with --map COLUMN=FIELD (mapping={'COLUMN': 'FIELD'})"
    options = " ".join(f"--map {shlex.quote(f'{column}={field}')}" for field, column in found.items())
    return f"map columns with {options}"


def _near(column: str) -> str | None:
    """Return the field that a name may mean; None if no known name is similar."""
    known = {_plain(name): field for name, field in aliases().fields.items() if field in FIELDS}
    plain = _plain(column)
    if plain in known:
        return known[plain]
    for word in reversed(_WORDS.findall(column)):
        if word.lower() in known:
            return known[word.lower()]
    near = get_close_matches(plain, known, n=1, cutoff=_NEAR)
    return known[near[0]] if near else None


def _plain(name: str) -> str:
    return "".join(char for char in name.lower() if char.isalnum())
