"""`merilo run`: evaluate a data set and print the summary."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from merilo.cli.exits import Exit
from merilo.cli.options import (
    ApiKeyEnv,
    BaseUrl,
    CrossEncoder,
    Debug,
    Embedder,
    EmbedderApiKeyEnv,
    EmbedderBaseUrl,
    Json,
    JudgedHow,
    column_mapping,
    given,
    metric_texts,
    share,
)
from merilo.errors import Interrupted, MeriloError

if TYPE_CHECKING:
    from pathlib import Path

    from merilo.evaluation import EvaluateArguments
    from merilo.reports.terminal import Watch
    from merilo.runs.run import Run

HELP = """Evaluate DATA and print the summary.

DATA is a file (.jsonl, .json, .csv, .tsv, each perhaps .gz) or "-" for JSON Lines on standard input. The run is
kept in a directory; the same command with that directory as --out goes on where it was stopped.

Exit codes: 0 done, 2 wrong use, bad data or no usable provider, 4 too many failed outcomes, 130 interrupted.
"""
EXAMPLES = """\b
Examples:
  merilo run answers.jsonl
  merilo run answers.jsonl --metrics faithfulness,context_relevance --out runs/first
  merilo run answers.csv --map question=user_input --judge openai:gpt-4.1-mini
  merilo run bm25.trec --qrels judged.qrels --metrics nDCG@10,recall@100
  merilo run answers.jsonl --judge openai:qwen3 --base-url http://localhost:8000/v1
"""


def run(
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="The file to evaluate.", callback=given, show_default=False)
    ],
    metrics: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B", help="Metrics, by default every one that data and judge allow."),
    ] = None,
    judge: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SPEC",
            help="embedded (the default), openai:MODEL or scripted:FILE, perhaps as NAME=SPEC. May be repeated.",
        ),
    ] = None,
    embedder: Embedder = "embedded",
    cross_encoder: CrossEncoder = "embedded",
    qrels: Annotated[
        str | None, typer.Option(metavar="FILE", help="DATA is a TREC run; what is relevant stands in these qrels.")
    ] = None,
    out: Annotated[str | None, typer.Option(metavar="RUN", help="Directory of the run.")] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", help="Look at so many records only.")] = None,
    mapping: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="COLUMN=FIELD", help="Which field a column fills. May be repeated."),
    ] = None,
    language: Annotated[str | None, typer.Option(metavar="CODE", help="Language of the data, such as ru.")] = None,
    concurrency: Annotated[int, typer.Option(metavar="N", help="Requests in the air at once.")] = 16,
    base_url: BaseUrl = None,
    api_key_env: ApiKeyEnv = None,
    embedder_base_url: EmbedderBaseUrl = None,
    embedder_api_key_env: EmbedderApiKeyEnv = None,
    judged: JudgedHow = None,
    skip_invalid: Annotated[
        bool, typer.Option("--skip-invalid", help="Leave bad records out instead of stopping.")
    ] = False,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Do not use verdicts of other runs, nor lend them these.")
    ] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Ask again what failed in this run.")] = False,
    max_failed: Annotated[
        str, typer.Option(metavar="SHARE", help="Exit with 4 when more of the outcomes failed.")
    ] = "1%",
    json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no messages.")] = False,
    debug: Debug = False,
) -> None:
    """Evaluate and report; the help stands in HELP."""
    del debug  # read in main, where errors are told
    most_failed = share(max_failed)
    arguments: EvaluateArguments = {
        "metrics": metric_texts(metrics) if metrics else None,
        "judge": judge or ["embedded"],
        "embedder": embedder,
        "cross_encoder": cross_encoder,
        "out": out,
        "limit": limit,
        "mapping": column_mapping(mapping or []) or None,
        "language": language,
        "concurrency": concurrency,
        "base_url": base_url,
        "api_key_env": api_key_env,
        "embedder_base_url": embedder_base_url,
        "embedder_api_key_env": embedder_api_key_env,
        "judged": judged,
        "skip_invalid": skip_invalid,
        "cache": not no_cache,
        "retry_failed": retry_failed,
    }
    found = _evaluated(data, qrels, arguments, quiet=quiet)
    _report(found, json=json)
    _check_failed(found, most_failed)


def _evaluated(data: str, qrels: str | None, arguments: EvaluateArguments, *, quiet: bool) -> Run:
    from merilo.api import evaluate
    from merilo.data.trec import load_trec
    from merilo.reports.terminal import Watch

    source = data if qrels is None else load_trec(data, qrels)
    watch = Watch(quiet=quiet)
    arguments["progress"] = watch
    try:
        return evaluate(source, **arguments)
    except Interrupted:
        raise Interrupted(_resumable("Stopped.", watch)) from None
    except MeriloError as error:  # a key that is missing, a server that is gone: the run has begun
        if watch.run is None:
            raise
        raise MeriloError(_resumable(str(error), watch)) from error


def _resumable(message: str, watch: Watch) -> str:
    if watch.run is None:
        return message
    return f"{message}\nWhat was answered is kept. To go on: {again(watch.run)}"


def again(path: Path, *more: str) -> str:
    """The command that was typed, with this directory as its run, so that it goes on there."""
    words = sys.argv[1:]
    given = any(word == "--out" or word.startswith("--out=") for word in words)
    extra = [word for word in more if word not in words]
    return shlex.join(["merilo", *words, *([] if given else ["--out", str(path)]), *extra])


def _report(found: Run, *, json: bool) -> None:
    from merilo.reports.clean import json_text
    from merilo.reports.overview import overview_page, overview_record
    from merilo.reports.terminal import page_width, show, write

    if json:
        write(json_text(overview_record(found)) + "\n")
    else:
        show(overview_page(found, page_width(), again=again(found.path, "--retry-failed")))


def _check_failed(found: Run, most: float) -> None:
    from merilo.reports.terminal import tell

    aggregates = [each for each in found.metrics.values() if not each.parts]  # a composite has no outcomes
    failed = sum(each.failed for each in aggregates)
    total = sum(each.scored + each.undefined + each.failed for each in aggregates)
    if failed > most * total:
        tell(
            f"{failed:,} of {total:,} outcomes failed ({failed / total:.1%}), more than --max-failed {most:.1%}. "
            f"To ask them again: {again(found.path, '--retry-failed')}"
        )
        raise typer.Exit(Exit.TOO_MANY_FAILED)
