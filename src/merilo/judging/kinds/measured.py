"""Questions that measure texts: vectors and similarities, as matrices, and positions of sentences."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from merilo.judging.questions import Question, Texts
from merilo.judging.synthetic import CONTEXT, OTHER, RESPONSE, Odds, chance
from merilo.judging.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Sized


@dataclass(frozen=True, slots=True)
class MatrixVerdict(Verdict):
    """A matrix of float32 numbers, stored as little-endian bytes in row order so that a replay is bit-equal."""

    rows: int
    columns: int
    data: bytes
    probability: float | None = None

    @classmethod
    def of(cls, rows: list[list[float]]) -> Self:
        """Return the matrix with these rows. Raises ValueError unless all rows have the same length."""
        columns = len(rows[0]) if rows else 0
        flat = [number for row in rows for number in row]
        if len(flat) != len(rows) * columns:
            raise ValueError("every row of a matrix needs the same number of columns")
        return cls(rows=len(rows), columns=columns, data=struct.pack(f"<{len(flat)}f", *flat))

    def row(self, index: int) -> tuple[float, ...]:
        """Return row `index` as Python floats."""
        size = self.columns * 4
        return struct.unpack(f"<{self.columns}f", self.data[index * size : (index + 1) * size])

    def in_words(self) -> str:
        """See `Verdict.in_words`."""
        return f"a matrix of {self.rows} by {self.columns}"


def matrix_from(given: object, right: Sized | None = None) -> object:
    """Return the matrix of rows of numbers, or of one number for each pair of texts; anything else unchanged.

    `right`: the texts of the columns, if a row must have one number for each.
    """
    import numpy as np

    try:
        array = np.asarray(given, dtype="<f4")
        array = array.reshape(-1, len(right)) if right and array.ndim == 1 else array
    except (TypeError, ValueError):
        return given
    return MatrixVerdict(array.shape[0], array.shape[1], array.tobytes()) if array.ndim == 2 else given


def shape_fault(verdict: MatrixVerdict, rows: int, columns: int | None) -> str | None:
    """Return the problem with the shape of a matrix; None if it is valid. `columns`: None if any number is valid."""
    if verdict.rows != rows or (columns is not None and verdict.columns != columns):
        return f"is a matrix of {verdict.rows} by {verdict.columns}, not {rows} by {columns or 'any'}"
    if len(verdict.data) != 4 * verdict.rows * verdict.columns:
        return "holds a matrix whose bytes do not match its shape"
    return None


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


@dataclass(frozen=True, slots=True)
class TextsVerdict(Verdict):
    """The pieces of a text, in order, unchanged or as the splitter trims them."""

    texts: tuple[str, ...]
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class Sentences(Question[TextsVerdict]):
    """The sentences of a text as an external splitter finds them, for published metrics that count these sentences.

    `splitter` names it, for example `pysbd`.
    """

    kind = "sentences"
    verdict = TextsVerdict
    trials = ((CONTEXT, "pysbd"), (OTHER, "pysbd"))

    text: str
    splitter: str

    def guess(self) -> TextsVerdict:
        """Return the whole text as one sentence; none if it is blank."""
        return TextsVerdict((self.text,) if self.text.strip() else ())


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
