"""The wording of samples that are not compared because another run lacks them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from merilo.rendering.wording import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.commands.compare.result import RunComparison


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
