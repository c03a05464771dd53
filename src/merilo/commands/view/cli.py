"""`merilo view`: look at the runs in a directory in a browser."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from merilo.commands.command import Command, Section

HELP = """Look at runs in a browser: the list with trends, the report of each run, and comparisons.

DIR is searched three levels deep, and may be a run itself. Without it, shows the runs that merilo run stored without
--out (.merilo/runs). A run in progress shows its progress. The server is reachable from this machine only.
"""
EXAMPLES = """\b
Examples:
  merilo view
  merilo view experiments
  merilo view experiments --port 0 --no-browser
"""


def view(
    directory: Annotated[
        str | None, typer.Argument(metavar="[DIR]", help="Directory to search.", show_default=False)
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, max=65535, help="Port; 0 for any free one. [default: 8642 if it is free]"),
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address and open no browser.")] = False,
) -> None:
    """Serve the runs until the command is stopped."""
    from merilo.commands.view.run import serve

    serve(directory, port=port, browser=not no_browser, debug="--debug" in sys.argv)


COMMAND = Command(
    name="view",
    section=Section.LOOK,
    summary="Look at runs in a browser.",
    help=HELP,
    call=view,
    options="--port --no-browser",
    examples=EXAMPLES,
)
