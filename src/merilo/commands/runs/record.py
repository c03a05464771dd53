"""A list of runs as one JSON object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from merilo.commands.runs.result import ListedRun, RunList


def runs_record(found: RunList) -> dict[str, Any]:  # Any: JSON
    """Return the list as a JSON-able object; a value that a run's files do not give is None."""
    return {"directory": str(found.directory), "found": found.found, "runs": [_record(each) for each in found.runs]}


def _record(run: ListedRun) -> dict[str, Any]:  # Any: JSON
    return {
        "run": str(run.path),
        "state": run.state.value,
        "reason": run.reason or None,
        "changed": run.changed.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "data": run.data,
        "judge": run.judge,
        "origin": run.origin,
        "done": run.done,
        "samples": run.samples,
        "cost_usd": run.cost_usd,
        "means": dict(run.means),
        "weak": sorted(run.weak & run.means.keys()),
    }
