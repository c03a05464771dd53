"""`merilo judge fit`: fit the calibration and the cuts of a local judge to human labels."""

from __future__ import annotations

from typing import Annotated

import typer

from merilo.commands.command import Command, Section
from merilo.commands.flags import Debug, Json, Quiet, given

HELP = """Fit the calibration and the cuts of a local judge to human labels.

Uses records of the tasks nli (support) and chunk_relevance (relevance), at least 60 of each class. Prints the error on
held-out records and the lines to put into the card. Nothing is changed.

Exit codes: 0 success, 2 usage error or invalid labels, 3 too few labels for every kind, 130 interrupted.
"""
EXAMPLES = """\b
Examples:
  merilo judge fit local:./models/nli --labels ours.jsonl
"""


def fit(
    spec: Annotated[str, typer.Argument(metavar="SPEC", help="local:MODEL.", callback=given, show_default=False)],
    labels: Annotated[
        list[str] | None, typer.Option("--labels", metavar="FILE", help="File of human labels. Repeatable.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Fit a local judge."""
    from merilo.commands.check.one_judge import progress_line, until_done
    from merilo.commands.check.options import CheckOptions
    from merilo.commands.exit_codes import Exit
    from merilo.commands.fit.run import run_fit
    from merilo.commands.fit.text import fit_page, fit_record
    from merilo.rendering.sanitize import json_text
    from merilo.rendering.terminal import page_width, show, write

    options = CheckOptions(labels=tuple(labels or ()), progress=progress_line(quiet=quiet, debug=debug))
    found = until_done(run_fit(spec, options))
    if json:
        write(json_text(fit_record(found)) + "\n")
    else:
        show(fit_page(found, page_width()))
    if not found.kinds:
        raise typer.Exit(Exit.CANNOT_TELL)


COMMAND = Command(
    name="judge fit",
    section=Section.JUDGES,
    summary="Fit a local judge to human labels.",
    help=HELP,
    call=fit,
    examples=EXAMPLES,
)
