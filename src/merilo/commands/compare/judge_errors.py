"""Notes on human labels of a pair: too few to correct, and a judge that is kinder to one of the runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.rendering.wording import count
from merilo.stats.correction import DECIDING_LABELLED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from merilo.commands.compare.result import Row

_TWO_DIGITS: Final = 0.005
NEEDED: Final = f"{DECIDING_LABELLED} are needed to correct"


def kinder_to(row: Row) -> int | None:
    """Return the index of the run that the judge favours; None if the interval of the error difference includes 0."""
    if row.errors is None or not row.errors.sign:
        return None
    return 0 if (row.errors.sign > 0) == row.higher_is_better else row.other


def kinder_notes(rows: Iterable[Row], names: Sequence[str]) -> tuple[str, ...]:
    """Return one sentence for each metric and pair of runs on which the judge's error differs."""
    return tuple(_sentence(row, favoured, names) for row in rows if (favoured := kinder_to(row)) is not None)


def _sentence(row: Row, favoured: int, names: Sequence[str]) -> str:
    errors = row.errors
    if errors is None or errors.difference is None or errors.interval.ends is None:
        raise ValueError("Only an interval that excludes 0 names a run.")
    low, high = sorted(abs(each) for each in errors.interval.ends)
    against = names[row.other if favoured == 0 else 0]
    digits = 2 if low >= _TWO_DIGITS else 3  # an interval that excludes 0 must not be shown with an end of 0.00
    size = "higher" if row.higher_is_better else "lower"
    return (
        f"The judge is kinder to {names[favoured]}: its mean error (judge minus human) in {row.metric} is {size} there "
        f"than for {against} by {abs(errors.difference):.{digits}f} ({low:.{digits}f} to {high:.{digits}f}), "
        f"{count(errors.labelled, 'labelled pair')}."
    )


def too_few_labels(row: Row) -> str:
    """Return the number of labelled pairs and how many are needed; empty without labels or if they correct."""
    found = row.comparison
    if found.correction is None or found.by_judge is not None:
        return ""
    return f"{count(found.correction.labelled, 'labelled pair')}; {NEEDED}"
