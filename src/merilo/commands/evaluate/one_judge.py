"""An evaluation in which one judge answers chosen questions, as `merilo judge check` and `merilo questions` run it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from merilo.commands.evaluate.options import Options
from merilo.commands.exit_codes import Exit
from merilo.commands.option import flags_of
from merilo.errors import Interrupted

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from merilo.judges.base import Judge
    from merilo.runs.run import Run

T = TypeVar("T")

ABOUT_DATA: Final = (
    "metrics",
    "judge.prompts",
    "mapping",
    "language",
    "cluster",
    "limit",
    "draws",
    *(name for name in flags_of(Options) if name.startswith("reading.")),
    "limits.runner",
    "limits.workers",
    "storage.batch",
    "storage.batch_files",
)
"""Options of an evaluation that say nothing about one judge."""
_MAX_FAILED_RATE: Final = 0.01
_USAGE: Final = ("requests", "cached", "input_tokens", "output_tokens", "cost_usd", "estimated_usd", "seconds")


def for_one_judge(options: Options, judge: Judge) -> Options:
    """Return the options of an evaluation by this judge, without those that apply to another judge or to data."""
    return replace(options, judge=judge, draws=1, mapping=None, limit=None, language=None)


def usage_of(run: Run) -> dict[str, Any]:  # Any: numbers and nulls
    """Return requests, tokens, cost and seconds of a run."""
    return {name: run.usage.get(name) for name in _USAGE}


def until_done(work: Coroutine[Any, Any, T]) -> T:  # Any: what a coroutine yields to its loop
    """Run an evaluation and return its result. Raises Interrupted after Ctrl-C."""
    import asyncio

    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        message = "Stopped. Repeat the command to resume; answers in --out and the cache are reused."
        raise Interrupted(message) from None


def check_whole(
    stopped: str | None, failed: int, asked: int, what: str, *, retry: str = "use --out and --retry-failed"
) -> None:
    """Exit with an error code if a limit was reached, which `stopped` says, or more than 1 % failed.

    `what`: the things asked about, in the plural. `retry`: what to do about those that failed.
    """
    import typer

    from merilo.rendering.page import tell

    if stopped is not None:
        tell(f"{stopped} Answers in --out and in the verdict cache are reused at no cost.")
        raise typer.Exit(Exit.LIMIT_REACHED)
    if failed > _MAX_FAILED_RATE * asked:
        tell(f"{failed:,} of {asked:,} {what} failed (more than 1%). To retry them, {retry}.")
        raise typer.Exit(Exit.TOO_MANY_FAILED)
