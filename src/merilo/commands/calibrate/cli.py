"""`merilo calibrate`: what labels of people say of a run's means and of its judge."""

from __future__ import annotations

from typing import Annotated

import typer

from merilo.commands.command import Command, Section
from merilo.commands.exit_codes import Exit
from merilo.commands.flags import Cluster, Debug, Json, given, metric_texts

HELP = """Hold a run against labels of people: the judge's mean, people's and the corrected one, side by side.

RUN is the directory that merilo run printed; the labels are tasks that merilo label drew from it, filled in. The
corrected mean is reported if at least 10 samples are labelled. --attach keeps the labels with the run, and merilo show
then reports the corrected means.

Exit codes: 0 done, 2 wrong use or no label that can be used, 3 too few labels to report a mean.
"""
EXAMPLES = """\b
Examples:
  merilo calibrate runs/first --labels tasks.jsonl
  merilo calibrate runs/first --labels ann.csv --labels ben.csv --metric faithfulness --attach
"""


def calibrate(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="Directory of the run.", callback=given, show_default=False)
    ],
    labels: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Tasks with labels of people. May be repeated.")
    ] = None,
    metric: Annotated[
        list[str] | None, typer.Option(metavar="M", help="Only these metrics, divided by commas. May be repeated.")
    ] = None,
    cluster: Cluster = None,
    level: Annotated[float, typer.Option(metavar="L", help="Confidence level of the intervals.")] = 0.95,
    attach: Annotated[bool, typer.Option("--attach", help="Keep the labels with the run.")] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Calibrate a run."""
    del debug  # main reads it
    from merilo.commands.calibrate.run import calibrate_run
    from merilo.commands.calibrate.text import calibrated_page, calibrated_record
    from merilo.errors import UsageError
    from merilo.rendering.sanitize import json_text
    from merilo.rendering.terminal import page_width, show, write

    if not labels:
        raise UsageError(f"Name the file with the labels: --labels FILE; to draw tasks: merilo label {run}.")
    found = calibrate_run(
        run, labels, metrics=metric_texts(metric) if metric else None, cluster=cluster, level=level, attach=attach
    )
    if json:
        write(json_text(calibrated_record(found)) + "\n")
    else:
        show(calibrated_page(found, page_width()))
    if not found.told:
        raise typer.Exit(Exit.CANNOT_TELL)


COMMAND = Command(
    name="calibrate",
    section=Section.JUDGES,
    summary="Correct means with human labels.",
    help=HELP,
    call=calibrate,
    examples=EXAMPLES,
)
