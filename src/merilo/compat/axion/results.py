"""One metric's result on one item, in the form that axion documents."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.compat.axion.dataset import DatasetItem
    from merilo.compat.axion.signals import Signals
    from merilo.metrics.base import Outcome


class Interpretation(StrEnum):
    """Interpretations of a share of relevant chunks, by the unrounded score."""

    ALL = "All retrieved chunks are relevant"
    """1.0."""
    MOST = "Most chunks relevant, some noise"
    """From 0.7."""
    MIXED = "Mixed relevance"
    """From 0.5."""
    FEW = "Mostly irrelevant retrieval"
    """Below 0.5."""

    @classmethod
    def of(cls, score: float) -> Interpretation:
        """Return the words for a score in [0, 1]."""
        if score >= 1.0:
            return cls.ALL
        if score >= 0.7:
            return cls.MOST
        return cls.MIXED if score >= 0.5 else cls.FEW


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricResult:
    """A score with the evidence for it; `score` and `passed` are None if there is no number."""

    metric_name: str
    item: DatasetItem
    score: float | None
    """In [0, 1], not rounded."""
    threshold: float
    signals: Signals
    explanation: str
    """The score in a few words, or the reason why there is none."""
    interpretation: Interpretation | None = None
    """For ContextualRelevancy with a score."""
    flags: tuple[str, ...] = ()
    """Problems that were scored anyway, as axion's code does."""
    metadata: Mapping[str, str]
    """`mode`, the `judge` and the computed `definition`, as merilo writes it."""
    outcome: Outcome
    """merilo's own outcome, with the evidence."""

    @property
    def id(self) -> str | None:
        """The item's id."""
        return self.item.id

    @property
    def passed(self) -> bool | None:
        """True if the score reaches the threshold; None without a score."""
        return None if self.score is None else self.score >= self.threshold

    def __str__(self) -> str:
        return self.pretty()

    def pretty(self) -> str:
        """Return the result as text: the score with two digits first, then its meaning and problems."""
        if self.score is None:
            return f"Score: none ({self.explanation})"
        lines = [f"Score: {self.score:.2f} ({self.explanation})"]
        if self.interpretation is not None:
            lines.append(f"{self.interpretation}.")
        lines += [f"Note: {flag}." for flag in self.flags]
        return "\n".join(lines)
