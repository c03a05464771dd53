"""`merilo compare`: show the differences between runs, and the samples that changed most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from merilo.commands.command import AcrossData, By, Cluster, Command, Json, JudgeOnly, Section
from merilo.commands.option import metric_texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.commands.compare.result import RunComparison

HELP = """Compare runs of the same questions: better, worse, no difference shown, no change, or cannot tell.

Two runs: the run minus the base, over the questions that both share (same id and equal content). Three runs or more:
one table against the best, with the runs that may be the best. Human labels of the pair correct a difference (merilo
label BASE RUN). The embedded judge alone never names a better run. Runs whose judge, rubrics or metric versions differ
are rejected.
"""
EXAMPLES = """\b
Examples:
  merilo compare runs/old runs/new
  merilo compare runs/old runs/new --primary faithfulness
  merilo compare runs/k2 runs/k4 runs/k8 --within 0.03
  merilo compare runs/old runs/new --markdown - >> comment.md
"""


def compare(
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="BASE RUN...", help="Directories of two runs or more.", show_default=False),
    ] = None,
    metrics: Annotated[
        list[str] | None, typer.Option(metavar="M,...", help="Compare only these metrics. Repeatable.")
    ] = None,
    primary: Annotated[
        list[str] | None,
        typer.Option(metavar="M,...", help="Draw conclusions for these metrics only (Holm-corrected). [default: all]"),
    ] = None,
    within: Annotated[
        float | None,
        typer.Option(metavar="D", min=0.0, help="Name the cheapest run that is at most D worse than every other one."),
    ] = None,
    against: Annotated[
        str | None, typer.Option(metavar="RUN", help="With --within: at most D worse than this run.")
    ] = None,
    prefer: Annotated[
        str | None,
        typer.Option(metavar="MEASURE", help="Choose among equally good runs by cost, latency or another measure."),
    ] = None,
    by: By = None,
    cluster: Cluster = None,
    undefined: Annotated[
        str, typer.Option(metavar="drop|worst", help="Undefined in one run only: drop the pair, or count it as worst.")
    ] = "drop",
    across_judges: Annotated[
        bool, typer.Option("--across-judges", help="Compare even if judges, rubrics or versions differ.")
    ] = False,
    across_data: AcrossData = False,
    judge_only: JudgeOnly = False,
    markdown: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write a comment for a pull request; - for standard output.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="All metrics, statistics, notes and changed samples.")] = False,
    json: Json = False,
) -> None:
    """Compare runs."""
    from merilo.rendering.ci import check_reports

    check_reports(markdown=markdown, json=json)
    from merilo.commands.compare.run import ComparisonRequest, compare_runs
    from merilo.commands.verify.recomputed import spot_checked

    found = compare_runs(
        spot_checked(runs or []),
        ComparisonRequest(
            metrics=metric_texts(metrics) if metrics else None,
            primary=metric_texts(primary) if primary else None,
            cluster=cluster,
            undefined=undefined,
            across_judges=across_judges,
            across_data=across_data,
            judge_only=judge_only,
            within=within,
            against=against,
            prefer=prefer,
        ),
    )
    if markdown is not None:
        from merilo.commands.compare.text import comparison_markdown
        from merilo.rendering.ci import write_markdown

        write_markdown(markdown, comparison_markdown(found))
    if markdown != "-":
        _show(found, by or (), full=full, json=json)


def _show(found: RunComparison, by: Sequence[str], *, full: bool, json: bool) -> None:
    from merilo.commands.calibrate.slices import slices_of
    from merilo.commands.compare.record import comparison_record
    from merilo.commands.compare.text import comparison_page
    from merilo.rendering.page import page_width, print_result
    from merilo.rendering.slices import add_slices

    slices = [(each, side.name, slices_of(side.run, each)) for each in by for side in found.sides]
    if json:
        record = comparison_record(found)
        for field, name, each in slices:
            record.setdefault("slices", {}).setdefault(field, {})[name] = each.record()
        print_result(record)
        return
    page = comparison_page(found, page_width(), full=full)
    for _, name, each in slices:
        page.heading(name)
        add_slices(page, each)
    print_result(page)


COMMAND = Command(
    name="compare",
    section=Section.DECIDE,
    summary="Compare runs of the same questions.",
    help=HELP,
    call=compare,
    options="--metrics --primary --within --against --prefer --by --cluster --full --markdown --json",
    examples=EXAMPLES,
)
