"""`merilo plan`: what a run would ask and cost, before anything is asked."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from merilo.commands.command import Command, Section
from merilo.commands.flags import (
    ApiKeyEnv,
    BaseUrl,
    CascadePilot,
    ColumnFields,
    Concurrency,
    CrossEncoder,
    Debug,
    Embedder,
    EmbedderApiKeyEnv,
    EmbedderBaseUrl,
    Json,
    JudgedHow,
    JudgesAsInRun,
    Language,
    Limit,
    MaxError,
    Metrics,
    Prices,
    Qrels,
    Rpm,
    SkipInvalid,
    Tpm,
    column_mapping,
    metric_texts,
    share,
)
from merilo.commands.power.cli import Difference, Pilot, PilotCluster, Pilots, UntilDecided, report_power
from merilo.engine.amounts import LOOKED_AT
from merilo.errors import UsageError

if TYPE_CHECKING:
    from merilo.commands.evaluate.options import EvaluateArguments
    from merilo.commands.power.result import Power
    from merilo.engine.amounts import Estimate

HELP = """Say how many requests a run over DATA would send, how many tokens they are, and what they cost.

Nothing is asked and no key is needed. Questions that several metrics share, and what the run at --out or the cache
holds already, are not counted again. Once the run has begun, its own tokens and times are taken.

With --power, a run that is there serves as a pilot: how many samples show a --difference between two runs, and whether
a run that stops early (--until-decided) can pay. DATA may then be left out.
"""
EXAMPLES = """\b
Examples:
  merilo plan answers.jsonl --judge openai:gpt-4.1-mini
  merilo plan answers.jsonl --metrics faithfulness,context_recall --judge openai:gpt-4.1-mini --out runs/first
  merilo plan answers.jsonl --judge openai:qwen3 --base-url http://localhost:8000/v1 --prices prices.toml
  merilo plan --power runs/old --power runs/new --difference 0.03
  merilo plan answers.jsonl --judge openai:gpt-4.1-mini --power runs/first --until-decided gates.toml
"""
_OWN = {"--sample": 1, "--latency": 1, "--json": 0, "--debug": 0, "--power": 1, "--difference": 1}
"""Options that `merilo run` does not know, or that would change what it prints, and how many words follow each."""


def plan(
    data: Annotated[
        str | None, typer.Argument(metavar="[DATA]", help="The file to evaluate.", show_default=False)
    ] = None,
    metrics: Metrics = None,
    judge: JudgesAsInRun = None,
    embedder: Embedder = "embedded",
    cross_encoder: CrossEncoder = "embedded",
    qrels: Qrels = None,
    out: Annotated[str | None, typer.Option(metavar="RUN", help="A run that has begun; it is not changed.")] = None,
    limit: Limit = None,
    mapping: ColumnFields = None,
    language: Language = None,
    concurrency: Concurrency = 16,
    rpm: Rpm = None,
    tpm: Tpm = None,
    base_url: BaseUrl = None,
    api_key_env: ApiKeyEnv = None,
    embedder_base_url: EmbedderBaseUrl = None,
    embedder_api_key_env: EmbedderApiKeyEnv = None,
    judged: JudgedHow = None,
    max_error: MaxError = None,
    cascade_pilot: CascadePilot = None,
    skip_invalid: SkipInvalid = False,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Count what the cache holds, too.")] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Count what failed in the run at --out, too.")
    ] = False,
    prices: Prices = None,
    sample: Annotated[
        str, typer.Option(metavar="N", help="Number of samples to read, spread evenly, or all; counts are scaled up.")
    ] = str(LOOKED_AT),
    latency: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Seconds per reply, if the run has not measured them.")
    ] = None,
    power: Pilots = None,
    difference: Difference = None,
    until_decided: UntilDecided = None,
    cluster: PilotCluster = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Estimate and report."""
    del debug  # main reads it
    pilot = Pilot(power or [], difference, until_decided, cluster)
    pilot.check(data)
    texts = metric_texts(metrics) if metrics else None
    arguments: EvaluateArguments = {
        "metrics": texts,
        "judge": judge or ["embedded"],
        "embedder": embedder,
        "cross_encoder": cross_encoder,
        "out": out,
        "limit": limit,
        "mapping": column_mapping(mapping or []) or None,
        "language": language,
        "concurrency": concurrency,
        "requests_per_minute": rpm,
        "tokens_per_minute": tpm,
        "base_url": base_url,
        "api_key_env": api_key_env,
        "embedder_base_url": embedder_base_url,
        "embedder_api_key_env": embedder_api_key_env,
        "judged": judged,
        "max_error": None if max_error is None else share(max_error),
        "cascade_pilot": cascade_pilot,
        "skip_invalid": skip_invalid,
        "cache": not no_cache,
        "retry_failed": retry_failed,
        "prices": prices,
    }
    if data is None:
        _report_power(pilot, texts, json=json)
        return
    found = _planned(data, qrels, sample, latency, arguments)
    report(found, json=json, run=_run_command(sys.argv[1:]), power=pilot.told(texts, found.samples))


def _planned(
    data: str, qrels: str | None, sample: str, latency: float | None, arguments: EvaluateArguments
) -> Estimate:
    from merilo.commands.blocking import run_blocking
    from merilo.commands.evaluate.options import options_from
    from merilo.commands.plan.run import run_estimate
    from merilo.data.trec import load_trec

    source = data if qrels is None else load_trec(data, qrels)
    options = options_from(**arguments)
    return run_blocking(run_estimate(source, options, sample=_looked_at(sample), latency_s=latency))


def _report_power(pilot: Pilot, metrics: list[str] | None, *, json: bool) -> None:
    found = pilot.told(metrics, None)
    if found is not None:
        report_power(found, json=json)


def report(found: Estimate, *, json: bool, run: str = "", power: Power | None = None) -> None:
    """Print an estimate, and what a pilot says; `run`: the command that would do it, where there is one to be named."""
    from merilo.commands.plan.text import plan_page, plan_record
    from merilo.commands.power.result import power_record, power_section
    from merilo.rendering.sanitize import json_text
    from merilo.rendering.terminal import page_width, show, write

    if json:
        told = {} if power is None else {"power": power_record(power)}
        write(json_text({**plan_record(found), **told}) + "\n")
        return
    page = plan_page(found, page_width(), run=run)
    if power is not None:
        power_section(page, power)
    show(page)


def _looked_at(text: str) -> int | None:
    if text == "all":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"--sample takes a number of samples or all, got {text!r}.")
    return int(text)


def _run_command(words: list[str]) -> str:
    """The run that was planned, as a command; empty when the words are not those of a plan."""
    if not words or words[0] != "plan":
        return ""
    from merilo.rendering.overview import command

    kept, passed = ["run"], 0
    for word in words[1:]:
        if passed:
            passed -= 1
        elif word.partition("=")[0] in _OWN:
            passed = 0 if "=" in word else _OWN[word]
        else:
            kept.append(word)
    return command(*kept)


COMMAND = Command(
    name="plan",
    section=Section.MEASURE,
    summary="Estimate the requests and cost of a run.",
    help=HELP,
    call=plan,
    examples=EXAMPLES,
)
