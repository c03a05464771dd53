"""Options that several commands share, and small readers of what a user wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from merilo.errors import UsageError

if TYPE_CHECKING:
    from merilo.engine.budget import Unanswered

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


def metric_texts(texts: list[str]) -> list[str]:
    """The metrics in comma-separated texts; a comma within parentheses belongs to its metric.

    Raises UsageError when a text names none.
    """
    found: list[str] = []
    for text in texts:
        names = [part.strip() for part in split_texts(text) if part.strip()]
        if not names:
            raise UsageError(f"--metrics takes comma-separated metrics, got {text!r}. To list them: merilo metrics.")
        found += names
    return found


def column_mapping(texts: list[str]) -> dict[str, str]:
    """Column to field, from texts of the form `column=field`. Raises UsageError for any other form."""
    found: dict[str, str] = {}
    for text in texts:
        parts = split_texts(text)
        for part in parts if all("=" in each for each in parts) else [text]:
            column, sign, field = map(str.strip, part.rpartition("="))
            if not (column and sign and field):
                raise UsageError(f"--map takes column=field, such as question=user_input; got {text!r}.")
            if found.setdefault(column, field) != field:
                raise UsageError(f"--map names the column {column!r} twice; name it once.")
    return found


def share(text: str) -> float:
    """A share between 0 and 1, from `0.01` or `1%`. Raises UsageError for anything else."""
    number = text.strip()
    try:
        value = float(number[:-1]) / 100 if number.endswith("%") else float(number)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise UsageError(f"A share is a number from 0 to 1 or a percentage such as 1%; got {text!r}.")
    return value


def unanswered_as(text: str) -> Unanswered:
    """Return the text if it is `charged` or `free`. Raises UsageError for any other."""
    if text == "free":
        return "free"
    if text == "charged":
        return "charged"
    raise UsageError(f"--unanswered must be charged or free, got {text!r}.")


def split_texts(text: str) -> list[str]:
    """Return the parts of a comma-separated text; a comma in parentheses or quotes divides nothing."""
    parts, depth, quoted = [""], 0, False
    for sign in text:
        quoted ^= sign == '"'
        if not quoted:
            depth += (sign == "(") - (sign == ")")
        if sign == "," and depth <= 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += sign
    return parts
