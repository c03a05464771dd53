"""Decisions on drops of several metrics, by one comparison of all of them."""

from collections.abc import Mapping
from typing import Any

from merilo.stats.column import Column
from merilo.stats.compare import Policy, compare
from merilo.stats.gate import Decision, drop_decision


def drop_decisions(
    pairs: Mapping[str, tuple[Column, Column]],
    allowed: Mapping[str, float],
    *,
    undefined: Policy = Policy.DROP,
    **options: Any,  # Any: arguments of `compare`
) -> dict[str, Decision]:
    """By metric, the decision on the drop of the run from the baseline."""
    found = compare(pairs, undefined=undefined, **options)
    return {
        key: drop_decision(each, allowed[key], higher_is_better=pairs[key][0].higher_is_better)
        for key, each in found.items()
    }
