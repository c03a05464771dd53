"""The result of `merilo judge fit`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.stats.platt import LogisticCurve


@dataclass(frozen=True, slots=True)
class Quality:
    """How well probabilities and cuts fit the labels."""

    log_loss: float
    balanced_accuracy: float


@dataclass(frozen=True, slots=True)
class KindFit:
    """The curve and the cuts of one kind of question."""

    kind: str
    records: int
    positive: int
    curve: LogisticCurve
    cuts: tuple[float, ...]
    """One cut, or those of grades 1 and 2."""
    before: Quality
    """Of the card as it is."""
    held_out: Quality
    """Of curves and cuts fitted to the other folds."""


@dataclass(frozen=True, slots=True)
class Fit:
    """All fits of one judge."""

    judge: str
    source: str
    """What the curves were fitted to, for the card."""
    kinds: tuple[KindFit, ...]
    left_out: Mapping[str, str]
    """Kind of question → reason why nothing was fitted."""
