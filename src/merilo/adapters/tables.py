"""Objects in memory: frames of pandas and polars, tables of pyarrow and `datasets`, results of frameworks.

Rows are read in blocks, so that a table never exists twice in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from merilo.adapters.base import Adapter
from merilo.data.objects import Role, plain, role_of
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
        yield from (dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True))


def check_once(names: list[str]) -> None:
    """Raise DataError for a column that occurs twice: a record has one value of a name, so the other would be lost."""
    repeated = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if repeated is not None:
        raise DataError.of(Problem("each column once", f"the column {repeated!r} again"))


def arrow_rows(table: Any) -> Iterator[dict[str, object]]:  # Any: a pyarrow Table, RecordBatch or RecordBatchReader
    """Yield the rows of a table, of a batch, or of each batch of a reader."""
    one = [table] if hasattr(table, "num_rows") else table
    batches = table.to_batches(max_chunksize=_ROWS) if hasattr(table, "to_batches") else one
    for batch in batches:
        check_once(batch.schema.names)
        for start in range(0, batch.num_rows, _ROWS):
            yield from batch.slice(start, _ROWS).to_pylist()


ADAPTERS: Final = (
    Adapter("DataFrame", is_of("pandas", "DataFrame"), _pandas, unit="row"),
    Adapter("Series", is_of("pandas", "Series"), lambda it: [it.to_dict()]),
    Adapter("DataFrame", is_of("polars", "DataFrame"), lambda it: it.iter_rows(named=True), unit="row"),
    Adapter("LazyFrame", is_of("polars", "LazyFrame"), lambda it: it.collect().iter_rows(named=True), unit="row"),
    Adapter("Table", is_of("pyarrow", "Table", "RecordBatch"), arrow_rows, unit="row"),
    Adapter("RecordBatchReader", is_of("pyarrow", "RecordBatchReader"), arrow_rows, unit="row"),
    # a format such as "pandas" would give whole frames
    Adapter("Dataset", is_of("datasets", "Dataset", "IterableDataset"), lambda it: it.with_format(None), unit="row"),
    Adapter("result", lambda it: role_of(it) is Role.RESULT, lambda it: [cast("dict[str, object]", plain(it))]),
)
