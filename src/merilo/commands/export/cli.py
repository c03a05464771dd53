"""`merilo export`: write the samples and scores of a run to a file for other tools."""

from __future__ import annotations

from typing import Annotated

import typer

from merilo.commands.command import Command, Section

HELP = """Export a run as a table, one row per sample: fields, fault, metadata, and the score and status of each metric.
Export three runs or more as a table with one row per run: means, differences from the best, measures (.csv or .tex).

RUN is the directory that merilo run printed. The ending of FILE chooses the format: .csv, .jsonl or .parquet.
A file that ends in .otlp.jsonl holds one gen_ai.evaluation.result event per score for the spans of evaluated traces.
"""
EXAMPLES = """\b
Examples:
  merilo export runs/first -o first.csv
  merilo export runs/traces -o scores.otlp.jsonl
  merilo export runs/k2 runs/k4 runs/k8 -o table.tex
"""


def export(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Run directories.", show_default=False)],
    out: Annotated[
        str,
        typer.Option(
            "-o",
            "--out",
            metavar="FILE",
            help="File to write: .csv, .jsonl, .parquet, .otlp.jsonl; of three runs or more .csv, .tex.",
            show_default=False,
        ),
    ],
) -> None:
    """Export a run, or several in one table."""
    from merilo.commands.export.run import export_page, export_run, export_runs
    from merilo.commands.verify.recomputed import spot_checked
    from merilo.rendering.page import page_width, show

    own = spot_checked(runs)
    table = export_run(own[0], out) if len(own) == 1 else export_runs(own, out)
    show(export_page(table, page_width()))


COMMAND = Command(
    name="export",
    section=Section.LOOK,
    summary="Export a run as a table.",
    help=HELP,
    call=export,
    options="--out",
    examples=EXAMPLES,
)
