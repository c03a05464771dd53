"""`merilo compare`: show the differences between runs, and the samples that changed most."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from merilo.commands.command import Command, Section
from merilo.commands.compare.settings import SHOWN
from merilo.commands.flags import AcrossData, Cluster, Debug, GitHub, Json, JudgeOnly, metric_texts

if TYPE_CHECKING:
    from merilo.commands.compare.result import RunComparison

HELP = """Compare runs of the same questions: differences, intervals, and the samples that changed most.

Every run is compared with the first one, over the samples that all runs share: same id and equal question. Runs whose
judge, rubrics or metric versions differ are rejected, with a list of the differences.
"""
EXAMPLES = """\b
Examples:
  merilo compare runs/old runs/new
  merilo compare runs/old runs/new --primary faithfulness --html comparison.html
  merilo compare runs/old runs/new --markdown - >> comment.md
"""
_SHOWN = 5


def compare(
    runs: Annotated[
        list[str] | None, typer.Argument(metavar="RUN", help="Directories of two runs or more.", show_default=False)
    ] = None,
    metrics: Annotated[
        list[str] | None, typer.Option(metavar="M,...", help="Compare only these metrics. Repeatable.")
    ] = None,
    primary: Annotated[
        list[str] | None,
        typer.Option(metavar="M,...", help="Draw conclusions for these metrics only (Holm-corrected). [default: all]"),
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="M", help="Show the samples that changed most by this metric.")
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help=f"Number of samples to show; --html has all. [default: {_SHOWN}; {SHOWN} with --json]",
            show_default=False,
        ),
    ] = None,
    cluster: Cluster = None,
    undefined: Annotated[
        str, typer.Option(metavar="drop|worst", help="Undefined in one run only: drop the pair, or count it as worst.")
    ] = "drop",
    level: Annotated[float, typer.Option(metavar="L", help="Confidence level of intervals and conclusions.")] = 0.95,
    across_judges: Annotated[
        bool, typer.Option("--across-judges", help="Compare even if judges, rubrics or versions differ.")
    ] = False,
    across_data: AcrossData = False,
    judge_only: JudgeOnly = False,
    html: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the report of the comparison as one HTML file.")
    ] = None,
    markdown: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write a comment for a pull request; - for standard output.")
    ] = None,
    github: GitHub = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare runs."""
    del debug  # main reads it
    from merilo.rendering.ci import check_reports

    check_reports(markdown=markdown, json=json, github=github)
    from merilo.commands.compare.run import ComparisonRequest, compare_runs

    found = compare_runs(
        runs or [],
        ComparisonRequest(
            metrics=metric_texts(metrics) if metrics else None,
            primary=metric_texts(primary) if primary else None,
            by=by,
            cluster=cluster,
            undefined=undefined,
            level=level,
            across_judges=across_judges,
            across_data=across_data,
            judge_only=judge_only,
            samples=SHOWN if samples is None else samples,
        ),
    )
    _write(found, html, markdown, samples, github=github)
    if markdown != "-":
        _show(found, [path for path in (html, markdown) if path], samples, html=html is not None, json=json)


def _write(found: RunComparison, html: str | None, markdown: str | None, samples: int | None, *, github: bool) -> None:
    from merilo.rendering.ci import publish_on_github, write_markdown
    from merilo.rendering.html import write_page

    if html is not None:
        from merilo.commands.report.comparison_page import comparison_page

        write_page(Path(html), comparison_page(found))
    if markdown is not None or github:
        from merilo.commands.compare.markdown import comparison_annotations, comparison_markdown

        text = comparison_markdown(found, samples=_SHOWN if samples is None else samples)
        if markdown is not None:
            write_markdown(markdown, text)
        if github:
            publish_on_github(text, comparison_annotations(found))


def _show(found: RunComparison, files: list[str], samples: int | None, *, html: bool, json: bool) -> None:
    from merilo.commands.compare.record import comparison_record
    from merilo.commands.compare.text import comparison_page
    from merilo.rendering.sanitize import json_text
    from merilo.rendering.terminal import page_width, show, write

    if json:
        write(json_text(comparison_record(found)) + "\n")
        return
    shown = _SHOWN if samples is None else samples
    show(comparison_page(found, page_width(), samples=shown, files=files, html=html))


COMMAND = Command(
    name="compare",
    section=Section.DECIDE,
    summary="Compare runs of the same questions.",
    help=HELP,
    call=compare,
    options="--metrics --primary --by --cluster --undefined --across-judges --across-data --full --markdown "
    "--github --json",
    examples=EXAMPLES,
)
