"""Which metrics a run computes: those asked for by name, else every native one that data and judges allow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from merilo.errors import UsageError
from merilo.metrics.registry import metric_text, native_metrics, resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from merilo.engine.answers import Roles
    from merilo.metrics.base import Metric
    from merilo.runs.intake import Intake


@dataclass(frozen=True, slots=True)
class Selection:
    """The metrics of a run by their text, in order, and those left out with the reason."""

    metrics: Mapping[str, Metric]
    left_out: Mapping[str, str]


def select(asked: Sequence[str | Metric] | None, intake: Intake, roles: Roles) -> Selection:
    """The metrics to compute. Raises UsageError when one asked for cannot be, or when none is left."""
    named = asked is not None
    metrics: dict[str, Metric] = {}
    left_out: dict[str, str] = {}
    for wanted in native_metrics() if asked is None else asked:
        metric = resolve(wanted, intake.in_every) if isinstance(wanted, str) else wanted
        metric = _for_judges(metric, roles)
        text = metric_text(metric)
        reason = _obstacle(metric, intake, roles)
        if reason is None:
            metrics[text] = metric
        elif named:
            raise UsageError(f"{text} cannot be computed: {reason}.")
        else:
            left_out[text] = reason
    if not metrics:
        reasons = "; ".join(f"{text}: {reason}" for text, reason in left_out.items())
        raise UsageError(f"No metric can be computed on this data ({reasons}).")
    return Selection(metrics, left_out)


def _for_judges(metric: Metric, roles: Roles) -> Metric:
    """The metric as this run's judges answer it: one that asks several takes their roles by `for_judges`."""
    bind: Callable[[Sequence[str]], Metric] | None = getattr(metric, "for_judges", None)
    return metric if bind is None else bind(roles.named)


def _obstacle(metric: Metric, intake: Intake, roles: Roles) -> str | None:
    missing = sorted(metric.needs - intake.in_some)
    if missing:
        return f"no sample has {' or '.join(missing)}"
    lacking = (roles.lacking(metric.asks, role) for role in sorted(metric.roles))
    return next((reason for reason in lacking if reason is not None), None)
