"""`merilo compare`: show the differences between runs, and the samples that changed most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from merilo.commands.command import By, Command, Json, Section, takes_options
from merilo.commands.compare.options import ComparisonRequest

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


@takes_options(ComparisonRequest)
def compare(
    options: ComparisonRequest,
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="BASE RUN...", help="Directories of two runs or more.", show_default=False),
    ] = None,
    by: By = None,
    markdown: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write a comment for a pull request; - for standard output.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="All metrics, statistics, notes and changed samples.")] = False,
    json: Json = False,
) -> None:
    """Compare runs."""
    from merilo.rendering.ci import check_reports

    check_reports(markdown=markdown, json=json)
    from merilo.commands.compare.run import compare_runs
    from merilo.commands.verify.recomputed import spot_checked

    found = compare_runs(spot_checked(runs or []), options)
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
