"""The fidelity of the published definitions, by family: how replies are read, and what differs.

Declared once for each family, in `fidelity.toml`. What is sent with a request is not written there:
`rendering.reproduction` finds it by running a definition's own plan, so that it cannot differ from the code.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Fidelity:
    """The facts about all definitions of a family; parameters in braces stand for a definition's own defaults."""

    replies: str
    """The reading of replies, and the handling of an unreadable one."""
    checked: str
    """The source of the numbers that the definitions were compared with."""
    differs: tuple[str, ...] = ()
    """Known differences, besides those of every family."""


@cache
def families() -> Mapping[str, Fidelity]:
    """Return the facts by the beginning of the names; of several that fit a name the first counts."""
    table = tomllib.loads(files("merilo_published").joinpath("fidelity.toml").read_text("utf-8"))
    return {
        name: Fidelity(each["replies"], each["checked"], tuple(each.get("differs", ())))
        for each in table["families"]
        for name in each["names"]
    }


def fidelity_of(name: str) -> Fidelity | None:
    """Return what holds for the family of a definition with this name; None for one of no published system."""
    return next((each for beginning, each in families().items() if name.startswith(beginning)), None)
