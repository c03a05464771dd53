"""What the encoder and the reader see of a short text in a long one."""

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
class Sight:
    """One short text held against one long one."""

    logits: NDArray[np.float32]
    """Those of the reader, all heads."""
    covered: float
    """How near the short text's tokens are to the nearest of the long one: mean cosine, rare ones counting more."""


class Eyes:
    """Holds short texts against long ones, each encoded already; threads may share it."""

    def __init__(self, reader: Reader, rarity: NDArray[np.float32]) -> None:
        """`rarity`: for each token of the vocabulary how few texts have it, from 0 to 1."""
        self._reader = reader
        self._rarity = rarity

    def see(self, short: Encoded, long: Encoded | Part) -> Sight:
        """What is seen of one pair."""
        check_cancelled()
        near, rare = self._reader.nearest(short, long), self._rarity[short.ids]
        logits = self._reader.logits(short, long, features=np.stack([near, rare], 1))
        return Sight(logits, _covered(near, rare))

    def covered(self, short: Encoded, long: Encoded | Part) -> float:
        """`Sight.covered` alone, which costs a thirtieth."""
        check_cancelled()
        return _covered(self._reader.nearest(short, long), self._rarity[short.ids])

    def logits_of(self, task: str, sights: Sequence[Sight], part: int = 0) -> NDArray[np.float64]:
        """One logit of a task for each sight."""
        place = self._reader.heads[task].start + part
        return np.array([sight.logits[place] for sight in sights], dtype=np.float64)


def _covered(near: NDArray[np.float32], rare: NDArray[np.float32]) -> float:
    weight = rare + _LEAST
    return float((near * weight).sum() / weight.sum())
