"""`merilo run`: evaluate a data set and print the summary."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from merilo.commands.command import By, Command, GitHub, Json, Markdown, Quiet, Section, takes_options
from merilo.commands.evaluate.options import Options
from merilo.commands.exit_codes import Exit
from merilo.commands.option import share
from merilo.errors import Interrupted, LimitReached, MeriloError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.rendering.progress_line import ProgressLine
    from merilo.runs.run import Run

HELP = """Evaluate DATA and print a summary.

DATA is a .jsonl, .json, .csv or .tsv file (.gz accepted), a .parquet file, or "-" for JSON Lines on standard input.
Results are stored in a run directory. To resume an interrupted run, repeat the command with --out RUN.
--plan prints the requests, tokens and cost of the run instead: nothing is sent and no key is needed. What the run at
--out or the verdict cache holds costs nothing.

Exit codes: 0 success, 2 usage error, invalid data or no usable provider, 4 too many failed outcomes, 5 limit reached,
6 waiting for batches, 130 interrupted.
"""
EXAMPLES = """\b
Examples:
  merilo run answers.jsonl
  merilo run answers.jsonl --metrics faithfulness,context_relevance --out runs/first
  merilo run answers.csv --map question=user_input --judge openai:gpt-4.1-mini
  merilo run bm25.trec --qrels judged.qrels --metrics nDCG@10,recall@100
  merilo run bm25.jsonl --qrels spans.jsonl --documents documents.jsonl --metrics span_recall
  merilo run answers.jsonl --judge openai:qwen3 --base-url http://localhost:8000/v1
  merilo run answers.jsonl --judge openai:gpt-4.1-mini --plan
  merilo run answers.jsonl --judge openai:gpt-4.1-mini --batch --out runs/second
"""


@takes_options(Options)
def run(
    data: Annotated[str, typer.Argument(metavar="DATA", help="The file to evaluate.", show_default=False)],
    options: Options,
    plan: Annotated[bool, typer.Option("--plan", help="Estimate requests and cost only; nothing is sent.")] = False,
    max_failed: Annotated[
        str, typer.Option(metavar="RATE", help="Exit with 4 if a larger fraction of the outcomes failed.")
    ] = "1%",
    by: By = None,
    full: Annotated[bool, typer.Option("--full", help="Print all tables and notes.")] = False,
    markdown: Markdown = None,
    github: GitHub = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Evaluate and report."""
    from merilo.rendering.ci import check_reports

    check_reports(markdown=markdown, json=json, github=github)
    if plan:
        _plan(data, options, json=json)
        return
    largest = share(max_failed)
    new = options.out is None or not Path(options.out).exists()
    found = _evaluated(data, options, quiet=quiet)
    if new and found.usage.get("stopped"):
        _drop_worthless(found, json=json)
    if markdown is not None or github:
        _write_markdown(found, markdown, largest, github=github)
    if markdown != "-":
        _report(found, _usable(found, by or ()), json=json, full=full)
    _check(found, largest)


def _plan(data: str, options: Options, *, json: bool) -> None:
    """Print the estimate of the run, and the command that starts it."""
    from merilo.commands.blocking import run_blocking
    from merilo.commands.plan.run import print_plan, run_estimate
    from merilo.data.sanitize import command

    run = command(*(word for word in sys.argv[1:] if word not in _PLAN_ONLY)) if "--plan" in sys.argv else ""
    print_plan(run_blocking(run_estimate(data, options)), json=json, run=run)


def _evaluated(data: str, options: Options, *, quiet: bool) -> Run:
    from merilo.commands.blocking import run_blocking
    from merilo.commands.evaluate.distributed import run_anywhere
    from merilo.numbers import spent_so_far
    from merilo.rendering.page import tell
    from merilo.rendering.progress_line import progress_line
    from merilo.rendering.translation import translation

    watch = progress_line(quiet=quiet, language=options.language)
    say = translation(options.language).lines
    try:
        return run_blocking(run_anywhere(data, replace(options, progress=watch)))
    except Interrupted:
        watch.end()  # stopped at once, the run is still busy in its thread
        raise Interrupted(say(_resumable(f"Stopped. {spent_so_far(watch.usage)}".rstrip(), watch))) from None
    except LimitReached as error:
        tell(say(_resumable(str(error), watch)))
        raise typer.Exit(Exit.LIMIT_REACHED) from error
    except MeriloError as error:  # a key that is missing, a server that is gone: the run has begun
        if watch.run is None:
            raise
        raise MeriloError(say(_resumable(str(error), watch))) from error


def _drop_worthless(found: Run, *, json: bool) -> None:
    """Remove the new directory of a run that reached a limit before anything was answered, report, and exit."""
    from merilo.data.sanitize import json_text
    from merilo.rendering.page import tell, write
    from merilo.rendering.run_doc import RunView, run_record
    from merilo.rendering.translation import translation
    from merilo.runs.directory import discard

    record, stopped, language = run_record(RunView(found)), found.usage["stopped"], found.manifest.language
    if not discard(found.path):
        return
    if json:
        write(json_text({**record, "run": None}) + "\n")
    tell(translation(language).line(f"{stopped} No run is stored."))
    raise typer.Exit(Exit.LIMIT_REACHED)


