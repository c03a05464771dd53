"""Tables in memory: pandas and polars frames, pyarrow tables and batches, data sets of the `datasets` library.

Rows are read in blocks, so that a table never exists twice in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from merilo.adapters.base import Adapter
from merilo.errors import DataError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROWS: Final = 1000
"""Rows of one block."""


def is_of(package: str, *classes: str) -> Any:  # Any: a predicate of any object
    """Return a predicate: True for an instance of one of these classes of a package, or of a subclass."""

    def recognises(source: object) -> bool:
        bases = type(source).__mro__
        return any(each.__module__.partition(".")[0] == package and each.__name__ in classes for each in bases)

    return recognises


def _pandas(frame: Any) -> Iterator[dict[str, object]]:  # Any: a pandas.DataFrame
    named = [name for name in frame.index.names if name is not None and name not in frame.columns]
    for start in range(0, len(frame), _ROWS):
        block = frame.iloc[start : start + _ROWS]
        block = block.reset_index(level=named) if named else block
        names = [str(name) for name in block.columns]
        check_once(names)
        columns = [block.iloc[:, place].tolist() for place in range(len(names))]
        yield from _rows(names, columns)


def check_once(names: list[str]) -> None:
    """Raise DataError for a column that occurs twice: a record has one value of a name, so the other would be lost."""
    repeated = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if repeated is not None:
        raise DataError.of(Problem("each column once", f"the column {repeated!r} again"))


def _rows(names: list[str], columns: list[list[object]]) -> Iterator[dict[str, object]]:
    for values in zip(*columns, strict=True):
        yield dict(zip(names, values, strict=True))


def _polars(frame: Any) -> Iterator[dict[str, object]]:  # Any: a polars.DataFrame
    yield from frame.iter_rows(named=True)


def _polars_lazy(frame: Any) -> Iterator[dict[str, object]]:  # Any: a polars.LazyFrame
    yield from _polars(frame.collect())


def arrow_rows(table: Any) -> Iterator[dict[str, object]]:  # Any: a pyarrow Table, RecordBatch or RecordBatchReader
    """Yield the rows of a table, of a batch, or of each batch of a reader."""
    batches = table.to_batches(max_chunksize=_ROWS) if hasattr(table, "to_batches") else [table]
    for batch in batches:
        check_once(batch.schema.names)
        for start in range(0, batch.num_rows, _ROWS):
            yield from batch.slice(start, _ROWS).to_pylist()


def _arrow_reader(reader: Any) -> Iterator[dict[str, object]]:  # Any: a pyarrow.RecordBatchReader
    for batch in reader:
        yield from arrow_rows(batch)


def _datasets(dataset: Any) -> Iterator[dict[str, object]]:  # Any: a datasets.Dataset
    yield from dataset.with_format(None)  # a format such as "pandas" would give whole frames


ADAPTERS: Final = (
    Adapter("DataFrame", is_of("pandas", "DataFrame"), _pandas, unit="row"),
    Adapter("DataFrame", is_of("polars", "DataFrame"), _polars, unit="row"),
    Adapter("LazyFrame", is_of("polars", "LazyFrame"), _polars_lazy, unit="row"),
    Adapter("Table", is_of("pyarrow", "Table", "RecordBatch"), arrow_rows, unit="row"),
    Adapter("RecordBatchReader", is_of("pyarrow", "RecordBatchReader"), _arrow_reader, unit="row"),
    Adapter("Dataset", is_of("datasets", "Dataset", "IterableDataset"), _datasets, unit="row"),
)
