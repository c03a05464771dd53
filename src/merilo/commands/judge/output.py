"""How `merilo judge check` and `merilo judge probe` end: what was found is printed and kept, and what failed counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import typer

from merilo.commands.exit_codes import Exit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike

    from merilo.rendering.page import Page

GOES_ON = "The same command goes on with what --out and the cache hold."
_KEPT = "Answers in --out and in the verdict cache are not paid for again."
_MOST_FAILED = 0.01


class Asked(Protocol):
    """What came of asking a judge many things."""

    @property
    def stopped(self) -> str | None:
        """The limit that ended it; None where none did."""
        ...

    @property
    def failed(self) -> tuple[int, int]:
        """How many failed, of how many."""
        ...


def tell(
    record: Mapping[str, Any],  # Any: JSON
    page: Callable[[int], Page],
    *,
    out: str | PathLike[str] | None,
    name: str,
    json: bool,
) -> None:
    """Keep the record as this file of the directory, if there is one, and print it or the page of a width."""
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
        shown.line(f"  kept in {out}")
    show(shown)


def check_whole(found: Asked, what: str) -> None:
    """Leave with the exit code of a limit or of too many failures; `what` was asked about, in the plural."""
    from merilo.rendering.terminal import tell as say

    if found.stopped is not None:
        say(f"{found.stopped} {_KEPT}")
        raise typer.Exit(Exit.LIMIT_REACHED)
    failed, asked = found.failed
    if failed > _MOST_FAILED * asked:
        say(f"{failed:,} of {asked:,} {what} failed, more than 1%; with --out and --retry-failed they are asked again.")
        raise typer.Exit(Exit.TOO_MANY_FAILED)
