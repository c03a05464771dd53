"""`merilo calibrate`: correct a run's means with human labels, and measure how well its judge agrees with them."""

from __future__ import annotations

from typing import Annotated

import typer

from merilo.commands.command import Command, Section
from merilo.commands.exit_codes import Exit
from merilo.commands.flags import Cluster, Debug, Json, given, metric_texts

HELP = """Compare the judge of a run with human labels, and correct the run's means.

The labels are the filled-in tasks that merilo label drew from the run. Shows the judge's mean, the mean of the labels
and the corrected mean, which merilo reports from 10 labelled samples on. --attach stores the labels with the run, so
that merilo show reports the corrected means. --by shows where the judge errs: its sensitivity and specificity by
language, length, system (with OTHER) or any metadata key.

Exit codes: 0 success, 2 usage error or no usable label, 3 too few labels to report a mean.
"""
EXAMPLES = """\b
Examples:
  merilo calibrate runs/first --labels tasks.jsonl
  merilo calibrate runs/first --labels ann.csv --labels ben.csv --metric faithfulness --attach
  merilo calibrate runs/first --labels tasks.jsonl --by language --by length
  merilo calibrate runs/first runs/second --labels pair.jsonl --by system
"""


def calibrate(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Run directory.", callback=given, show_default=False)],
    other: Annotated[
        str | None,
        typer.Argument(
            metavar="OTHER",
            help="The second run of a labelled pair; --attach stores the labels with both.",
            show_default=False,
        ),
    ] = None,
    labels: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="File of labelled tasks. Repeatable.")
    ] = None,
    metric: Annotated[
        list[str] | None, typer.Option(metavar="M", help="Only these metrics, comma-separated. Repeatable.")
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD",
            help="Judge's errors by language, length, system or a metadata key such as source. Repeatable.",
        ),
    ] = None,
    cluster: Cluster = None,
    level: Annotated[float, typer.Option(metavar="L", help="Confidence level of the intervals.")] = 0.95,
    attach: Annotated[bool, typer.Option("--attach", help="Store the labels with the run.")] = False,
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
        raise UsageError(f"No labels given. Add --labels FILE; to draw tasks: merilo label {run} -o FILE.")
    found = calibrate_run(
        run,
        labels,
        metrics=metric_texts(metric) if metric else None,
        cluster=cluster,
        level=level,
        attach=attach,
        other=other,
        by=tuple(by or ()),
    )
    if json:
        write(json_text(calibrated_record(found)) + "\n")
    else:
        show(calibrated_page(found, page_width(), other=other))
    if not found.has_estimate:
        raise typer.Exit(Exit.CANNOT_TELL)


COMMAND = Command(
    name="calibrate",
    section=Section.JUDGES,
    summary="Correct means with human labels.",
    help=HELP,
    call=calibrate,
    options="--labels --by --attach --json",
    examples=EXAMPLES,
)
