"""Writes a report on one run, or a comparison of several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from merilo.commands.compare.run import ComparisonRequest, compare_runs
from merilo.commands.report.comparison_page import comparison_page
from merilo.commands.report.run import report_run
from merilo.commands.report.run_page import run_page
from merilo.rendering.html import write_page

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from pathlib import Path


def write_report(runs: Sequence[str], out: Path, *, judge_only: bool = False) -> None:
    """Write the page of `report_text` to a file. Raises its errors, and RunError if the file cannot be written."""
    write_page(out, report_text(runs, judge_only=judge_only))


def report_text(runs: Sequence[str | PathLike[str]], *, judge_only: bool = False) -> str:
    """Return the report on a run, or the comparison of each other run with the first, as one HTML page.

    Raises the errors of `report_run` and `compare_runs`.
    """
    if len(runs) == 1:
        return run_page(report_run(runs[0], judge_only=judge_only))
    return comparison_page(compare_runs(runs, ComparisonRequest(judge_only=judge_only, samples=0)))
