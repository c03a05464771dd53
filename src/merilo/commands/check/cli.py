"""`merilo judge check`: how well does a judge agree with people?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from merilo.commands.command import Command, Section
from merilo.commands.flags import (
    ApiKeyEnv,
    BaseUrl,
    CascadePilot,
    Concurrency,
    Debug,
    Json,
    JudgedHow,
    LogJson,
    MaxCost,
    MaxError,
    MaxRequests,
    MaxSeconds,
    NoCache,
    OneJudge,
    Prices,
    Quiet,
    Rpm,
    Timeout,
    Tpm,
    UnansweredAs,
    share,
    unanswered_as,
)
from merilo.commands.judge.output import GOES_ON, check_whole, tell
from merilo.errors import Interrupted

if TYPE_CHECKING:
    from merilo.commands.check.run import Check

HELP = """Hold a judge against labels of people, and print how far it agrees, by task and source.

Without files it is the sample in the package. Files are JSON Lines, perhaps gzipped; the docs describe them under
"Hold a judge against people". Records that were made by rule are left out unless --include-constructed.

Exit codes: 0 done, 2 wrong use, bad labels or no usable provider, 4 more than 1% of the records failed, 5 stopped at
a limit, 130 interrupted.
"""
EXAMPLES = """\b
Examples:
  merilo judge check
  merilo judge check --judge openai:gpt-4.1-mini --sample 50 --max-cost 1 --out checks/mini
  merilo judge check --labels ours.jsonl --task groundedness --json
"""


def check(
    more: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE]...", help="More labels, as after --labels.", show_default=False),
    ] = None,
    judge: OneJudge = "embedded",
    labels: Annotated[list[str] | None, typer.Option(metavar="FILE", help="Labels of people. May be repeated.")] = None,
    task: Annotated[list[str] | None, typer.Option(metavar="NAME", help="This task only. May be repeated.")] = None,
    source: Annotated[list[str] | None, typer.Option(metavar="NAME", help="This source only. May be repeated.")] = None,
    include_constructed: Annotated[
        bool, typer.Option("--include-constructed", help="Also records made by rule, in tables of their own.")
    ] = False,
    each_sentence: Annotated[
        bool | None,
        typer.Option(
            "--each-sentence/--no-each-sentence",
            help="Ask about each labelled sentence alone too; by default where it costs nothing.",
            show_default=False,
        ),
    ] = None,
    sample: Annotated[
        int | None, typer.Option(metavar="N", help="At most so many records of each task and source.")
    ] = None,
    out: Annotated[
        str | None, typer.Option(metavar="DIR", help="Keep check.json and a run for each task and source there.")
    ] = None,
    concurrency: Concurrency = 16,
    rpm: Rpm = None,
    tpm: Tpm = None,
    timeout: Timeout = None,
    max_cost: MaxCost = None,
    max_requests: MaxRequests = None,
    max_seconds: MaxSeconds = None,
    unanswered: UnansweredAs = "charged",
    base_url: BaseUrl = None,
    api_key_env: ApiKeyEnv = None,
    judged: JudgedHow = None,
    max_error: MaxError = None,
    cascade_pilot: CascadePilot = None,
    no_cache: NoCache = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Ask again what failed in --out.")] = False,
    prices: Prices = None,
    json: Json = False,
    quiet: Quiet = False,
    log_json: LogJson = None,
    debug: Debug = False,
) -> None:
    """Check a judge."""
    import asyncio

    from merilo.commands.check.run import Wanted, run_check
    from merilo.commands.evaluate.options import Options
    from merilo.rendering.progress_line import Watch

    wanted = Wanted(
        labels=(*(labels or ()), *(more or ())),
        tasks=task or (),
        sources=source or (),
        include_constructed=include_constructed,
        sample=sample,
        each_sentence=each_sentence,
    )
    options = Options(
        judge=judge,
        out=out,
        concurrency=concurrency,
        requests_per_minute=rpm,
        tokens_per_minute=tpm,
        timeout_s=timeout,
        max_cost_usd=max_cost,
        max_requests=max_requests,
        max_seconds=max_seconds,
        unanswered=unanswered_as(unanswered),
        base_url=base_url,
        api_key_env=api_key_env,
        judged=judged,
        max_error=None if max_error is None else share(max_error),
        cascade_pilot=cascade_pilot,
        cache=not no_cache,
        retry_failed=retry_failed,
        prices=prices,
        progress=Watch(quiet=quiet, plain=debug),  # where tracebacks are shown, no line is drawn
        log_json=log_json,
    )
    try:
        found = asyncio.run(run_check(wanted, options))
    except KeyboardInterrupt:
        raise Interrupted(f"Stopped. {GOES_ON}") from None
    _report(found, out, json=json)
    check_whole(found, "records")


def _report(found: Check, out: str | None, *, json: bool) -> None:
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
