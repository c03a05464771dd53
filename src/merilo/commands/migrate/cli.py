"""`merilo migrate`: recognise results and scripts of other packages, and compare their scores with recomputed ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from merilo.commands.command import Command, Section
from merilo.commands.evaluate.options import Options
from merilo.commands.flags import Debug, Json, Quiet, given
from merilo.commands.migrate.result import SAMPLE, SEED, TOLERANCE
from merilo.commands.option_flags import takes_options

HELP = """Recognise a result or script of ragas, DeepEval or TruLens, and find the definitions that match its metrics.

FILE is a ragas result or TruLens records saved as a table (.csv, .tsv, .jsonl or .json), or a DeepEval test run
(.json). A sample of its rows is evaluated again, and old and new scores are compared. Or FILE is a Python script
(.py) or a notebook (.ipynb), which is read and never run. The last lines are the equivalent merilo commands.

With --same-verdicts any judge works, the embedded one too: each definition's formula is computed over the verdicts of
merilo's own metrics.
"""
EXAMPLES = """\b
Examples:
  merilo migrate ragas.csv --judge openai:gpt-4.1-mini --sample 20
  merilo migrate ragas.csv --version 0.1.9 --same-verdicts
  merilo migrate evaluate_rag.py
"""


@takes_options(
    Options,
    without=(
        "metrics",
        "draws",
        "prompts",
        "limit",
        "cluster",
        "skip_invalid",
        "retry_failed",
        "record",
        "outcomes",
        "until_decided",
        "batch",
        "batch_files",
        "runner",
        "workers",
        "baseline",
        "language",
    ),
)
def migrate(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="Result file, Python script or notebook.", callback=given, show_default=False
        ),
    ],
    options: Options,
    version: Annotated[
        str | None, typer.Option(metavar="RELEASE", help="Release of the package, such as 0.1.9 or ragas-0.1.9.")
    ] = None,
    sample: Annotated[int, typer.Option(metavar="N", min=0, help="Number of rows to evaluate again.")] = SAMPLE,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the choice of rows.")] = SEED,
    tolerance: Annotated[
        float, typer.Option(metavar="X", help="Largest difference of two scores that count as equal.")
    ] = TOLERANCE,
    same_verdicts: Annotated[
        bool, typer.Option("--same-verdicts", help="Compute each formula over merilo's own verdicts.")
    ] = False,
    in_order: Annotated[
        bool, typer.Option("--in-order", help="Trust the row order of a ragas result whose first row has no score.")
    ] = False,
    save: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write all rows as samples, with their old scores.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Recognise, recompute and report."""
    from merilo.commands.blocking import run_blocking
    from merilo.commands.migrate.record import migration_record
    from merilo.commands.migrate.run import MigrationRequest, run_migration
    from merilo.commands.migrate.text import migration_page
    from merilo.rendering.progress_line import ProgressLine
    from merilo.rendering.sanitize import json_text
    from merilo.rendering.terminal import page_width, show, write

    wanted = MigrationRequest(
        release=version,
        sample=sample,
        seed=seed,
        tolerance=tolerance,
        same_verdicts=same_verdicts,
        in_order=in_order,
        save=save,
    )
    options = replace(options, progress=ProgressLine(quiet=quiet, plain=debug))
    found = run_blocking(run_migration(file, wanted, options))
    if json:
        write(json_text(migration_record(found)) + "\n")
    else:
        show(migration_page(found, page_width()))


COMMAND = Command(
    name="migrate",
    section=Section.MEASURE,
    summary="Compare results of another tool with merilo's.",
    help=HELP,
    call=migrate,
    examples=EXAMPLES,
)
