"""`merilo export`: write the samples of a run to a file for other tools."""

from __future__ import annotations

from typing import Annotated

import typer

from merilo.commands.command import Command, Section
from merilo.commands.flags import Debug, Json, given

HELP = """Export a run as a table with one row per sample: its fields and, for each metric, score, status and reason.

RUN is the directory that merilo run printed. The ending of FILE chooses the format: .csv, .jsonl, .parquet or .xlsx.
A file that ends in .otlp.jsonl holds one gen_ai.evaluation.result event per score for the spans of evaluated traces.
"""
EXAMPLES = """\b
Examples:
  merilo export runs/first -o first.csv
  merilo export runs/first -o first.xlsx
  merilo export runs/traces -o scores.otlp.jsonl
"""


def export(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="Directory of the run.", callback=given, show_default=False)
    ],
    out: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--out",
            metavar="FILE",
            help="File to write (.csv, .jsonl, .parquet, .xlsx, .otlp.jsonl). An existing one is replaced.",
            callback=given,
            show_default=False,
        ),
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Export a run."""
    del debug  # main reads it
    from merilo.commands.export.run import export_run
    from merilo.commands.export.text import export_page, export_record
    from merilo.rendering.sanitize import json_text
    from merilo.rendering.terminal import page_width, show, write

    found = export_run(run, given(out))
    if json:
        write(json_text(export_record(found)) + "\n")
    else:
        show(export_page(found, page_width()))


COMMAND = Command(
    name="export",
    section=Section.LOOK,
    summary="Export a run as a table.",
    help=HELP,
    call=export,
    examples=EXAMPLES,
)
