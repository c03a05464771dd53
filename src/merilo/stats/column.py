"""One metric of one run as numbers: its scores, and bounds of the mean if missing outcomes had a score."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import isfinite
from typing import TYPE_CHECKING

from merilo.stats.sums import check_span, numbers

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray


class Missing(StrEnum):
    """Reasons why a sample has no number."""

    UNDEFINED = "undefined"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """The outcomes of one metric, one per sample, in the same order in all columns that are compared."""

    values: NDArray[np.float64]
    """The scores; 0 if there is none."""
    scored: NDArray[np.bool_]
    failed: NDArray[np.bool_]
    span: tuple[float, float]
    """The metric's range, whose ends may be infinite."""
    higher_is_better: bool = True

    @classmethod
    def of(
        cls, outcomes: Iterable[float | Missing], span: tuple[float, float], *, higher_is_better: bool = True
    ) -> Column:
        """Return a column of scores in `span` and `Missing` for the rest. Raises ValueError for other numbers."""
        import numpy as np

        found = list(outcomes)
        scored = np.fromiter((not isinstance(each, Missing) for each in found), np.bool_, len(found))
        failed = np.fromiter((each is Missing.FAILED for each in found), np.bool_, len(found))
        values = numbers([0.0 if isinstance(each, Missing) else each for each in found], "scores")
        check_span(values[scored], span)
        return cls(values, scored, failed, span, higher_is_better)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def undefined(self) -> NDArray[np.bool_]:
        """True for each sample for which the metric is Undefined."""
        return ~(self.scored | self.failed)

    @property
    def worst(self) -> float:
        """The worse end of the range."""
        return self.span[0] if self.higher_is_better else self.span[1]

    @property
    def best(self) -> float:
        """The better end of the range."""
        return self.span[1] if self.higher_is_better else self.span[0]

    def filled(self, value: float, places: NDArray[np.bool_]) -> Column:
        """Return the same column with a score of `value` for these samples."""
        values, scored, failed = self.values.copy(), self.scored | places, self.failed & ~places
        values[places] = value
        return Column(values, scored, failed, self.span, self.higher_is_better)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of the mean over samples (low, high); None at an end at which the range is infinite."""

    failed: tuple[float | None, float | None] | None
    """With each Failed outcome at the ends of the range. None if nothing was scored or failed."""
    undefined: tuple[float | None, float | None] | None
    """With the Undefined ones too. None if there is no outcome."""


def bounds(mean: float | None, span: tuple[float, float], *, scored: int, failed: int, undefined: int) -> Bounds:
    """Return both bounds, from the mean over `scored` samples (None if there are none) and the counts."""
    return Bounds(_bounded(mean, span, scored, failed), _bounded(mean, span, scored, failed + undefined))


def _bounded(
    mean: float | None, span: tuple[float, float], scored: int, missing: int
) -> tuple[float | None, float | None] | None:
    if not scored + missing:
        return None
    part = 0.0 if mean is None else mean * (scored / (scored + missing))
    ends = [part + end * (missing / (scored + missing)) if missing else part for end in span]
    return (ends[0] if isfinite(ends[0]) else None, ends[1] if isfinite(ends[1]) else None)
