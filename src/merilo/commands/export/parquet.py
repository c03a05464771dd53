"""Parquet, written in groups of rows with pyarrow."""

from __future__ import annotations

from itertools import islice
from typing import IO, TYPE_CHECKING, Any, Final

from merilo.extras import optional_module
from merilo.results.sample_table import Kind, cell_text

if TYPE_CHECKING:
    from merilo.commands.export.run import Written
    from merilo.results.sample_table import SampleTable

_GROUP_ROWS: Final = 10_000


def write_parquet(table: SampleTable, file: IO[bytes], written: Written) -> None:
    """Write the table as Parquet: texts as strings, contexts as 64-bit integers, scores as doubles."""
    arrow = _module("pyarrow")
    types: dict[Kind, Any] = {Kind.COUNT: arrow.int64(), Kind.SCORE: arrow.float64()}  # Any: types of pyarrow
    schema = arrow.schema([(column.name, types.get(column.kind, arrow.string())) for column in table.columns])
    rows = table.rows()
    with _module("pyarrow.parquet").ParquetWriter(file, schema) as writer:
        while group := [*islice(rows, _GROUP_ROWS)]:
            arrays = [
                arrow.array([cell_text(row[at], column.kind) for row in group], type=schema.field(at).type)
                for at, column in enumerate(table.columns)
            ]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))
            written.samples += len(group)


def _module(name: str) -> Any:  # Any: pyarrow is optional
    return optional_module(name, wanted_by="A .parquet file", install="merilo[parquet]")
