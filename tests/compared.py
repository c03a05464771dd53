"""A comparison that draws itself, as `merilo.compare` returns it."""

from typing import Any

from merilo.commands.compare import run
from merilo.shown import RunComparison


def compare_runs(*arguments: Any) -> RunComparison:
    """Compare runs with every option of a request."""
    return RunComparison.of(run.compare_runs(*arguments))
