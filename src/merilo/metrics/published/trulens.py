"""trulens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from merilo.metrics.base import Metric

METRICS: Final[tuple[type[Metric], ...]] = ()
"""The metrics of this module, in the order in which they are shown."""
