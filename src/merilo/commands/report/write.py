"""Writes a report on one run, or a comparison of several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from merilo.commands.report.run import report_run
from merilo.commands.report.run_page import run_page
from merilo.rendering.html import write_page

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def write_report(runs: Sequence[str], out: Path, *, judge_only: bool = False) -> None:
    """Write the report on these runs to a file. Raises RunError if a run cannot be read or the file not be written."""
    write_page(out, run_page(report_run(runs[0], judge_only=judge_only)))
