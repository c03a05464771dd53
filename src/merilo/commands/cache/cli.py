"""`merilo runs cache`: show the verdicts that runs share, or remove some."""

from __future__ import annotations

import re
import time
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from merilo.commands.command import Command, Section
from merilo.errors import UsageError

if TYPE_CHECKING:
    from merilo.engine.cache import Contents
    from merilo.rendering.page import Page

HELP = """Show the location and size of the verdict cache, and the number of verdicts by judge; or remove some.

The cache is the file that MERILO_CACHE names; by default it is in your cache directory. --older-than and --all remove
verdicts. Finished runs have their own copies; only later runs ask the judge again. Runs may use the cache
meanwhile.
"""
EXAMPLES = """\b
Examples:
  merilo runs cache
  merilo runs cache --older-than 90d
  merilo runs cache --all
"""
_AGE = re.compile(r"(\d{1,6})([hdw])")
_SECONDS = {"h": 3_600, "d": 86_400, "w": 604_800}


def cache(
    older_than: Annotated[
        str | None, typer.Option(metavar="AGE", help="Remove verdicts older than this, such as 36h, 90d or 12w.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Remove every verdict.")] = False,
) -> None:
    """Show the cache, or remove the chosen verdicts."""
    from merilo.engine.cache import contents, default_path
    from merilo.engine.cache import prune as prune_file
    from merilo.numbers import count, size_text
    from merilo.rendering.page import page_width, show, tell, write

    if every and older_than is not None:
        raise UsageError("Choose --older-than AGE or --all.")
    if not every and older_than is None:
        found = contents(default_path())
        show(_page(found, page_width()))
        return
    before = None
    if older_than is not None:
        if (age := _AGE.fullmatch(older_than.strip())) is None:
            raise UsageError(f"--older-than needs hours, days or weeks, such as 36h, 90d or 12w, got {older_than!r}.")
        before = int(time.time()) - int(age[1]) * _SECONDS[age[2]]
    pruned = prune_file(default_path(), before=before)
    for notice in pruned.notices:
        tell(notice)
    gone, left = count(pruned.verdicts, "verdict"), count(pruned.left, "verdict")
    write(f"Removed {gone} and freed {size_text(pruned.freed_bytes)}; {left} left.\n")


def _page(found: Contents, width: int) -> Page:
    from merilo.numbers import count, size_text
    from merilo.rendering.page import Page, Span, Tone, columns

    page = Page(width)
    page.line(Span(str(found.path), Tone.STRONG))  # never wrapped, so that it can be copied
    page.text(f"{count(found.verdicts, 'verdict')}, {size_text(found.size_bytes)}")
    if found.shares:
        page.blank()
        rows: list[tuple[str, ...]] = [("judge", "question", "verdicts", "oldest", "newest")]
        for share in found.shares:
            dates = [f"{datetime.fromtimestamp(each).astimezone():%Y-%m-%d}" for each in (share.oldest, share.newest)]
            rows.append((share.judge or "unknown", share.kind or "unknown", f"{share.verdicts:,}", *dates))
        for place, row in enumerate(columns(rows, left=frozenset({0, 1}))):
            page.line(Span(row, Tone.PLAIN if place else Tone.STRONG))
    return page


COMMAND = Command(
    name="runs cache",
    section=Section.MAINTAIN,
    summary="Show the verdict cache, or remove verdicts.",
    help=HELP,
    call=cache,
    options="--older-than --all",
    examples=EXAMPLES,
)
