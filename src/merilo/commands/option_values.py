"""Small readers of what a user wrote for an option. They need no typer, which a library call does not load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from merilo.errors import UsageError

if TYPE_CHECKING:
    from merilo.engine.budget import Unanswered


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
