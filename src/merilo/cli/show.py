"""`merilo show`: look at a run that is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from merilo.cli.options import Debug, Json, given
from merilo.errors import UsageError

if TYPE_CHECKING:
    from merilo.reports.page import Page

HELP = """Show a run: its summary, its worst samples, or one sample with all its evidence.

RUN is the directory that merilo run printed.
"""
EXAMPLES = """\b
Examples:
  merilo show runs/first
  merilo show runs/first --worst 5 --metric faithfulness
  merilo show runs/first --sample 17
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
        str | None, typer.Option(metavar="M", help="The metric to list by; list its 10 worst without --worst.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="With --sample: cut no text short.")] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Show a part of a run; the help stands in HELP."""
    del debug  # read in main, where errors are told
    if sample is not None and (worst is not None or metric is not None):
        raise UsageError("Give either --sample or --worst with --metric, not both.")
    from merilo.reports.clean import json_text
    from merilo.reports.terminal import show as show_page
    from merilo.reports.terminal import write

    if sample is not None:
        shown = _sample(run, sample, json=json, full=full)
    elif worst is not None or metric is not None:
        shown = _worst(run, worst or _WORST, metric, json=json)
    else:
        shown = _overview(run, json=json)
    if isinstance(shown, dict):
        write(json_text(shown) + "\n")
    else:
        show_page(shown)


def _sample(path: str, sample: str, *, json: bool, full: bool) -> Page | dict[str, Any]:  # Any: JSON
    from merilo.reports.case import Case, case_record
    from merilo.reports.explain import case_page
    from merilo.reports.terminal import page_width
    from merilo.runs.run import Run

    run = Run.open(path)
    case = Case.of(run, sample)
    return case_record(run, case) if json else case_page(case, page_width(), full=full)


def _worst(path: str, most: int, metric: str | None, *, json: bool) -> Page | dict[str, Any]:  # Any: JSON
    from merilo.reports import worst
    from merilo.reports.terminal import page_width
    from merilo.runs.run import Run

    run = Run.open(path)
    found = worst.worst(run, worst.metric_of(run, metric), most)
    return worst.worst_record(run, found) if json else worst.worst_page(run, found, page_width())


def _overview(path: str, *, json: bool) -> Page | dict[str, Any]:  # Any: JSON
    from merilo.reports.overview import overview_page, overview_record
    from merilo.reports.terminal import page_width
    from merilo.runs.run import Run

    run = Run.open(path)
    return overview_record(run) if json else overview_page(run, page_width())
