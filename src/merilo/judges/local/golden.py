"""Golden pairs: inputs with the logits of the original implementation, to show that a model and its card fit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from merilo.judges.local.scorer import PairScorer

TOLERANCE: Final = 1e-3


def golden_difference(scorer: PairScorer) -> float:
    """Return the largest difference between a logit of a golden pair and that of the model; infinity for a NaN."""
    differences = [
        abs(expected - logit)
        for golden in scorer.card.golden
        for expected, logit in zip(golden.logits, scorer.logits(golden.texts), strict=True)
    ]
    return math.inf if any(map(math.isnan, differences)) else max(differences)


def golden_note(scorer: PairScorer) -> str:
    """Return the result as a phrase."""
    difference = golden_difference(scorer)
    verb = "agree" if difference <= TOLERANCE else "DIFFER"
    return f"golden logits {verb} ({len(scorer.card.golden)} pairs, largest difference {difference:.1g})"
