"""`merilo lineage`: how the published definitions of one name score the same data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from merilo.commands.command import Command, Section
from merilo.commands.flags import (
    ApiKeyEnv,
    BaseUrl,
    CascadePilot,
    Cluster,
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
    LogJson,
    MaxError,
    NoCache,
    Out,
    Quiet,
    RetryFailed,
    Rpm,
    SkipInvalid,
    Timeout,
    Tpm,
    column_mapping,
    given,
    share,
)
from merilo.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.commands.evaluate.options import EvaluateArguments
    from merilo.commands.lineage.result import LineageTables
    from merilo.data.load import Records

HELP = """Compare the published definitions of context relevance, faithfulness and so on, on DATA.

By default each published formula is computed over the verdicts of merilo's own metrics, so only the formulas differ
and nothing is asked twice. Notes name what each formula leaves out of its definition. With --as-published each
definition asks its own questions, in its own steps and in our wording. That needs a judge that writes free text.

Means and tau-b are compared over the samples that every definition scored.

With --sample only that sample is evaluated, unless --out is a run of the data, which then includes the others.
"""
EXAMPLES = """\b
Examples:
  merilo lineage answers.jsonl
  merilo lineage answers.jsonl --family context_relevance --sample 17
  merilo lineage answers.jsonl --as-published --judge openai:gpt-4.1-mini
"""
_WRITES_NOTHING = (
    'No published definition could ask its own questions; see "Left out". Use an LLM judge (--judge openai:MODEL), or '
    "omit --as-published."
)


def lineage(
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="The file to evaluate.", callback=given, show_default=False)
    ],
    family: Annotated[list[str] | None, typer.Option(metavar="NAME", help="This family only. May be repeated.")] = None,
    as_published: Annotated[
        bool,
        typer.Option("--as-published/--same-verdicts", help="Ask each definition's own questions.", show_default=False),
    ] = False,
    sample: Annotated[
        str | None, typer.Option(metavar="ID", help="Show how each definition arrives at its number for this sample.")
    ] = None,
    judge: JudgesAsInRun = None,
    embedder: Embedder = "embedded",
    cross_encoder: CrossEncoder = "embedded",
    out: Out = None,
    limit: Limit = None,
    mapping: ColumnFields = None,
    language: Language = None,
    cluster: Cluster = None,
    max_error: MaxError = None,
    cascade_pilot: CascadePilot = None,
    concurrency: Concurrency = 16,
    rpm: Rpm = None,
    tpm: Tpm = None,
    timeout: Timeout = None,
    base_url: BaseUrl = None,
    api_key_env: ApiKeyEnv = None,
    embedder_base_url: EmbedderBaseUrl = None,
    embedder_api_key_env: EmbedderApiKeyEnv = None,
    judged: JudgedHow = None,
    skip_invalid: SkipInvalid = False,
    no_cache: NoCache = False,
    retry_failed: RetryFailed = False,
    json: Json = False,
    quiet: Quiet = False,
    log_json: LogJson = None,
    debug: Debug = False,
) -> None:
    """Evaluate all definitions and report."""
    from merilo.commands.blocking import run_blocking
    from merilo.commands.evaluate.options import options_from
    from merilo.commands.lineage.run import run_lineage
    from merilo.rendering.progress_line import Watch
    from merilo.rendering.terminal import tell

    arguments: EvaluateArguments = {
        "judge": judge or ["embedded"],
        "embedder": embedder,
        "cross_encoder": cross_encoder,
        "out": out,
        "limit": limit,
        "mapping": column_mapping(mapping or []) or None,
        "language": language,
        "cluster": cluster,
        "max_error": None if max_error is None else share(max_error),
        "cascade_pilot": cascade_pilot,
        "concurrency": concurrency,
        "requests_per_minute": rpm,
        "tokens_per_minute": tpm,
        "timeout_s": timeout,
        "base_url": base_url,
        "api_key_env": api_key_env,
        "embedder_base_url": embedder_base_url,
        "embedder_api_key_env": embedder_api_key_env,
        "judged": judged,
        "skip_invalid": skip_invalid,
        "cache": not no_cache,
        "retry_failed": retry_failed,
        "progress": Watch(quiet=quiet, plain=debug),
        "log_json": log_json,
    }
    records: str | Records = data
    if sample is not None and not (out and _is_run(out)):
        records = _only(data, sample, arguments)
    options = options_from(**arguments)
    tables = run_blocking(run_lineage(records, options, families=family or (), as_published=as_published))
    _report(tables, sample, json=json)
    if as_published and not any(":" in row.definition for rows in tables.families.values() for row in rows):
        tell(_WRITES_NOTHING)


def _is_run(out: str) -> bool:
    from pathlib import Path

    from merilo.runs.run import MANIFEST

    return (Path(out) / MANIFEST).exists()


def _only(data: str, sample: str, arguments: EvaluateArguments) -> Records:
    """The one sample of the data with this id, read by `arguments`, which lose what says how to read.

    Raises UsageError when there is none, and DataError for a file that cannot be read.
    """
    from merilo.data.load import load
    from merilo.data.sample import BadRecord, Dataset, Sample

    mapping: Mapping[str, str] | None = arguments.pop("mapping", None)
    dataset = load(data, mapping=mapping, language=arguments.get("language"), limit=arguments.pop("limit", None))
    ids: list[str] = []
    for each in dataset:
        if isinstance(each, Sample):
            if each.id == sample:
                chosen: list[Sample | BadRecord] = [each]
                return Dataset(dataset.name, chosen.__iter__)
            ids.append(str(each.id))
    raise UsageError(f"{dataset.name} has no sample with the id {sample!r}; its first ones are {', '.join(ids[:3])}.")


def _report(tables: LineageTables, sample: str | None, *, json: bool) -> None:
    from merilo.commands.lineage import text as report
    from merilo.rendering.sanitize import json_text
    from merilo.rendering.terminal import page_width, show, write

    if json:
        record = report.lineage_record(tables) if sample is None else report.lineage_sample_record(tables, sample)
        write(json_text(record) + "\n")
    elif sample is None:
        show(report.lineage_page(tables, page_width()))
    else:
        show(report.lineage_sample_page(tables, sample, page_width()))


COMMAND = Command(
    name="lineage",
    section=Section.LOOK,
    summary="Compare the definitions of one name.",
    help=HELP,
    call=lineage,
    examples=EXAMPLES,
)
