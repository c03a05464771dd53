"""The declaration of one command: its name, place in the help, texts and function; and options that several share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

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


Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output, nothing else.")]
By = Annotated[
    list[str] | None,
    typer.Option("--by", metavar="FIELD", help="Slices by language, length, contexts or a metadata key. Repeatable."),
]
ColumnFields = Annotated[
    list[str] | None, typer.Option("--map", metavar="COLUMN=FIELD", help="Read a field from this column. Repeatable.")
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="FIELD", help="Group samples that share this field or metadata key; intervals are over groups."
    ),
]
AcrossData = Annotated[
    bool, typer.Option("--across-data", help="Compare the samples that match, even if more than one in ten do not.")
]
JudgeOnly = Annotated[
    bool, typer.Option("--judge-only", help="Leave human labels out: every number is the judge's own.", hidden=True)
]
Markdown = Annotated[
    str | None, typer.Option(metavar="FILE", help="Write Markdown for a comment; - for standard output.")
]
GitHub = Annotated[
    bool, typer.Option("--github", help="In a GitHub workflow: add to the step summary and print annotations.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, no messages.")]


def given(value: str | None) -> str:
    """Return a required argument. typer 0.16 with click 8.5 passes a missing one as None."""
    if value is None:
        raise typer.BadParameter("it is missing.")
    return value


def given_some(values: list[str] | None) -> list[str]:
    """Return a required argument that may be repeated."""
    if not values:
        raise typer.BadParameter("it is missing.")
    return values
