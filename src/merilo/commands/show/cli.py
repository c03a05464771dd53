"""`merilo show`: show a stored run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from merilo.commands.command import Command, Section
from merilo.commands.flags import Cluster, GitHub, Json, JudgeOnly, Markdown, given
from merilo.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.rendering.page import Page
    from merilo.runs.run import Run
    from merilo.stats.correction import Correction

HELP = """Show a run: its summary, its worst samples, or one sample with all its evidence.

RUN is the directory that merilo run printed.
"""
EXAMPLES = """\b
Examples:
  merilo show runs/first
  merilo show runs/first --worst 5 --metric faithfulness
  merilo show runs/first --sample 17
  merilo show runs/first --html first.html
  merilo show runs/first --cluster document
"""
_WORST = 10


def show(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="Directory of the run.", callback=given, show_default=False)
    ],
    sample: Annotated[
        str | None, typer.Option(metavar="ID", help="Explain this sample: verdicts, reasons, replies.")
    ] = None,
    worst: Annotated[int | None, typer.Option(metavar="N", min=1, help="List the N worst samples of --metric.")] = None,
    metric: Annotated[
        str | None, typer.Option(metavar="M", help=f"Metric for --worst; alone, lists its {_WORST} worst samples.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="With --sample: do not truncate texts.")] = False,
    html: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the report of merilo report RUN as one HTML file.")
    ] = None,
    cluster: Cluster = None,
    undefined: Annotated[
        str | None,
        typer.Option(
            metavar="drop|worst", help="Leave undefined outcomes out, or count them as worst. [default: drop]"
        ),
    ] = None,
    level: Annotated[float | None, typer.Option(metavar="L", help="Confidence level of the intervals.")] = None,
    language: Annotated[
        str | None, typer.Option(metavar="CODE", help="Language of the screen, en or ru. [default: that of the run]")
    ] = None,
    judge_only: JudgeOnly = False,
    markdown: Markdown = None,
    github: GitHub = False,
    json: Json = False,
) -> None:
    """Show a run or a part of it."""
    from merilo.rendering.ci import check_reports

    reports = markdown is not None or github
    again = any(each is not None for each in (cluster, undefined, level))
    check_reports(markdown=markdown, json=json, github=github)
    _check_parts(sample, again=again, listed=worst is not None or metric is not None, html=html, reports=reports)
    from merilo.rendering.sanitize import json_text
    from merilo.rendering.terminal import show as show_page
    from merilo.rendering.terminal import write

    if sample is not None:
        shown = _sample(run, sample, language, json=json, full=full)
    elif worst is not None or metric is not None:
        shown = _worst(run, worst or _WORST, metric, language, json=json)
    elif again:
        shown = _summarised(run, cluster, undefined, level, language, json=json, judge_only=judge_only)
    else:
        shown = _overview(run, language, json=json, judge_only=judge_only)
    if html is not None:
        _write_html(run, html, judge_only=judge_only)
    if reports:
        _write_markdown(run, markdown, judge_only=judge_only, github=github)
    if markdown == "-":
        return
    if isinstance(shown, dict):
        write(json_text(shown) + "\n")
    else:
        if html is not None:
            shown.line(shown.translation.line(f"  saved in {html}"))
        show_page(shown)


def _sample(
    path: str, sample: str, language: str | None, *, json: bool, full: bool
) -> Page | dict[str, Any]:  # Any: JSON
    from merilo.rendering.explain import case_page
    from merilo.rendering.terminal import page_width
    from merilo.rendering.weak import WeakMarks
    from merilo.results.sample_detail import SampleDetail, case_record
    from merilo.runs.run import Run

    run = Run.open(path)
    case = SampleDetail.of(run, sample)
    return (
        case_record(run, case)
        if json
        else case_page(
            case,
            page_width(),
            full=full,
            language=language or run.manifest.language,
            marks=WeakMarks.of(run.manifest),
        )
    )


def _worst(
    path: str, most: int, metric: str | None, language: str | None, *, json: bool
) -> Page | dict[str, Any]:  # Any: JSON
    from merilo.commands.show import worst
    from merilo.rendering.terminal import page_width
    from merilo.runs.run import Run

    run = Run.open(path)
    found = worst.worst(run, worst.metric_of(run, metric), most)
    return worst.worst_record(run, found) if json else worst.worst_page(run, found, page_width(), language)


def _check_parts(sample: str | None, *, again: bool, listed: bool, html: str | None, reports: bool) -> None:
    """Raise UsageError for options that show different parts of the run."""
    if sample is not None and listed:
        raise UsageError("--sample cannot be combined with --worst or --metric.")
    if sample is not None and html is not None:
        raise UsageError("--html writes the whole run; it cannot be combined with --sample.")
    if again and (sample is not None or listed or html is not None):
        raise UsageError(
            "--cluster, --undefined and --level apply to the summary only. Do not combine them with --sample, --worst, "
            "--metric or --html."
        )
    if reports and (sample is not None or again):
        raise UsageError(
            "--markdown and --github write the summary of the stored run. Do not combine them with --sample, "
            "--cluster, --undefined or --level."
        )


def _write_markdown(path: str, markdown: str | None, *, judge_only: bool, github: bool) -> None:
    from merilo.rendering.ci import publish_on_github, write_markdown
    from merilo.rendering.run_markdown import run_markdown
    from merilo.runs.run import Run

    run = Run.open(path)
    text = run_markdown(run, _corrections(run, judge_only=judge_only))
    if markdown is not None:
        write_markdown(markdown, text)
    if github:
        publish_on_github(text, [])


def _write_html(path: str, html: str, *, judge_only: bool) -> None:
    from pathlib import Path

    from merilo.commands.report.write import write_report

    write_report([path], Path(html), judge_only=judge_only)


def _corrections(run: Run, *, judge_only: bool) -> Mapping[str, Correction]:
    """Return the corrections by the labels attached to the run; none with `judge_only`."""
    from merilo.commands.calibrate.attached_labels import corrected_of

    return {} if judge_only else corrected_of(run)


def _overview(path: str, language: str | None, *, json: bool, judge_only: bool) -> Page | dict[str, Any]:  # Any: JSON
    from merilo.rendering.overview import overview_page, overview_record
    from merilo.rendering.terminal import page_width
    from merilo.runs.run import Run

    run = Run.open(path)
    corrections = _corrections(run, judge_only=judge_only)
    if json:
        return overview_record(run, corrections=corrections)
    return overview_page(run, page_width(), corrections=corrections, language=language)


def _summarised(
    path: str,
    cluster: str | None,
    undefined: str | None,
    level: float | None,
    language: str | None,
    *,
    json: bool,
    judge_only: bool,
) -> Page | dict[str, Any]:  # Any: JSON
    from merilo.commands.calibrate.attached_labels import corrected_of
    from merilo.commands.show.run import summarise
    from merilo.rendering.overview import overview_page, overview_record
    from merilo.rendering.terminal import page_width
    from merilo.runs.run import Run
    from merilo.stats.intervals import LEVEL

    run = Run.open(path)
    policy = "drop" if undefined is None else undefined
    level = LEVEL if level is None else level
    found = summarise(run, cluster=cluster, level=level, undefined=policy)
    corrections: Mapping[str, Correction] = {}
    if policy == "drop" and not judge_only:  # labels correct means over scored samples alone
        corrections = corrected_of(run, cluster=cluster, level=level)
    if json:
        return overview_record(run, metrics=found, corrections=corrections)
    return overview_page(run, page_width(), metrics=found, cluster=cluster, corrections=corrections, language=language)


COMMAND = Command(
    name="show",
    section=Section.LOOK,
    summary="Show a run or one of its samples.",
    help=HELP,
    call=show,
    options="--sample --worst --metric --by --people --full --language --markdown --json",
    examples=EXAMPLES,
)
