"""`merilo report`: write one run, or a comparison of runs, as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from merilo.commands.command import Command, Section

HELP = """Write a report as one HTML file: the likely faults, the metrics, and every sample with its evidence.

With two runs or more, the file compares each with the first. The file needs no server and no network.
"""
EXAMPLES = """\b
Examples:
  merilo report runs/first -o report.html
  merilo report runs/first --by source
  merilo report runs/old runs/new -o comparison.html
"""


def report(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...",
            help="Directories of one run or more, of a watch, of a diagnosis, or of a run and its diagnosis.",
            show_default=False,
        ),
    ],
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE", help="The file to write; - for standard output.")
    ] = "report.html",
    by: Annotated[
        str | None,
        typer.Option(metavar="FIELD", help="Show the slices by this field first, such as language or a metadata key."),
    ] = None,
) -> None:
    """Write a report."""
    from merilo.commands.report.run_page import report_text, write_report
    from merilo.commands.verify.recomputed import spot_checked
    from merilo.rendering.markup import write_page
    from merilo.rendering.page import write
    from merilo.runs.files import WATCH

    if (Path(runs[0]) / WATCH).is_file():
        from merilo.commands.watch.page import watch_report

        text = watch_report(Path(runs[0]))
        write(text) if out == "-" else write_page(Path(out), text)
    elif out == "-":
        write(report_text(spot_checked(runs), by=by))
    else:
        write_report(spot_checked(runs), Path(out), by=by)
    if out != "-":
        write(f"saved in {out}\n")


COMMAND = Command(
    name="report",
    section=Section.LOOK,
    summary="Write a run or a comparison as HTML.",
    help=HELP,
    call=report,
    options="--out --by",
    examples=EXAMPLES,
)