def _resumable(message: str, watch: ProgressLine) -> str:
    if watch.run is None or not watch.run.exists():
        return message
    return f"{message}\nAll answers are kept. To resume: {again(watch.run)}"


def again(path: Path, *more: str) -> str:
    """The command that was typed, with this directory as its run, so that it resumes there."""
    return _command(sys.argv[1:], path, *more)


def raised(path: Path, limits: Mapping[str, float]) -> str:
    """The same with these limits, since those of the directory are used up."""
    new = {_LIMITS[name]: f"{value:.15g}" for name, value in limits.items()}
    words = list[str]()
    for word in sys.argv[1:]:
        name, _, value = word.partition("=")
        if name in new and value:
            words.append(f"{name}={new[name]}")
        else:
            words.append(new.get(words[-1] if words else "", word))
    return _command(words, path)


_RETRY = "--retry-failed"
_PLAN_ONLY = ("--plan", "--json", "--full", "--debug")
_LIMITS = {"max_cost_usd": "--max-cost", "max_requests": "--max-requests"}


def _command(words: list[str], path: Path, *more: str) -> str:
    from merilo.data.sanitize import command

    named = any(word == "--out" or word.startswith("--out=") for word in words)
    extra = [word for word in more if word not in words]
    return command(*words, *([] if named else ["--out", str(path)]), *extra)


def _usable(found: Run, by: Sequence[str]) -> list[str]:
    """Return the fields that make slices; report those that do not, since the run is there to be shown."""
    from merilo.rendering.page import tell
    from merilo.results.slices import groups_of

    usable: list[str] = []
    for field in by:
        try:
            groups_of(found, field)
        except UsageError as error:
            tell(str(error))
        else:
            usable.append(field)
    return usable


def _report(found: Run, by: Sequence[str], *, json: bool, full: bool) -> None:
    from merilo.commands.show.summary import record_of, run_page
    from merilo.data.sanitize import json_text
    from merilo.rendering.page import page_width, show, write

    if json:
        write(json_text(record_of(found, by=by)) + "\n")
    else:
        retry = "" if found.usage.get("stopped") or _RETRY in sys.argv else again(found.path, _RETRY)
        show(run_page(found, page_width(), full=full, again=retry, by=by))


def _write_markdown(found: Run, markdown: str | None, most: float, *, github: bool) -> None:
    """Write the Markdown report, and add it to GitHub's step summary with annotations on what went wrong."""
    from merilo.commands.show.summary import run_markdown
    from merilo.rendering.ci import Annotation, publish_on_github, write_markdown

    text = run_markdown(found)
    if markdown is not None:
        write_markdown(markdown, text)
    if github:
        stopped = found.usage.get("stopped")
        failed, total = _failed(found)
        annotations = [Annotation("error", "merilo run: stopped", str(stopped))] if stopped else []
        if failed:
            level = "error" if failed > most * total else "warning"
            annotations.append(Annotation(level, "merilo run", f"{failed:,} of {total:,} outcomes failed."))
        publish_on_github(text, annotations)


def _failed(found: Run) -> tuple[int, int]:
    """Return the number of failed outcomes and of all outcomes; a composite has none."""
    aggregates = [each for each in found.metrics.values() if not each.parts]
    failed = sum(each.failed for each in aggregates)
    return failed, sum(each.scored + each.undefined + each.failed for each in aggregates)


def _check(found: Run, most: float) -> None:
    """Exit with an error code if the run was stopped, or too many of its outcomes failed."""
    from merilo.numbers import spent_so_far
    from merilo.rendering.page import tell
    from merilo.rendering.translation import translation

    say, stopped = translation(found.manifest.language).line, found.usage.get("stopped")
    if found.usage.get("waiting") and stopped is not None:
        tell(say(f"{stopped} To collect the replies: {again(found.path)}"))
        raise typer.Exit(Exit.WAITING)
    if stopped is not None:
        limits = found.usage.get("raise_to")
        how = f"with a higher limit: {raised(found.path, limits)}" if limits else f": {again(found.path)}"
        tell(say(f"{stopped} All answers are kept. To resume{' ' * bool(limits)}{how}"))
        raise typer.Exit(Exit.LIMIT_REACHED)
    failed, total = _failed(found)
    if failed > most * total:
        message = f"{failed:,} of {total:,} outcomes failed ({failed / total:.1%}), more than --max-failed {most:.1%}."
        retry = "" if _RETRY in sys.argv else f"To ask them again: {again(found.path, _RETRY)}"
        tell(say(" ".join(filter(None, [message, spent_so_far(found.usage), retry]))))
        raise typer.Exit(Exit.TOO_MANY_FAILED)


COMMAND = Command(
    name="run",
    section=Section.MEASURE,
    summary="Evaluate a data set.",
    help=HELP,
    call=run,
    options="--metrics --judge --base-url --map --language --limit --sample --cluster --by --draws --max-cost "
    "--concurrency --out --plan --batch --full --markdown --json --quiet",
    examples=EXAMPLES,
)
