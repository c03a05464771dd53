"""Files in Arrow's formats: Parquet files, and folders that `save_to_disk` of the `datasets` library wrote."""

from __future__ import annotations

import json
from contextlib import contextmanager, suppress
from os.path import isfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from merilo.adapters.base import Adapter
from merilo.adapters.tables import arrow_rows, check_once
from merilo.data.source import no_such_file, unreadable
from merilo.errors import DataError, Problem
from merilo.extras import optional_module

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

_ROWS: Final = 1000
"""Rows of one block of a Parquet file."""
_SUFFIXES: Final = (".parquet", ".pq")
_STATE: Final = "state.json"
_SPLITS: Final = "dataset_dict.json"


def _is_parquet(source: object) -> bool:
    return isinstance(source, Path) and source.suffix.lower() in _SUFFIXES


def _is_saved(source: object) -> bool:
    if not isinstance(source, Path):
        return False
    return any(isfile(source / name) for name in (_STATE, _SPLITS))  # noqa: PTH113  Path.is_file raises PermissionError


def _parquet(path: Path) -> Iterator[dict[str, object]]:
    parquet = _module("pyarrow.parquet", "Reading a Parquet file")
    with _as_data_error(path):
        if not path.is_file():
            raise no_such_file(path)
    with _as_data_error(path), parquet.ParquetFile(path) as file:
        check_once(file.schema_arrow.names)
        for batch in file.iter_batches(batch_size=_ROWS):
            yield from batch.to_pylist()


def _saved(path: Path) -> Iterator[dict[str, object]]:
    """Yield the rows of a saved data set, file by file."""
    if not (path / _STATE).is_file():
        raise DataError.of(_several_splits(path))
    arrow = _module("pyarrow", "Reading a folder of save_to_disk")
    with _as_data_error(path):
        state = json.loads((path / _STATE).read_text(encoding="utf-8"))
        for each in state["_data_files"]:
            with arrow.memory_map(str(path / Path(each["filename"]).name)) as source:
                for batch in arrow.ipc.open_stream(source):
                    yield from arrow_rows(batch)


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
    except (OSError, ValueError, KeyError, TypeError, NotImplementedError) as error:  # what damage makes pyarrow raise
        first = str(error).split("\n", 1)[0].rstrip(".")
        problem = unreadable(error) if isinstance(error, PermissionError) else Problem("a readable file", first)
        raise DataError.of(Problem(problem.expected, problem.got, source=path.name)) from error


ADAPTERS: Final = (
    Adapter("Parquet", _is_parquet, _parquet, unit="row"),
    Adapter("saved data set", _is_saved, _saved, unit="row"),
)
