"""Objects in memory: frames of pandas and polars, tables of pyarrow and `datasets`, results of frameworks; Arrow files.

Rows are read in blocks, so that a table never exists twice in memory.
"""

from __future__ import annotations

import json
from contextlib import contextmanager, suppress
from os.path import isfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from merilo.adapters.base import Adapter
from merilo.data.objects import Role, plain, role_of
from merilo.data.source import no_such_file, unreadable
from merilo.errors import DataError, Problem
from merilo.extras import optional_module

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

_ROWS: Final = 1000
"""Rows of one block."""
_FILE_ROWS: Final = 100
"""The same of a Parquet file, whose rows may be long."""


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


# -- files in Arrow's formats: Parquet files, and folders that `save_to_disk` of `datasets` wrote ---------------------


_SUFFIXES: Final = (".parquet", ".pq")
_STATE: Final = "state.json"
_SPLITS: Final = "dataset_dict.json"
_SAVED: Final = (_STATE, _SPLITS)


def _parquet(path: Path) -> Iterator[dict[str, object]]:
    parquet = _module("pyarrow.parquet", "Reading a Parquet file")
    with _as_data_error(path):
        if not path.is_file():
            raise no_such_file(path)
        with parquet.ParquetFile(path, memory_map=True) as file:
            check_once(file.schema_arrow.names)
            for batch in file.iter_batches(batch_size=_FILE_ROWS):
                yield from batch.to_pylist()


def _saved(path: Path) -> Iterator[dict[str, object]]:
    if not (path / _STATE).is_file():
        raise DataError.of(_several_splits(path))
    arrow = _module("pyarrow", "Reading a folder of save_to_disk")
    with _as_data_error(path):
        state = json.loads((path / _STATE).read_text(encoding="utf-8"))
        for each in state["_data_files"]:
            with arrow.memory_map(str(path / Path(each["filename"]).name)) as source:
                yield from arrow_rows(arrow.ipc.open_stream(source))


def _several_splits(path: Path) -> Problem:
    names: list[str] = []
    with suppress(OSError, ValueError, KeyError, TypeError):
        names = json.loads((path / _SPLITS).read_text(encoding="utf-8"))["splits"]
    advice = f"name one of its folders: {', '.join(str(path / str(name)) for name in names)}" if names else ""
    return Problem("one saved data set", "a folder of several splits", source=path.name, advice=advice)


def _module(name: str, wanted_by: str) -> Any:  # Any: pyarrow has no types
    return optional_module(name, wanted_by=wanted_by, install="merilo[parquet]")


@contextmanager
def _as_data_error(path: Path) -> Generator[None]:
    """Turn the errors of a damaged file into DataError. pyarrow's own errors are ValueErrors and OSErrors."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, NotImplementedError) as error:  # from damage
        first = str(error).split("\n", 1)[0].rstrip(".")
        problem = unreadable(error) if isinstance(error, PermissionError) else Problem("a readable file", first)
        raise DataError.of(Problem(problem.expected, problem.got, source=path.name)) from error


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
    Adapter("Parquet", lambda it: isinstance(it, Path) and it.suffix.lower() in _SUFFIXES, _parquet, unit="row"),
    # Path.is_file raises PermissionError
    Adapter(
        "saved data set",
        lambda it: isinstance(it, Path) and any(map(isfile, map(it.joinpath, _SAVED))),
        _saved,
        unit="row",
    ),
)
