"""The wording of samples that are not compared because another run lacks them or their scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from merilo.rendering.wording import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.commands.compare.result import RunComparison
    from merilo.stats.compare import Counts


def absences(found: RunComparison) -> list[tuple[str, str]]:
    """Return, by run, the samples that are not compared because another run lacks them."""
    return [
        (side.name, f"{count(side.absences, 'sample')} that another run lacks: {_examples(side.absent, side.absences)}")
        for side in found.sides
        if side.absences
    ]


def _examples(first: Sequence[str], amount: int) -> str:
    """Return the first ids of `amount` and the number of the others."""
    more = amount - len(first)
    return ", ".join(first) + (f" and {more:,} more" if more > 0 else "")


def advice(counts: Counts) -> str:
    """Return what to do about samples with a score in one run only, by whether they failed or are undefined."""
    failed = counts.first_failed + counts.second_failed
    if not failed:
        return "Inspect them, or use --undefined worst"
    if failed == counts.left_out:
        return "Inspect them, or retry failed ones"
    return "Inspect them, retry failed ones, or use --undefined worst"
