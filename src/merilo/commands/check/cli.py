"""`merilo judge check`: try a judge and compare it with human labels."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from merilo.commands.check.options import CheckOptions
from merilo.commands.command import Command, Json, Quiet, Section, check_whole, takes_options
from merilo.commands.evaluate.options import ABOUT_DATA, Model
from merilo.commands.exit_codes import Exit
from merilo.commands.option import Flag, OptionGroup

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.commands.check.page import JudgeCheck
    from merilo.judges.base import Judge

HELP = """Try judges and measure them against people.

Asks one question of each kind (trial), and compares verdicts with human labels (by default the sample in merilo).
--task limits it. Several judges share a table. A local:NAME that is not on this machine is downloaded if you agree; a
folder without a card gets a draft of one.

Exit codes: 0 success, 2 usage error, invalid data or no usable provider, 4 a kind of question fails or more than 1% of
the questions, 5 limit reached, 130 interrupted.
"""
EXAMPLES = """\b
Examples:
  merilo judge check
  merilo judge check openai:gpt-4.1-mini embedded --labels ours.jsonl --max-cost 1
  merilo judge check openai:qwen3 --base-url http://localhost:8000/v1 --task trial
  merilo judge check openai:gpt-4.1-mini --number 50 --plan
"""


@takes_options(
    CheckOptions,
    without=(*ABOUT_DATA, "judge"),
    storage_retry_failed=Flag(
        help="Retry questions that failed in --out.", type=bool, default=False, group=OptionGroup.OUTPUT
    ),
    out=Flag(help="Directory for check.json and the run.", metavar="DIR", group=OptionGroup.OUTPUT),
)
def check(
    options: CheckOptions,
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SPEC]...",
            help="embedded (the default), local:MODEL, PROVIDER:MODEL (decisions, systemone, openai, anthropic, azure, "
            "bedrock, google, ollama), scripted:FILE or FILE.py:NAME; several KIND,...=SPEC are one judge.",
            show_default=False,
        ),
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Estimate requests and cost only.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Print every table.", hidden=True)] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Download, or write a draft, without a question.", hidden=True)
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check judges."""
    from merilo.rendering.progress_line import progress_line

    given = what or ["embedded"]
    for spec in given:
        _get_ready(spec.rpartition("=")[2], yes=yes, quiet=quiet, json=json)
    server = options.judge if isinstance(options.judge, Model) else Model()
    judges = _judges(given, server)
    options = replace(options, progress=progress_line(quiet=quiet))
    if plan:
        _estimate(options, judges, json=json)
    else:
        _check(options, judges, json=json, full=full)


def _judges(specs: Sequence[str], server: Model) -> list[Judge]:
    """Return each judge that is named, at the server; routes by kind of question are one judge. Raises UsageError."""
    from merilo.commands.evaluate.preparation import named_judges
    from merilo.judges.routed import is_route, one_judge
    from merilo.judges.spec import judges_from

    named = named_judges(replace(server, spec=specs))
    parts = [named] if any(is_route(each.name) for each in named) and one_judge(specs) else [[each] for each in named]
    return [judges_from(each)["judge"] for each in parts]


def _check(options: CheckOptions, judges: Sequence[Judge], *, json: bool, full: bool) -> None:
    from merilo.commands.blocking import run_blocking
    from merilo.commands.check.page import check_page, check_record
    from merilo.commands.check.run import run_checks
    from merilo.rendering.page import page_width, print_result
    from merilo.runs.run import write_json

    found = run_blocking(run_checks(options, judges))
    records = [check_record(each) for each in found]
    record = records[0] if len(records) == 1 else {"judges": records}
    if options.out is not None:
        write_json(Path(options.out, "check.json"), record)
    print_result(record if json else check_page(*found, width=page_width(), full=full))
    for each in found:
        check_whole(each.stopped, *each.failed, "questions")
    if not all(each.works for each in found):
        raise typer.Exit(Exit.TOO_MANY_FAILED)
    for each, own in zip(found, records, strict=True):
        _store_agreement(each, options, own)


def _store_agreement(found: JudgeCheck, options: CheckOptions, record: Mapping[str, Any]) -> None:  # Any: JSON
    """Store what a local judge agreed on with all labels, for the reports of later runs."""
    from merilo.commands.check.page import agreement_note
    from merilo.judges.local.judge import AGREEMENT_NAME, LocalJudge
    from merilo.runs.files import writing
    from merilo.runs.run import write_json

    if isinstance(found.judge, LocalJudge) and found.tables and not options.tasks and options.number is None:
        kept = {name: value for name, value in record.items() if name != "usage"}
        path = found.judge.provider.found.home / AGREEMENT_NAME
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path, {"note": agreement_note(found), **kept})


