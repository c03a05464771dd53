"""The declaration of one command: its name, place in the help, texts and function."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Section(StrEnum):
    """A heading of the command list, in the order in which `merilo --help` prints them."""

    MEASURE = "Measure"
    LOOK = "Look"
    DECIDE = "Decide"
    JUDGES = "Judges"
    MAINTAIN = "Maintain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command of the command line."""

    name: str
    """The words after `merilo`, such as `run` or `judge check`."""
    section: Section
    summary: str
    """The line in the command list: a verb and its object."""
    help: str
    call: Callable[..., None]
    options: str = ""
    """The options in `--help`; `--help-all` has the others too."""
    examples: str = ""
