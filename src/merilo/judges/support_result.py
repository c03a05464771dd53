"""The judgement of the embedded judge's model about the support of a statement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from merilo.judges.slot_types import Difference
    from merilo.judges.support_candidates import Position


@dataclass(frozen=True, slots=True)
class SupportResult:
    """`evidence` indices of every supporting context, ascending, empty exactly when not supported."""

    supported: bool
    evidence: tuple[int, ...]
    probability: float
    coverage: float
    """The largest fraction of the statement, by weight, in three consecutive sentences of one context, in [0, 1]."""
    yes_from: float
    """The lowest probability at which the answer is yes."""
    decided_by: str = "supported"
    """The curve: that of statements, or that of one kind of short answer."""
    sentences: tuple[Position, ...] = ()
    """The sentence of each evidence context that the statement is closest to; if not supported, the closest of all."""
    differences: tuple[Difference, ...] = ()
    """The slots in which the statement differs from its closest sentence."""
