"""`merilo runs list`, or `merilo runs` alone: list the runs in a directory."""

from __future__ import annotations

from typing import Annotated

import typer

from merilo.commands.command import Command, Json, Section

HELP = """List the runs in a directory: state, samples, cost and the first means of each, newest first.

DIR is searched three levels deep. Without it, lists the runs that merilo run stored without --out (.merilo/runs).
Only manifests and summaries are read; merilo show and merilo runs verify check a run's other files.
"""
EXAMPLES = """\b
Examples:
  merilo runs
  merilo runs list experiments
  merilo runs list . --json
"""


def runs(
    directory: Annotated[
        str | None, typer.Argument(metavar="[DIR]", help="Directory to search.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """Find and list runs."""
    from merilo.commands.runs.run import list_runs, runs_page, runs_record
    from merilo.rendering.page import page_width, print_result

    found = list_runs(directory)
    print_result(runs_record(found) if json else runs_page(found, page_width()))


COMMAND = Command(
    name="runs list",
    section=Section.MAINTAIN,
    summary="List the runs in a directory.",
    help=HELP,
    call=runs,
    options="--json",
    examples=EXAMPLES,
)
