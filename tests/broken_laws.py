"""The laws that a metric breaks, on purpose or not."""

from typing import Any

from merilo.metrics.base import Metric
from merilo.metrics.contract import ContractViolation, violations


def broken_laws(metric: Metric, *given: Any, **more: Any) -> dict[str, ContractViolation]:
    """By law, the first observation."""
    return {each.law: each for each in reversed([*violations(metric, *given, **more)])}
