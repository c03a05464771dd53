"""`merilo judge fetch`: download a local judge."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from merilo.commands.command import Command, Section
from merilo.commands.exit_codes import Exit
from merilo.commands.flags import Debug, Json, Quiet, given

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.commands.fetch.result import Download, Fetched, Trial
    from merilo.engine.progress import Progress

HELP = """Download a local judge from the Hugging Face hub, and record its digests.

The only command that downloads a model. It prints the licence, the files and their size, and asks before it downloads.
It takes ONNX or safetensors weights and never formats that may contain code. If the judge was fetched before, its files
are verified, and only missing or changed ones are downloaded. Needs merilo[local].

Then it tests the judge as `merilo judge test` does, and compares it with human labels as `merilo judge check` does.
Reports print this agreement. Without --labels it uses the labelled sample that ships with merilo.

Exit codes: 0 success, 2 usage error, hub unreachable or files that differ, 4 the judge was fetched but its test
failed, 130 interrupted.
"""
EXAMPLES = """\b
Examples:
  merilo judge fetch bge-base
  merilo judge fetch cross-encoder/nli-deberta-v3-small --yes
  merilo judge fetch ORG/NAME --revision v1.0
  merilo judge fetch ms-marco --labels ours.jsonl
"""


def fetch_judge(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="Name of a card, or ORG/NAME.", callback=given, show_default=False),
    ],
    revision: Annotated[
        str | None,
        typer.Option(
            "--revision",
            metavar="REV",
            help="Branch, tag or commit. [default: the one fetched before, that of the card, or main]",
            show_default=False,
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Download without a question.")] = False,
    labels: Annotated[
        list[str] | None,
        typer.Option(
            "--labels",
            metavar="FILE",
            help="File of human labels for the check. Repeatable. [default: the sample in merilo]",
            show_default=False,
        ),
    ] = None,
    no_check: Annotated[bool, typer.Option("--no-check", help="Do not compare the judge with human labels.")] = False,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Fetch a judge."""
    from merilo.commands.check.one_judge import progress_line
    from merilo.commands.fetch.run import fetch, plan_fetch, verified, wanted
    from merilo.commands.fetch.text import fetched_page, fetched_record, plan_page
    from merilo.errors import Interrupted
    from merilo.rendering.sanitize import json_text
    from merilo.rendering.terminal import page_width, show, tell, write

    if quiet or not sys.stderr.isatty():
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # read when huggingface_hub is imported
    judge = wanted(name, revision)
    try:
        found = verified(judge)
        if found is None:
            plan = plan_fetch(judge)
            if not json:
                show(plan_page(plan, page_width()))
            _ask(plan, yes=yes)
            found = fetch(plan, lambda file: None if quiet else tell(f"Fetching {file} ..."))
    except KeyboardInterrupt:
        raise Interrupted("Stopped. Repeat the command to resume; finished files are reused.") from None
    trial = _tried(found, None if no_check else labels or (), progress_line(quiet=quiet, debug=debug))
    if json:
        write(json_text(fetched_record(found, trial)) + "\n")
    else:
        show(fetched_page(found, trial, page_width()))
    if trial is not None and trial.problem is not None:
        tell(f"The judge was fetched, but its test failed: {trial.problem}")
        raise typer.Exit(Exit.TOO_MANY_FAILED)


def _tried(found: Fetched, labels: Sequence[str] | None, progress: Progress) -> Trial | None:
    """Return the result of testing the judge and of checking it, unless `labels` is None; None if it cannot run yet."""
    from merilo.commands.fetch.trial import checked, try_judge
    from merilo.errors import Interrupted, MeriloError

    if not found.is_usable:
        return None
    try:
        trial, judge = try_judge(found.name)
        if judge is None or labels is None:
            return trial
        return checked(trial, judge, labels, progress)
    except KeyboardInterrupt:
        raise Interrupted(
            "Stopped. The judge was fetched. To resume its check, repeat the command; answers in the cache are reused."
        ) from None
    except MeriloError as error:
        error.args = (f"The judge was fetched, but not checked. {error}", *error.args[1:])
        raise


def _ask(plan: Download, *, yes: bool) -> None:
    """Ask whether to download. Raises UsageError if the user declines, or without a terminal."""
    from merilo.commands.fetch.text import size_text
    from merilo.errors import UsageError

    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("Nothing was downloaded. To download without a question, add --yes.")
    if not typer.confirm(f"Download {size_text(plan.size)}?", err=True):
        raise UsageError("Nothing was downloaded.")


COMMAND = Command(
    name="judge fetch",
    section=Section.JUDGES,
    summary="Download a local judge.",
    help=HELP,
    call=fetch_judge,
    examples=EXAMPLES,
)
