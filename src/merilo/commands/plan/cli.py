"""`merilo plan`: what a run would ask and cost, before anything is asked."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from merilo.commands.command import Command, Section
from merilo.commands.evaluate.options import use_cache
from merilo.commands.flags import Debug, Json, Qrels, SourceDocuments, given
from merilo.commands.option import Flag, OptionGroup
from merilo.commands.option_flags import takes_options
from merilo.commands.plan.options import PlanOptions

if TYPE_CHECKING:
    from merilo.engine.amounts import Estimate

HELP = """Say how many requests a run over DATA would send, how many tokens they are, and what they cost.

Nothing is asked and no key is needed. Questions that several metrics share, and what the run at --out or the cache
holds already, are not counted again. Once the run has begun, its own tokens and times are taken.
"""
EXAMPLES = """\b
Examples:
  merilo plan answers.jsonl --judge openai:gpt-4.1-mini
  merilo plan answers.jsonl --metrics faithfulness,context_recall --judge openai:gpt-4.1-mini --out runs/first
  merilo plan answers.jsonl --judge openai:qwen3 --base-url http://localhost:8000/v1 --prices prices.toml
"""
_OWN = {
    "--sample": 1,
    "--latency": 1,
    "--json": 0,
    "--full": 0,
    "--debug": 0,
}
"""Options that `merilo run` does not know, or that would change what it prints, and how many words follow each."""


@takes_options(
    PlanOptions,
    without=(
        "cluster",
        "timeout_s",
        "max_cost_usd",
        "max_requests",
        "max_seconds",
        "unanswered",
        "record",
        "outcomes",
        "log_json",
        "until_decided",
        "baseline",
        "batch_files",
        "runner",
        "workers",
    ),
    batch=Flag(help="Use the prices of batches.", type=bool, default=False, group=OptionGroup.OUTPUT),
    out=Flag(help="A run that has begun; it is not changed.", metavar="RUN", group=OptionGroup.OUTPUT),
    cache=Flag(
        help="Also count what the cache holds.",
        name="--no-cache",
        type=bool,
        default=False,
        read=use_cache,
        group=OptionGroup.OUTPUT,
    ),
    retry_failed=Flag(
        help="Also count what failed in the run at --out.", type=bool, default=False, group=OptionGroup.OUTPUT
    ),
)
def plan(
    options: PlanOptions,
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="The file to evaluate.", callback=given, show_default=False)
    ],
    qrels: Qrels = None,
    documents: SourceDocuments = None,
    full: Annotated[bool, typer.Option("--full", help="Print the upper bound, however high it is.")] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Estimate and report."""
    del debug  # main reads it
    found = _planned(data, (qrels, documents), options)
    report(found, json=json, run=_run_command(sys.argv[1:]), full=full)


def _planned(data: str, judgements: tuple[str | None, str | None], options: PlanOptions) -> Estimate:
    from merilo.commands.blocking import run_blocking
    from merilo.commands.plan.run import run_estimate
    from merilo.data.span_evidence import load_judged

    source = load_judged(data, *judgements, mapping=options.mapping, language=options.language)
    return run_blocking(run_estimate(source, options, sample=options.sample, latency_s=options.latency_s))


def report(found: Estimate, *, json: bool, run: str = "", full: bool = False) -> None:
    """Print an estimate. `run`, `full`: as in `plan_page`."""
    from merilo.commands.plan.text import plan_page, plan_record
    from merilo.providers.prices import outdated
    from merilo.rendering.sanitize import json_text
    from merilo.rendering.terminal import page_width, show, tell, write

    if warning := outdated(found.prices, datetime.now(UTC).date()):
        tell(warning)
    if json:
        write(json_text(plan_record(found)) + "\n")
    else:
        show(plan_page(found, page_width(), run=run, full=full))


def _run_command(words: list[str]) -> str:
    """The run that was planned, as a command; empty when the words are not those of a plan."""
    if not words or words[0] != "plan":
        return ""
    from merilo.rendering.overview import command

    arguments, passed = ["run"], 0
    for word in words[1:]:
        if passed:
            passed -= 1
        elif word.partition("=")[0] in _OWN:
            passed = 0 if "=" in word else _OWN[word]
        else:
            arguments.append(word)
    return command(*arguments)


COMMAND = Command(
    name="plan",
    section=Section.MEASURE,
    summary="Estimate the requests and cost of a run.",
    help=HELP,
    call=plan,
    examples=EXAMPLES,
)
