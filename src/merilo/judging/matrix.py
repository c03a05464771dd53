"""Matrices as verdicts: vectors and similarities."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

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

    Arrays of numbers count as lists. `right`: the texts of the columns, if a row must have one number for each.
    """
    listed = _listed(given)
    if not isinstance(listed, list | tuple):
        return given
    rows: list[Any] = [*map(_listed, listed)]
    if right and rows and isinstance(rows[0], int | float):
        rows = [rows[at : at + len(right)] for at in range(0, len(rows), len(right))]
    try:
        return MatrixVerdict.of([[float(number) for number in row] for row in rows])
    except (TypeError, ValueError):
        return given


def _listed(given: Any) -> Any:  # Any: an array, known by its method, or a user's value
    return given.tolist() if hasattr(given, "tolist") else given


def shape_fault(verdict: MatrixVerdict, rows: int, columns: int | None) -> str | None:
    """Return the problem with the shape of a matrix; None if it is valid. `columns`: None if any number is valid."""
    if verdict.rows != rows or (columns is not None and verdict.columns != columns):
        return f"is a matrix of {verdict.rows} by {verdict.columns}, not {rows} by {columns or 'any'}"
    if len(verdict.data) != 4 * verdict.rows * verdict.columns:
        return "holds a matrix whose bytes do not match its shape"
    return None
