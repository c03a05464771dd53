"""Notes of a comparison: samples that are not compared, too few human labels, and a judge that favours one run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.rendering.wording import count
from merilo.stats.correction import DECIDING_LABELLED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from merilo.commands.compare.result import Row, RunComparison
    from merilo.stats.compare import Counts

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
