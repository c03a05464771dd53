"""What users write for something that has another name here, by table of guesses.toml."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@cache
def guesses(table: str) -> Mapping[str, list[str]]:
    """Return guess → what it may mean, the likeliest first."""
    import tomllib  # late: only a wrong guess needs it

    tables: dict[str, dict[str, list[str]]] = tomllib.loads(
        files("merilo.data").joinpath("guesses.toml").read_text("utf-8")
    )
    found: dict[str, list[str]] = {}
    for meant, names in tables[table].items():
        for name in names:
            found.setdefault(name, []).append(meant)
    return found
