"""`merilo convert`: store the outcomes of a finished run in the other form."""

from __future__ import annotations

from typing import Annotated

import typer

from merilo.commands.command import Command, Section
from merilo.commands.flags import Debug, given

HELP = """Store the outcomes of a run as JSON Lines (outcomes.jsonl) or as Parquet (outcomes.parquet).

Both forms hold the same outcomes, and every command reads both. Of the other files, only the seal changes.
Parquet needs the extra parquet: pip install 'merilo[parquet]'.
"""
EXAMPLES = """\b
Examples:
  merilo convert runs/first --outcomes parquet
  merilo convert runs/first --outcomes jsonl
"""


def convert(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="Directory of the run.", callback=given, show_default=False)
    ],
    outcomes: Annotated[
        str | None,
        typer.Option(metavar="FORM", help="Form to store: jsonl or parquet.", callback=given, show_default=False),
    ] = None,
    debug: Debug = False,
) -> None:
    """Convert the outcomes of a run."""
    del debug  # main reads it
    from merilo.commands.convert.run import convert_run
    from merilo.rendering.terminal import tell

    found = convert_run(run, given(outcomes))
    tell(f"Outcomes stored in {found} ({found.stat().st_size:,} bytes).")


COMMAND = Command(
    name="convert",
    section=Section.LOOK,
    summary="Store outcomes as JSON Lines or Parquet.",
    help=HELP,
    call=convert,
    examples=EXAMPLES,
)
