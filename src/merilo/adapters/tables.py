"""Objects in memory: frames of pandas and polars, tables of pyarrow and `datasets`, results of frameworks; Arrow files.

Rows are read in blocks, so that a table never exists twice in memory.
"""

from __future__ import annotations

import json
import struct
from contextlib import contextmanager, suppress
from os.path import isfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from merilo.adapters.base import Adapter
from merilo.data.check import MAX_COLUMNS
from merilo.data.objects import Role, plain, role_of
from merilo.data.source import (
    FREE_ROWS,
    MAX_LINE_BYTES,
    MAX_RATIO,
    RATIO_BYTES,
    no_such_file,
    too_many_rows,
    unreadable,
)
from merilo.errors import DataError, Problem
from merilo.lazy import optional_module

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

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


# -- files in Arrow's formats: Parquet files, and folders that `save_to_disk` of `datasets` wrote ---------------------


_BLOCK_BYTES: Final = 32 * 2**20
"""Size, as Python's objects, above which a block is divided."""
_ITEM_BYTES: Final = 64
"""Size of a small object of Python in a list or a dict."""
_SUFFIXES: Final = (".parquet", ".pq")
_STATE: Final = "state.json"
_SPLITS: Final = "dataset_dict.json"
_SAVED: Final = (_STATE, _SPLITS)


def _parquet(path: Path) -> Iterator[dict[str, object]]:
    parquet = _module("pyarrow.parquet", "Reading a Parquet file")
    with _as_data_error(path):
        if not path.is_file():
            raise no_such_file(path)
    with _as_data_error(path):
        metadata = parquet.read_metadata(path, memory_map=True)
        if metadata.num_rows > max(FREE_ROWS, path.stat().st_size):
            raise too_many_rows(path.name)
        if metadata.num_columns > MAX_COLUMNS:
            needed, got = f"at most {MAX_COLUMNS:,} columns", f"{metadata.num_columns:,}"
            raise DataError.of(Problem(needed, got, source=path.name))
    with _as_data_error(path), parquet.ParquetFile(path, memory_map=True, metadata=metadata) as file:
        check_once(file.schema_arrow.names)
        _check_unpacked(metadata, path)
        # texts stay in their dictionary, where a text that is repeated in every row is held once
        texts = [file.schema.column(place) for place in range(len(file.schema))]
        named = [each.path for each in texts if each.physical_type == "BYTE_ARRAY"]
    with _as_data_error(path), parquet.ParquetFile(path, memory_map=True, read_dictionary=named) as file:
        yield from _bounded(file.iter_batches(batch_size=_ROWS), path)


def _check_unpacked(metadata: Any, path: Path) -> None:  # Any: pyarrow.parquet.FileMetaData
    """Raise DataError if a column takes far more bytes than its packed form can honestly hold."""
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for place in range(row_group.num_columns):
            column = row_group.column(place)
            packed, size = column.total_compressed_size, column.total_uncompressed_size
            if size > RATIO_BYTES and size > MAX_RATIO * packed:
                needed = f"columns that become at most {MAX_RATIO} times larger when they are unpacked"
                got = f"{packed:,} bytes that become {size:,} in the column {column.path_in_schema!r}"
                raise DataError.of(Problem(needed, got, source=path.name))


def _bounded(batches: Iterable[Any], path: Path) -> Iterator[dict[str, object]]:  # Any: pyarrow.RecordBatch
    """Yield the rows of batches. Raises DataError for more rows than bytes, and for a row that is too large."""
    packed, number, unpacked = path.stat().st_size, 0, 0
    most = max(FREE_ROWS, packed)
    for batch in batches:
        number += batch.num_rows
        if number > most:
            raise too_many_rows(path.name)
        check_once(batch.schema.names)
        for start in range(0, batch.num_rows, _ROWS):
            block = batch.slice(start, _ROWS)
            unpacked += sum(map(_size, block.columns))
            if unpacked > RATIO_BYTES and unpacked > MAX_RATIO * packed:
                needed = f"rows that take at most {MAX_RATIO} times more bytes than the file"
                raise DataError.of(Problem(needed, "more: they repeat the same texts", source=path.name))
            yield from _small(block, path)


