"""Ranges and directions of a run's metrics, as its manifest records them."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite
from typing import TYPE_CHECKING, Protocol, cast

from merilo.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.metrics.base import Metric


class Scaled(Protocol):
    """A manifest, as far as scales are concerned."""

    @property
    def scales(self) -> Mapping[str, Mapping[str, object]]:
        """Text of each metric → `Scale.record()`."""
        ...


@dataclass(frozen=True, slots=True)
class Scale:
    """The range of a metric, whose ends may be infinite, and its direction."""

    span: tuple[float, float]
    higher_is_better: bool = True

    def record(self) -> dict[str, object]:
        """Return the scale as a manifest records it; null is an infinite end."""
        ends = [end if isfinite(end) else None for end in self.span]
        return {"range": ends, "higher_is_better": self.higher_is_better}


def check_asked(metric: str, asked: float, span: tuple[float, float], *, is_drop: bool = False) -> None:
    """Raise UsageError for a limit outside the metric's range, or a drop of all of it: it decides nothing."""
    low, high = span
    if asked >= high - low if is_drop else not low <= asked <= high:
        what = "an allowed drop" if is_drop else "a limit"
        advice = (
            f"For {asked:g} %, write {asked / 100:g}." if 1 < asked <= _PERCENT else "Choose a value in this range."
        )
        raise UsageError(
            f"{metric} is always between {low:g} and {high:g}, so {what} of {asked:g} decides nothing. {advice}"
        )


_PERCENT = 100
NO_SCALE = Scale((-inf, inf))
"""The scale of a metric whose scale is not recorded, such as a composite."""


def scale_of(metric: Metric) -> Scale:
    """Return the scale that a metric declares."""
    return Scale((float(metric.range[0]), float(metric.range[1])), metric.higher_is_better)


def scales_of(metrics: Mapping[str, Metric]) -> dict[str, dict[str, object]]:
    """Return the scales of metrics by their text, as a manifest records them."""
    return {text: scale_of(metric).record() for text, metric in metrics.items()}


def recorded_scale(manifest: Scaled, metric: str) -> Scale:
    """Return the recorded scale of one of the run's metrics; NO_SCALE if it has none."""
    found = manifest.scales.get(metric)
    if found is None:
        return NO_SCALE
    low, high = cast("tuple[float | None, float | None]", found["range"])
    span = (-inf if low is None else low, inf if high is None else high)
    return Scale(span, bool(found["higher_is_better"]))