def _estimate(options: CheckOptions, judges: Sequence[Judge], *, json: bool) -> None:
    import asyncio

    from merilo.commands.check.run import estimate_check
    from merilo.commands.plan.run import print_plan
    from merilo.errors import UsageError

    if len(judges) > 1:
        raise UsageError("--plan estimates one judge. Name only one.")
    print_plan(asyncio.run(estimate_check(replace(options, judge=judges[0]))), json=json)


# -- a local model that is not ready ------------------------------------------------------------------


def _get_ready(spec: str, *, yes: bool, quiet: bool, json: bool) -> None:
    """Download a local model that is not on this machine, or draft its card, if the user agrees."""
    from merilo.errors import UsageError
    from merilo.judges.local.card import CARD_NAME
    from merilo.judges.local.find import card_for, digests, find_model

    scheme, _, text = spec.strip().partition(":")
    folder = Path(text).expanduser()
    if scheme != "local" or not text:
        return
    if folder.is_dir():
        if not (folder / CARD_NAME).exists() and card_for(text) is None:
            _draft(folder, folder / CARD_NAME, yes=yes)
        return
    try:
        digests(find_model(text))
    except UsageError:
        card, on_hub = card_for(text), text.count("/") == 1 and text[0] not in "./~"
        if on_hub or (card is not None and card.model):
            _download(text, yes=yes, quiet=quiet, json=json)


def _download(text: str, *, yes: bool, quiet: bool, json: bool) -> None:
    from merilo.commands.check.run import download, plan_download
    from merilo.errors import Interrupted
    from merilo.judges.local.card import CARD_NAME, forbids_commercial_use
    from merilo.judges.local.find import card_for, fetched_folder
    from merilo.numbers import size_text
    from merilo.rendering.page import Page, Tone, page_width, show, tell

    if quiet or not sys.stderr.isatty():
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # read when huggingface_hub is imported
    plan = plan_download(text)
    size, draft = size_text(sum(each.size for each in plan.files)), card_for(plan.name) is None
    licence = (
        f"{plan.licence.upper()}: NOT FOR COMMERCIAL USE" if forbids_commercial_use(plan.licence) else plan.licence
    )
    if not json:
        page = Page(page_width())
        title = f"local:{plan.name} is not on this machine. From the Hugging Face hub: {plan.model}"
        page.text(title, tone=Tone.STRONG)
        rows = [("revision", plan.revision), ("licence", licence), ("files", size)]
        rows += (("", f"{each.rfilename}, {size_text(each.size)}") for each in plan.files)
        page.entries([*rows, *([("card", "none; a draft is written")] if draft else [])])
        show(page)
    _ask(f"Download {size}?", yes=yes)
    try:
        folder = download(plan, lambda file: None if quiet else tell(f"Fetching {file} ..."))
    except KeyboardInterrupt:
        raise Interrupted("Stopped. Repeat the command to resume; finished files are reused.") from None
    if draft:
        _draft(folder, fetched_folder(plan.name) / CARD_NAME, yes=True)


def _draft(folder: Path, path: Path, *, yes: bool) -> None:
    """Write the draft of a card, and stop with the advice to complete it."""
    from merilo.errors import UsageError
    from merilo.judges.local.card import UNDECIDED
    from merilo.judges.local.find import draft_card
    from merilo.runs.files import writing

    text = draft_card(folder)
    _ask(f"The model in {folder} has no card. Write a draft to {path}?", yes=yes)
    with writing(path), path.open("x", encoding="utf-8") as file:
        file.write(text)
    places = text.count(f'"{UNDECIDED}"') - 1  # the first line names the sign
    raise UsageError(f'Wrote {path}. Replace "{UNDECIDED}" in {places} places, then repeat the command.')


def _ask(question: str, *, yes: bool) -> None:
    """Raise UsageError if the user declines, or without a terminal."""
    from merilo.errors import UsageError

    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{question} To agree, add --yes.")
    if not typer.confirm(question, err=True):
        raise UsageError("Nothing was changed.")


COMMAND = Command(
    name="judge check",
    section=Section.JUDGES,
    summary="Try a judge; measure it against people.",
    help=HELP,
    call=check,
    options="--labels --task --number --base-url --max-cost --plan --out --json",
    examples=EXAMPLES,
)
