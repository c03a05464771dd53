"""Runs and rows as data frames of the library that the user names."""

from __future__ import annotations

from importlib.util import find_spec
from math import nan
from typing import TYPE_CHECKING, Any, Final

from merilo.errors import UsageError
from merilo.lazy import optional_module
from merilo.results.sample_table import Kind, SampleTable, cell_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pandas as pd

    from merilo.runs.outcomes import OutcomeRecord
    from merilo.runs.run import Run

TEXT: Final = "String"
INTEGER: Final = "Int64"
FLOAT: Final = "Float64"
"""Names of the types of columns, as polars calls them."""
_ARROW: Final = {TEXT: "string", INTEGER: "int64", FLOAT: "float64"}
BACKENDS: Final = ("pandas", "polars", "pyarrow")
_TYPES: Final = {Kind.COUNT: INTEGER, Kind.SCORE: FLOAT}
_WANTED_BY: Final = "to_frame()"


def run_frame(run: Run, *, backend: str | None = None, rows: str = "samples") -> Any:  # Any: a frame of the backend
    """Return the run as a data frame; see `Run.to_frame`."""
    backend = backend or next((each for each in BACKENDS if find_spec(each)), BACKENDS[0])
    if rows == "samples":
        table = SampleTable.of(run)
        names = [column.name for column in table.columns]
        types = {column.name: _TYPES.get(column.kind, TEXT) for column in table.columns}
        cells: Iterable[Sequence[object]] = (
            [cell_text(cell, column.kind) for cell, column in zip(row, table.columns, strict=True)]
            for row in table.rows()
        )
    elif rows == "outcomes":
        names = ["sample", "metric", "outcome", "value", "reason"]
        types = {name: FLOAT if name == "value" else TEXT for name in names}
        cells = map(_row, run.records())
    else:
        raise UsageError(f"rows must be samples or outcomes, got {rows!r}.")
    columns: dict[str, list[object]] = {name: [] for name in names}
    for row in cells:
        for name, cell in zip(names, row, strict=True):
            columns[name].append(cell)
    return frame_of(columns, types, backend)


def frame(rows: Sequence[Mapping[str, object]]) -> pd.DataFrame:
    """Return a data frame with one column per name. Raises UsageError if pandas is not installed."""
    pandas: Any = optional_module("pandas", wanted_by=_WANTED_BY, install="pandas")  # Any: no stubs
    found: pd.DataFrame = pandas.DataFrame(list(rows))
    return found


def frame_of(
    columns: Mapping[str, Sequence[object]], types: Mapping[str, str], backend: str
) -> Any:  # Any: a frame of the backend
    """Return the columns as a frame of `backend`. None is a missing value of the column's type.

    Raises UsageError for another backend, or if it is not installed.
    """
    if backend not in BACKENDS:
        raise UsageError(f"backend must be one of {', '.join(BACKENDS)}, got {backend!r}.")
    library: Any = optional_module(backend, wanted_by=_WANTED_BY, install=backend)  # Any: no stubs
    if backend == "polars":
        return library.DataFrame(dict(columns), schema={name: getattr(library, types[name]) for name in columns})
    if backend == "pyarrow":
        return library.table({name: library.array(each, _ARROW[types[name]]) for name, each in columns.items()})
    # pandas infers its types: its integers have no missing value, and before version 3 a cast makes None a text
    return library.DataFrame(
        {
            name: values if types[name] == TEXT else [nan if value is None else value for value in values]
            for name, values in columns.items()
        }
    )


def _row(record: OutcomeRecord) -> list[object]:
    return [
        record["sample"],
        record["metric"],
        record["outcome"],
        record.get("value"),
        record.get("reason") or record.get("error", {}).get("message", ""),
    ]
