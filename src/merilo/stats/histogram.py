"""The distribution of numbers in a range, from a column or while they stream, in bounded memory."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from merilo.stats.sums import summed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

GRID = 256
"""Maximum distinct values; more are spread over a grid with this number of steps over the range."""
_CHUNK = 1_024
_NEAR = 1e-12


class Points(NamedTuple):
    """Distinct values, ascending, and the weight of each."""

    values: Numbers
    weights: Numbers

    @property
    def equal(self) -> bool:
        """True if there is one value, up to rounding."""
        lowest, highest = float(self.values[0]), float(self.values[-1])
        return highest - lowest <= _NEAR * max(1.0, abs(lowest), abs(highest))

    @property
    def variance(self) -> float:
        """The variance of the values, without a correction for the mean."""
        shares = self.weights / self.weights.sum()
        return float(shares @ (self.values - shares @ self.values) ** 2)


@dataclass(slots=True, eq=False)
class Histogram:
    """The weights of numbers by value; exact for up to `GRID` distinct values.

    From more on, each number is split between its two neighbours on a grid: its mean stays, and the variance of the
    numbers grows by at most (range / 512)². In an infinite range only the lowest and the highest value stay exact.
    """

    span: tuple[float, float]
    _points: Points | None = None
    _on_grid: bool = False
    _values: array[float] = field(default_factory=lambda: array("d"))
    """Numbers that `_points` does not have yet, and their weights."""
    _weights: array[float] = field(default_factory=lambda: array("d"))

    @classmethod
    def of(cls, values: Numbers, span: tuple[float, float], weights: Numbers | None = None) -> Histogram:
        """Return the histogram of at least one number; `weights`: by default 1 each."""
        found = cls(span)
        found._merge(values, weights)
        return found

    def add(self, value: float, weight: float = 1.0) -> None:
        """Add one number of the range."""
        self._values.append(value)
        self._weights.append(weight)
        if len(self._values) == _CHUNK:
            self.points()

    def points(self) -> Points:
        """Return the distribution of all numbers; at least one."""
        import numpy as np

        if self._values:
            self._merge(np.array(self._values), np.array(self._weights))
            self._values, self._weights = array("d"), array("d")
        if self._points is None:
            raise ValueError("A histogram without a number has no points.")
        return self._points

    def _merge(self, values: Numbers, weights: Numbers | None) -> None:
        import numpy as np

        weights = np.ones(len(values)) if weights is None else weights
        if self._points is not None:
            values, weights = (np.concatenate(both) for both in zip(self._points, (values, weights), strict=True))
        points, places = np.unique(values, return_inverse=True)
        found = Points(points, summed(places, weights))
        self._on_grid = self._on_grid or len(points) > GRID
        self._points = _reduced(found, self.span) if self._on_grid else found


def _reduced(points: Points, span: tuple[float, float]) -> Points:
    import numpy as np

    values, weights = points
    low, high = span
    if not (isfinite(low) and isfinite(high)):
        if len(values) <= GRID:
            return points
        inner = np.average(values[1:-1], weights=weights[1:-1])
        return Points(
            np.array([values[0], inner, values[-1]]), np.array([weights[0], weights[1:-1].sum(), weights[-1]])
        )
    places = np.clip((values - low) / (high - low), 0.0, 1.0) * GRID
    left = np.minimum(places.astype(np.int64), GRID - 1)
    right = (places - left) * weights
    found = summed(left, weights - right, GRID + 1) + summed(left + 1, right, GRID + 1)
    positive = found > 0
    return Points(np.linspace(low, high, GRID + 1)[positive], found[positive])
