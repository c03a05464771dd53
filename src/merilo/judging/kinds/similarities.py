"""Questions and verdicts of the kind `similarities`: similarities of pairs of texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from merilo.judging.matrix import MatrixVerdict, shape_fault
from merilo.judging.questions import Question, Texts
from merilo.judging.synthetic import CONTEXT, OTHER, RESPONSE

if TYPE_CHECKING:
    from merilo.judging.synthetic import Odds


@dataclass(frozen=True, slots=True)
class Similarities(Question[MatrixVerdict]):
    """Similarity of each left text to each right text; one row per left text."""

    kind = "similarities"
    verdict = MatrixVerdict
    trials = (((RESPONSE,), (CONTEXT, OTHER)), ((OTHER,), (CONTEXT,)))

    left: Texts
    right: Texts

    def fault(self, verdict: MatrixVerdict) -> str | None:
        return shape_fault(verdict, len(self.left), len(self.right))

    def guess(self) -> MatrixVerdict:
        """Return similarity 1 for all pairs."""
        return MatrixVerdict.of([[1.0] * len(self.right) for _ in self.left])

    def synthetic(self, odds: Odds) -> MatrixVerdict:
        return MatrixVerdict.of([[odds.of(one, other) for other in self.right] for one in self.left])