def _small(batch: Any, path: Path) -> Iterator[dict[str, object]]:  # Any: pyarrow.RecordBatch
    size = sum(map(_size, batch.columns))
    if size <= _BLOCK_BYTES:
        yield from batch.to_pylist()
    elif batch.num_rows > 1:
        half = batch.num_rows // 2
        yield from _small(batch.slice(0, half), path)
        yield from _small(batch.slice(half), path)
    elif size <= MAX_LINE_BYTES:
        yield from batch.to_pylist()
    else:
        needed = f"rows of at most {MAX_LINE_BYTES:,} bytes"
        raise DataError.of(Problem(needed, "a longer one", source=path.name))


def _size(array: Any) -> int:  # Any: a pyarrow array
    """Return about how many bytes the values of an array take as Python's objects, without making them."""
    arrow, compute = _module("pyarrow", "Reading a table"), _module("pyarrow.compute", "Reading a table")
    if isinstance(array, arrow.ExtensionArray):
        array = array.storage
    kind = array.type
    if arrow.types.is_dictionary(kind):
        texts = (arrow.types.is_string, arrow.types.is_binary, arrow.types.is_large_string, arrow.types.is_large_binary)
        if not any(is_text(kind.value_type) for is_text in texts):
            return _ITEM_BYTES * len(array) + int(array.dictionary.nbytes)
        lengths = compute.binary_length(array.dictionary).cast("int64")
        return _ITEM_BYTES * len(array) + int(compute.sum(lengths.take(array.indices)).as_py() or 0)
    if arrow.types.is_struct(kind):
        return _ITEM_BYTES * len(array) + sum(_size(each) for each in array.flatten())
    if arrow.types.is_nested(kind):
        if not hasattr(array, "flatten"):
            raise NotImplementedError(f"a column of type {kind}")  # as pyarrow does; the caller makes it DataError
        inner = array.flatten()
        return _ITEM_BYTES * len(array) + (
            _size(inner) if len(inner) * _ITEM_BYTES <= MAX_LINE_BYTES else MAX_LINE_BYTES + len(inner)
        )
    if arrow.types.is_run_end_encoded(kind):
        raise NotImplementedError(f"a column of type {kind}")  # as above
    return _ITEM_BYTES * len(array) + int(array.nbytes)


def _saved(path: Path) -> Iterator[dict[str, object]]:
    if not (path / _STATE).is_file():
        raise DataError.of(_several_splits(path))
    arrow = _module("pyarrow", "Reading a folder of save_to_disk")
    with _as_data_error(path):
        state = json.loads((path / _STATE).read_text(encoding="utf-8"))
        for each in state["_data_files"]:
            file = path / Path(each["filename"]).name
            with arrow.memory_map(str(file)) as source:
                yield from _bounded(_uncompressed(arrow, source), file)


def _uncompressed(arrow: Any, source: Any) -> Iterator[Any]:  # Any: pyarrow, a file of it, and its batches
    """Yield the batches of an Arrow stream. Raises ValueError for compressed ones, which `datasets` never writes.

    Their unpacked size is not known before they are unpacked.
    """
    for message in arrow.ipc.MessageReader.open_stream(source):
        if message.type == "record batch" and _is_compressed(message.metadata.to_pybytes()):
            raise ValueError("compressed batches; save the data set again, or write it as Parquet")
    source.seek(0)
    yield from arrow.ipc.open_stream(source)


def _is_compressed(metadata: bytes) -> bool:
    """Return True if the header of a record batch names a compression: the fourth field of its Flatbuffers table."""

    def field(table: int, place: int) -> int:
        """Return the position of a field of a table; 0 if it is absent."""
        layout = table - struct.unpack_from("<i", metadata, table)[0]
        size = struct.unpack_from("<H", metadata, layout)[0]
        at = 4 + 2 * place
        offset = struct.unpack_from("<H", metadata, layout + at)[0] if at < size else 0
        return table + offset if offset else 0

    def inner(position: int) -> int:
        return position + int(struct.unpack_from("<I", metadata, position)[0])

    header = field(inner(0), 2)  # Message: version, type of the header, header
    return bool(header and field(inner(header), 3))  # RecordBatch: length, nodes, buffers, compression


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
    except (OSError, ValueError, KeyError, TypeError, NotImplementedError, struct.error) as error:  # from damage
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
