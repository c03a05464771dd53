"""Matrices as verdicts: vectors and similarities."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

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
