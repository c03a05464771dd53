"""`merilo judge check`: measure the agreement of a judge with human labels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from merilo.commands.check.one_judge import progress_line, until_done
from merilo.commands.check.options import ABOUT_DATA, ONE_JUDGE, RETRY_FAILED, CheckOptions
from merilo.commands.command import Command, Section
from merilo.commands.flags import Debug, Json, Quiet
from merilo.commands.judge.output import check_whole, tell
from merilo.commands.option import Flag, OptionGroup
from merilo.commands.option_flags import takes_options

if TYPE_CHECKING:
    from os import PathLike

    from merilo.commands.check.run import Check

HELP = """Measure how well a judge agrees with human labels, by task and source.

Without FILE, uses the labelled sample that ships with merilo. Files are JSON Lines (.gz accepted); the how-to page on
judge checks describes them. Records with rule-generated labels are skipped unless --include-constructed is given.

Exit codes: 0 success, 2 usage error, invalid labels or no usable provider, 4 more than 1% of the records failed,
5 limit reached, 130 interrupted.
"""
EXAMPLES = """\b
Examples:
  merilo judge check
  merilo judge check --judge openai:gpt-4.1-mini --sample 50 --max-cost 1 --out checks/mini
  merilo judge check --labels ours.jsonl --task groundedness --json
"""


@takes_options(
    CheckOptions,
    without=(*ABOUT_DATA, "mapping"),
    judge=ONE_JUDGE,
    retry_failed=RETRY_FAILED,
    out=Flag(
        help="Directory for check.json and a run for each task and source.", metavar="DIR", group=OptionGroup.OUTPUT
    ),
)
def check(
    options: CheckOptions,
    more: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE]...", help="More files, as with --labels.", show_default=False),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Check a judge."""
    from merilo.commands.check.run import run_check

    options = replace(
        options, labels=(*options.labels, *(more or ())), progress=progress_line(quiet=quiet, debug=debug)
    )
    found = until_done(run_check(options))
    _report(found, options.out, json=json)
    check_whole(found, "records")


def _report(found: Check, out: str | PathLike[str] | None, *, json: bool) -> None:
    from merilo.commands.check.record import check_record
    from merilo.commands.check.text import check_page

    tell(check_record(found), lambda width: check_page(found, width), out=out, name="check.json", json=json)


COMMAND = Command(
    name="judge check",
    section=Section.JUDGES,
    summary="Compare a judge with human labels.",
    help=HELP,
    call=check,
    examples=EXAMPLES,
)
