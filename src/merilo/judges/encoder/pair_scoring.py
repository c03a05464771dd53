"""Scores of the encoder and the reader for pairs of a short text and a long one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from merilo.cancellation import check_cancelled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from merilo.judges.encoder.model import Encoded, Part, Reader

_LEAST: Final = np.float32(1e-9)


@dataclass(frozen=True, slots=True)
class PairScore:
    """The scores of one pair of a short text and a long one."""

    logits: NDArray[np.float32]
    """The logits of the reader, all heads."""
    covered: float
    """Mean over the short text's tokens of the highest cosine with a token of the long text; rare tokens weigh more."""


class PairScorer:
    """Scorer of pairs of a short text and a long one, each encoded already; threads may share it."""

    def __init__(self, reader: Reader, rarity: NDArray[np.float32]) -> None:
        """Create a scorer. `rarity`: for each token of the vocabulary, from 0 (in most texts) to 1 (in few)."""
        self._reader = reader
        self._rarity = rarity

    def see(self, short: Encoded, long: Encoded | Part) -> PairScore:
        """Return the scores of one pair."""
        check_cancelled()
        near, rare = self._reader.nearest(short, long), self._rarity[short.ids]
        logits = self._reader.logits(short, long, features=np.stack([near, rare], 1))
        return PairScore(logits, _covered(near, rare))

    def covered(self, short: Encoded, long: Encoded | Part) -> float:
        """Return `PairScore.covered` alone, at a thirtieth of the cost."""
        check_cancelled()
        return _covered(self._reader.nearest(short, long), self._rarity[short.ids])

    def logits_of(self, task: str, sights: Sequence[PairScore], part: int = 0) -> NDArray[np.float64]:
        """Return one logit of a task for each pair."""
        place = self._reader.heads[task].start + part
        return np.array([sight.logits[place] for sight in sights], dtype=np.float64)


def _covered(near: NDArray[np.float32], rare: NDArray[np.float32]) -> float:
    weight = rare + _LEAST
    return float((near * weight).sum() / weight.sum())
