"""`merilo judge probe`: can a judge be led astray?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from merilo.commands.command import Command, Section
from merilo.commands.exit_codes import Exit
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
    column_mapping,
    share,
    shares_by_name,
    unanswered_as,
)
from merilo.commands.judge.output import GOES_ON, check_whole, tell
from merilo.errors import Interrupted
from merilo.stats.gate import Verdict

if TYPE_CHECKING:
    from merilo.commands.probe.run import Probing

HELP = """Change judgements in ways that should, or should not, change the verdict, and print what a judge does.

The probes: order of contexts, a duplicate context, padding, an empty context, the question's words or the question
itself in an unrelated context, instructions hidden in a context beside neutral text of equal length, a negation,
another number, another name. Each passes, fails or cannot be told, by its limit. Without files it takes the labels and
examples in the package.

Exit codes: 0 every probe passes, 1 one fails, 2 wrong use, bad data or no usable provider, 3 none fails but one cannot
be told, 4 more than 1% of the pairs failed, 5 stopped at a limit, 130 interrupted.
"""
EXAMPLES = """\b
Examples:
  merilo judge probe
  merilo judge probe --judge openai:gpt-4.1-mini --sample 300 --dry
  merilo judge probe --judge openai:gpt-4.1-mini --sample 300 --max-cost 2 --out probes/mini
  merilo judge probe --probe instructions --sample 2500 --labels ours.jsonl --json
"""


def probe(
    more: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE]...", help="More labels, as after --labels.", show_default=False),
    ] = None,
    judge: OneJudge = "embedded",
    labels: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Labels, as for judge check. May be repeated.")
    ] = None,
    data: Annotated[
        str | None, typer.Option(metavar="DATA", help="Data as merilo run takes it, without labels.")
    ] = None,
    mapping: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="COLUMN=FIELD", help="Which field a column of --data fills. May be repeated."),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option("--probe", metavar="NAME", help="This probe only. May be repeated.")
    ] = None,
    sample: Annotated[int, typer.Option(metavar="N", help="At most so many pairs of each probe.")] = 400,
    seed: Annotated[int, typer.Option(metavar="N", help="Which pairs these are, and what is put where.")] = 0,
    limit: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=SHARE", help="A limit of your own, such as order=2%. May be repeated."),
    ] = None,
    out: Annotated[
        str | None, typer.Option(metavar="DIR", help="Keep probe.json and a run over all pairs there.")
    ] = None,
    dry: Annotated[bool, typer.Option("--dry", help="Ask nothing; say what asking would take.")] = False,
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
    """Probe a judge."""
    import asyncio

    from merilo.commands.evaluate.options import Options
    from merilo.commands.probe.run import Wanted, estimate_probes, run_probes
    from merilo.rendering.progress_line import Watch

    wanted = Wanted(
        probes=only or (),
        labels=(*(labels or ()), *(more or ())),
        data=data,
        sample=sample,
        seed=seed,
        limits=shares_by_name(limit or [], "--limit"),
    )
    options = Options(
        judge=judge,
        mapping=column_mapping(mapping or []) or None,
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
    if dry:
        from merilo.commands.plan.cli import report

        report(asyncio.run(estimate_probes(wanted, options)), json=json)
        return
    try:
        found = asyncio.run(run_probes(wanted, options))
    except KeyboardInterrupt:
        raise Interrupted(f"Stopped. {GOES_ON}") from None
    _report(found, out, json=json)
    check_whole(found, "pairs")
    if found.verdict is Verdict.FAIL:
        raise typer.Exit(Exit.GATE_FAILED)
    if found.verdict is Verdict.CANNOT_TELL:
        raise typer.Exit(Exit.CANNOT_TELL)


def _report(found: Probing, out: str | None, *, json: bool) -> None:
    from merilo.commands.probe.record import probing_record
    from merilo.commands.probe.text import probing_page

    tell(probing_record(found), lambda width: probing_page(found, width), out=out, name="probe.json", json=json)


COMMAND = Command(
    name="judge probe",
    section=Section.JUDGES,
    summary="Test the robustness of a judge.",
    help=HELP,
    call=probe,
    examples=EXAMPLES,
)
