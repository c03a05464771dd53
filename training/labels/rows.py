"""Labelled records as rows of numbers, with what is needed to weigh, fold and measure them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from labels.measure import Judged
from labels.records import YES, Example

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

USEFUL_SWAPS = ("begin-wow", "clapnq", "qa-feedback")
"""Sources whose supported answers become references."""


@dataclass(frozen=True, slots=True)
class Rows:
    """One row for each labelled unit, in example order."""

    values: NDArray[np.float64]
    label: NDArray[np.float64]
    source: NDArray[np.str_]
    group: NDArray[np.str_]
    constructed: NDArray[np.bool_]

    def where(self, keep: NDArray[np.bool_]) -> Rows:
        """The rows for which `keep` holds."""
        return Rows(*(getattr(self, name)[keep] for name in self.__slots__))

    def judged(self, chance: NDArray[np.float64], *, cut: float, threshold: float) -> Judged:
        """The rows with their label cut to yes or no and decided by a probability threshold."""
        return Judged(self.label >= cut, chance, chance >= threshold, self.source, self.group, self.constructed)


def swapped(examples: Collection[tuple[Example, tuple[str, ...]]]) -> list[Example]:
    """Supported responses of USEFUL_SWAPS as references: useful with their own context, not with the next one's."""
    made: list[Example] = []
    for source in USEFUL_SWAPS:
        own = [e for e, _ in examples if e.source == source and e.label >= YES]
        for this, following in zip(own, own[1:] + own[:1], strict=True):
            made.append(replace(this, label=1.0, constructed=True))
            if following.group != this.group and following.texts != this.texts:
                made.append(replace(this, texts=following.texts, label=0.0, constructed=True))
    return made


def rows_of(values: list[tuple[float, ...]], labels: list[float], examples: list[Example]) -> Rows:
    """The rows of examples, in their order."""
    return Rows(
        values=np.array(values, dtype=np.float64),
        label=np.array(labels),
        source=np.array([_source(example) for example in examples]),
        group=np.array([f"{example.source}/{example.group}" for example in examples]),
        constructed=np.array([example.constructed for example in examples]),
    )


def _source(example: Example) -> str:
    """The source, by language where it has several."""
    several = example.source == "xquad"
    return f"{example.source}-{example.language}" if several else example.source
