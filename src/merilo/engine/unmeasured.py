"""A metric that a run cannot measure: undefined for every sample, with the reason, and without a question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from merilo.metrics.base import Undefined

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan
    from merilo.metrics.base import Metric


@dataclass(frozen=True)
class Unmeasured:
    """A metric without a value in a run; its declarations are the metric's own."""

    metric: Metric
    reason: str

    def __getattr__(self, name: str) -> Any:  # Any: the declarations of the metric
        return getattr(self.metric, name)

    def max_questions(self, sample: Sample) -> int:
        """Return 0: nothing is asked."""
        del sample
        return 0

    def plan(self, sample: Sample) -> Plan[Undefined]:
        """Return the reason for each sample."""
        del sample
        yield from ()
        return Undefined(self.reason)


def unmeasured(metrics: Mapping[str, Metric], reasons: Mapping[str, str]) -> dict[str, Metric]:
    """Return the metrics, those with a reason as undefined for every sample."""
    return {
        # a Protocol with class variables cannot describe a wrapper that forwards them
        text: cast("Metric", Unmeasured(metric, reasons[text])) if text in reasons else metric
        for text, metric in metrics.items()
    }


def reasons_of(metrics: Mapping[str, Metric]) -> dict[str, str]:
    """Return the reason of each metric that the run cannot measure."""
    return {text: metric.reason for text, metric in metrics.items() if isinstance(metric, Unmeasured)}
