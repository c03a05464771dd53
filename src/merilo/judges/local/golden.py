"""Golden pairs: inputs with the logits of the original implementation, to show that a model and its card fit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from merilo.judges.local.scorer import PairScorer

TOLERANCE: Final = 1e-3


class GoldenCheck(NamedTuple):
    """The result of comparing the golden pairs of a card with the model."""

    pairs: int
    difference: float
    """The largest difference between two logits; infinity if one is not a number."""

    @property
    def agree(self) -> bool:
        """True if all logits are within `TOLERANCE`."""
        return self.difference <= TOLERANCE

    @property
    def note(self) -> str:
        """The result as a sentence."""
        verb = "agree" if self.agree else "DIFFER"
        return f"Golden logits {verb} ({self.pairs} pairs, largest difference {self.difference:.1g})."


def golden_check(scorer: PairScorer) -> GoldenCheck:
    """Return the result for the golden pairs of the model's card, which has some."""
    differences = [
        abs(expected - logit)
        for golden in scorer.card.golden
        for expected, logit in zip(golden.logits, scorer.logits(golden.texts), strict=True)
    ]
    worst = math.inf if any(map(math.isnan, differences)) else max(differences)
    return GoldenCheck(len(scorer.card.golden), worst)
