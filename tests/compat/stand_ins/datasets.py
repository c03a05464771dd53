"""Stands in for Hugging Face's datasets: a data set made of columns, which is iterated as records."""

from collections.abc import Iterator
from typing import Any


class Dataset:
    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self.columns = columns

    @classmethod
    def from_dict(cls, columns: dict[str, list[Any]]) -> "Dataset":
        return cls(columns)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for values in zip(*self.columns.values(), strict=True):
            yield dict(zip(self.columns, values, strict=True))
