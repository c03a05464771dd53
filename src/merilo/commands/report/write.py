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
    from pathlib import Path


def write_report(runs: Sequence[str], out: Path, *, judge_only: bool = False) -> None:
    """Write the report on a run, or the comparison of each other run with the first, to a file.

    Raises the errors of `report_run` and `compare_runs`, and RunError if the file cannot be written.
    """
    if len(runs) == 1:
        write_page(out, run_page(report_run(runs[0], judge_only=judge_only)))
        return
    found = compare_runs(runs, ComparisonRequest(judge_only=judge_only, samples=0))
    write_page(out, comparison_page(found))
