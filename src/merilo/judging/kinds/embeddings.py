"""Questions and verdicts of the kind `embeddings`: vectors of texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from merilo.judging.matrix import MatrixVerdict, shape_fault
from merilo.judging.questions import Question, Texts
from merilo.judging.synthetic import CONTEXT, OTHER, RESPONSE, chance

if TYPE_CHECKING:
    from merilo.judging.synthetic import Odds


_SIZE: Final = 8
"""Length of synthetic vectors."""


@dataclass(frozen=True, slots=True)
class Embeddings(Question[MatrixVerdict]):
    """One vector per text; rows in the order of the texts."""

    kind = "embeddings"
    verdict = MatrixVerdict
    trials = (((RESPONSE, OTHER),), ((CONTEXT,),))

    texts: Texts

    def fault(self, verdict: MatrixVerdict) -> str | None:
        return shape_fault(verdict, len(self.texts), None)

    def guess(self) -> MatrixVerdict:
        """Return unit vectors in one dimension."""
        return MatrixVerdict.of([[1.0] for _ in self.texts])

    def synthetic(self, odds: Odds) -> MatrixVerdict:
        return MatrixVerdict.of([[chance(odds.seed + at, text) for at in range(_SIZE)] for text in self.texts])
