"""Output and exit codes that `merilo judge check`, `judge probe` and `judge agree` share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import typer

from merilo.commands.exit_codes import Exit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike

    from merilo.rendering.page import Page

GOES_ON = "Repeat the command to resume; answers in --out and the cache are reused."
_REUSED = "Answers in --out and in the verdict cache are reused at no cost."
_MAX_FAILED_RATE = 0.01


class JudgeOutcomes(Protocol):
    """The outcome of asking a judge many questions."""

    @property
    def stopped(self) -> str | None:
        """The limit that was reached, as a sentence; None if no limit was reached."""
        ...

    @property
    def failed(self) -> tuple[int, int]:
        """The number of failures, and the number of records or pairs asked about."""
        ...


def tell(
    record: Mapping[str, Any],  # Any: JSON
    page: Callable[[int], Page],
    *,
    out: str | PathLike[str] | None,
    name: str,
    json: bool,
) -> None:
    """Print the record (`json`) or the page, and write the record to the file `name` in `out` if that is given."""
    from pathlib import Path

    from merilo.rendering.sanitize import json_text
    from merilo.rendering.terminal import page_width, show, write
    from merilo.runs.run import write_json

    if out is not None:
        write_json(Path(out) / name, record)
    if json:
        write(json_text(record) + "\n")
        return
    shown = page(page_width())
    if out is not None:
        shown.line(f"  stored in {out}")
    show(shown)


def check_whole(found: JudgeOutcomes, what: str, *, retry: str = "use --out and --retry-failed") -> None:
    """Exit with an error code if a limit was reached or more than 1 % failed.

    `what`: the things asked about, in the plural. `retry`: what to do about those that failed.
    """
    from merilo.rendering.terminal import tell as say

    if found.stopped is not None:
        say(f"{found.stopped} {_REUSED}")
        raise typer.Exit(Exit.LIMIT_REACHED)
    failed, asked = found.failed
    if failed > _MAX_FAILED_RATE * asked:
        say(f"{failed:,} of {asked:,} {what} failed (more than 1%). To retry them, {retry}.")
        raise typer.Exit(Exit.TOO_MANY_FAILED)
