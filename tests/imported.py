"""Runs of imported scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from merilo.commands.blocking import run_blocking
from merilo.commands.imports.run import ImportRequest, run_import

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from merilo.runs.run import Run


def import_scores(
    file: str | PathLike[str],
    *,
    scores: Sequence[str] | Mapping[str, tuple[float, float] | None] = (),
    **options: Any,
) -> Run:
    """Import the scores of a file; columns without a range have that of 0 to 1."""
    ranges = {**scores} if isinstance(scores, Mapping) else dict.fromkeys(scores)
    return run_blocking(run_import(file, ImportRequest(scores=ranges, **options)))
