"""How far two series of numbers agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def kendall_tau_b(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Kendall's rank correlation with ties (tau-b), in [-1, 1]; None when either series has no two different numbers.

    `left`, `right`: one number for each item, in the same order. 1 when both order the items alike, 0 when the
    orders have nothing in common. Source: Kendall, "The treatment of ties in ranking problems", Biometrika 33
    (1945). Raises ValueError when the lengths differ.
    """
    if len(left) != len(right):
        raise ValueError(f"Two series are compared item by item, but have {len(left)} and {len(right)} numbers.")
    if len(set(left)) < 2 or len(set(right)) < 2:
        return None
    from scipy.stats import kendalltau

    return float(kendalltau(left, right, variant="b").statistic)
