"""Intervals, tests and agreement from numbers alone.

The names in `__all__` are public. Each is imported when it is first used.
"""

from typing import TYPE_CHECKING

from merilo.lazy import exports

if TYPE_CHECKING:
    from merilo.stats.compare import holm
    from merilo.stats.corrected_pairs import correct_pairs, judge_error_difference, variance_components
    from merilo.stats.correction import correct, ppi_mean
    from merilo.stats.gate import drop_decision, gate_minimum
    from merilo.stats.intervals import wilson_ends
    from merilo.stats.means import mean_interval, paired_test, ratio_interval

__all__ = [
    "correct",
    "correct_pairs",
    "drop_decision",
    "gate_minimum",
    "holm",
    "judge_error_difference",
    "mean_interval",
    "paired_test",
    "ppi_mean",
    "ratio_interval",
    "variance_components",
    "wilson_ends",
]

__getattr__, __dir__ = exports(__name__)
