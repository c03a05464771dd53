"""Sums over units (samples or clusters), the linearised standard error of their ratio, and distributions of numbers."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from math import isfinite, sqrt
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

_NEAR = 1e-12
_DIGITS = 12


def numbers(values: Iterable[float], what: str) -> NDArray[np.float64]:
    """Return an array of finite numbers. Raises ValueError otherwise; `what` names the numbers in the message."""
    import numpy as np

    found = np.asarray(values if isinstance(values, np.ndarray) else list(values), dtype=np.float64)
    if found.ndim != 1:
        raise ValueError(f"The {what} must be one list of numbers, got an array of {found.ndim} dimensions.")
    if not np.isfinite(found).all():
        place = int(np.argmin(np.isfinite(found)))
        raise ValueError(f"The {what} must be finite, got {found[place]} at index {place}; leave such units out.")
    return found


def check_span(values: NDArray[np.float64], span: tuple[float, float]) -> None:
    """Raise ValueError for scores outside a metric's range, and for a range without a lower and a higher end."""
    low, high = span
    if not low < high:
        raise ValueError(f"A range needs a lower and a higher end, got {low} and {high}.")
    # Scores are sums of floats and may exceed the range in the last bits.
    slack = 1e-9 * max(abs(end) for end in (low, high, 1.0) if isfinite(end))
    if len(values) and (values.min() < low - slack or values.max() > high + slack):
        raise ValueError(
            f"Scores must be in the metric's range, {low} to {high}; got {values.min()} to {values.max()}."
        )


def same_length(length: int, other: int, what: str) -> None:
    """Raise ValueError unless there is one value for each unit."""
    if other != length:
        raise ValueError(f"Each unit needs one of the {what}: there are {length} units and {other} {what}.")


def codes_of(clusters: Sequence[Hashable] | None, units: int) -> NDArray[np.int64] | None:
    """Return `coded` clusters, one for each of this many units; None without clusters. Raises ValueError."""
    if clusters is None:
        return None
    codes = coded(clusters)
    same_length(units, len(codes), "clusters")
    return codes


def coded(clusters: Sequence[Hashable]) -> NDArray[np.int64]:
    """Return the number of each unit's cluster, from 0 in the order of first appearance."""
    import numpy as np

    # numpy scalars hash slowly; Python's own numbers do not.
    if isinstance(clusters, np.ndarray):
        clusters = clusters.tolist()
    numbered: dict[Hashable, int] = {}
    return np.fromiter((numbered.setdefault(each, len(numbered)) for each in clusters), np.int64, len(clusters))


def summed(codes: NDArray[np.int64], parts: NDArray[np.float64], count: int = 0) -> NDArray[np.float64]:
    """Return the sum of the parts of each code; at least `count` sums."""
    import numpy as np

    return np.bincount(codes, weights=parts, minlength=count).astype(np.float64, copy=False)


@dataclass(frozen=True, slots=True)
class Spread:
    """A mean or ratio with everything that a limit by Student's t needs."""

    value: float
    error: float
    """The standard error."""
    freedom: float
    """Degrees of freedom, from 1 to the number of units less 1."""


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """A ratio of sums, as the contribution of each unit (sample or cluster) to both."""

    tops: NDArray[np.float64]
    bottoms: NDArray[np.float64]
    """The denominators; above 0."""

    @classmethod
    def of(
        cls, tops: NDArray[np.float64], bottoms: NDArray[np.float64], codes: NDArray[np.int64] | None = None
    ) -> Sums:
        """Return the sums of units; by cluster if `codes` number the clusters."""
        if codes is None:
            return cls(tops, bottoms)
        return cls(summed(codes, tops), summed(codes, bottoms))

    @property
    def count(self) -> int:
        """The number of units."""
        return len(self.tops)

    @property
    def value(self) -> float:
        """The ratio."""
        return float(self.tops.sum() / self.bottoms.sum())

    @property
    def equal(self) -> bool:
        """True if all units have one ratio, up to rounding."""
        ratios = self.tops / self.bottoms
        return float(ratios.max() - ratios.min()) <= _NEAR * max(1.0, float(abs(ratios).max()))

    @property
    def varied(self) -> int:
        """The number of units off the most common ratio."""
        import numpy as np

        counts = np.unique((self.tops / self.bottoms).round(_DIGITS), return_counts=True)[1]
        return self.count - int(counts.max())

    @property
    def linearised(self) -> Spread:
        """The ratio with its linearised standard error for independent units; needs two units.

        sqrt(G/(G - 1) · sum(e²)), e = (top - ratio · bottom) / sum(bottoms), whose sum is 0. With bottoms of 1 it is
        the usual standard error of a mean. Too small for few units with unequal bottoms: see `spread`. Source:
        Cochran, "Sampling Techniques" (3rd ed., 1977), 6.3.
        """
        parts = (self.tops - self.value * self.bottoms) / self.bottoms.sum()
        error = sqrt(self.count / (self.count - 1) * float((parts**2).sum()))
        return Spread(self.value, error, self.count - 1)

    @property
    def spread(self) -> Spread:
        """The ratio with its bias-reduced standard error and Satterthwaite's degrees of freedom; needs two units.

        CR2 for a regression on a constant, weighted by the bottoms, with clusters as units: each residual e of a unit
        is divided by sqrt(1 - h), where h is the unit's share of the bottoms. The degrees of freedom are those of the
        sum of squares if samples are independent and equally noisy per bottom. Equal bottoms give the usual error
        and G - 1. Linear in the number of units. Sources: Bell & McCaffrey, Survey Methodology 28 (2002); closed form
        for a mean: Imbens & Kolesár, Review of Economics and Statistics 98 (2016), section II.
        """
        shares = self.bottoms / self.bottoms.sum()
        parts = (self.tops - self.value * self.bottoms) / self.bottoms.sum()
        crossed = shares * shares / (1 - shares)
        squares = (shares * shares).sum() + crossed.sum() ** 2 - (crossed * crossed).sum()
        return Spread(self.value, sqrt(float((parts * parts / (1 - shares)).sum())), 1 / float(squares))

    @property
    def effective(self) -> float:
        """Kish's effective number of units, sum(bottoms)² / sum(bottoms²): the number of equal units with this
        weight.

        Source: Kish, "Survey Sampling" (1965), 11.7.
        """
        return float(self.bottoms.sum() ** 2 / (self.bottoms**2).sum())


# -- the distribution of numbers in a range, in bounded memory ----------------------------------------


GRID = 256
"""Maximum distinct values; more are spread over a grid with this number of steps over the range."""
_CHUNK = 1_024


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
