"""Outcomes as a Parquet file: one row for each line of `outcomes.jsonl`, in the same order.

::

    sample, metric, outcome, value, reason    what other tools read
    record                                    the line itself, without its end

Readers of merilo use `record` alone, so both forms give them the same bytes. `merilo verify` compares the other columns
with it. The bytes of the file depend on the version of pyarrow; the lines do not. Needs the extra `parquet`.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from merilo.errors import RunError
from merilo.extras import optional_module

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence
    from pathlib import Path

ROWS: Final = 10_000
"""Rows of one row group, which a reader holds at once. A merge holds one of each shard."""
GROUP_BYTES: Final = 64 * 2**20
"""Bytes of lines after which a row group ends early, for outcomes with very long texts."""
_MAX_GROUP_BYTES: Final = 2**30
"""Unpacked bytes of a row group above which a table is refused: a small file can unpack to terabytes."""
_LINES: Final = 1_000
"""Lines that are turned into Python objects at once."""


def write_table(lines: Iterable[bytes], path: Path) -> None:
    """Write the lines of outcomes as a Parquet file. Raises UsageError without pyarrow, RunError for other lines."""
    arrow, parquet = _modules()
    schema = _schema(arrow)
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for group in _grouped(lines):
            writer.write_table(arrow.table(_columns(group, arrow), schema=schema), row_group_size=ROWS)


def _grouped(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield the lines of each row group."""
    group: list[bytes] = []
    size = 0
    for line in lines:
        group.append(line)
        size += len(line)
        if len(group) == ROWS or size >= GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def table_lines(path: Path, *, reopen: bool = False) -> Iterator[bytes]:
    """Yield the lines that `write_table` wrote. Raises OSError or ValueError for another file.

    `reopen`: as in `outcome_lines`.
    """
    arrow, _ = _modules()
    with _as_value_error(arrow):
        for group in _groups(path, ["record"], reopen=reopen):
            records = group.column("record")
            for start in range(0, len(records), _LINES):
                for line in _values(records.slice(start, _LINES), arrow, arrow.binary()):
                    yield _ended(line)


def table_fault(path: Path) -> str | None:
    """Return what is wrong with the columns of a table whose lines are right; None if nothing is.

    Raises OSError or ValueError if the file cannot be read.
    """
    arrow, _ = _modules()
    with _as_value_error(arrow):
        for number, group in enumerate(_groups(path, None)):
            lines = [_ended(line) for line in _values(group.column("record"), arrow, arrow.binary())]
            for name, values in _fields(lines).items():
                if _values(group.column(name), arrow, _schema(arrow).field(name).type) != values:
                    return f"the columns of row group {number:,} do not follow from its records"
    return None


@contextmanager
def _as_value_error(arrow: Any) -> Generator[None]:  # Any: pyarrow
    """Turn the other errors that pyarrow raises for a damaged file into ValueError."""
    try:
        yield
    except (OSError, ValueError):
        raise
    except (arrow.ArrowException, AttributeError, KeyError, TypeError) as error:
        raise ValueError(str(error.args[0] if error.args else error)) from error


def _groups(path: Path, columns: list[str] | None, *, reopen: bool = False) -> Iterator[Any]:  # Any: tables of pyarrow
    """Yield these columns of each row group; None: all columns.

    Texts are read as dictionaries, because a file of 1 kB can repeat one text of 1 MB ten thousand times.
    """
    arrow, parquet = _modules()
    texts = [field.name for field in _schema(arrow) if field.type == arrow.string()]
    with path.open("rb") as file:
        metadata = _checked_metadata(parquet.ParquetFile(file), arrow)
        source = parquet.ParquetFile(file, metadata=metadata, read_dictionary=texts)
        for number in range(0 if reopen else metadata.num_row_groups):
            yield source.read_row_group(number, columns=columns, use_threads=False)
    for number in range(metadata.num_row_groups if reopen else 0):
        with path.open("rb") as file:
            source = parquet.ParquetFile(file, metadata=metadata, read_dictionary=texts)
            group = source.read_row_group(number, columns=columns, use_threads=False)
        yield group


def _checked_metadata(source: Any, arrow: Any) -> Any:  # Any: pyarrow
    """Return the metadata of a table. Raises ValueError for one that `write_table` would not write."""
    if not source.schema_arrow.equals(_schema(arrow)):
        raise ValueError(f"its columns are not {', '.join(_schema(arrow).names)}")
    metadata = source.metadata
    for number in range(metadata.num_row_groups):
        if metadata.row_group(number).total_byte_size > _MAX_GROUP_BYTES:
            raise ValueError(f"row group {number:,} unpacks to more than {_MAX_GROUP_BYTES:,} bytes")
    return metadata


def _values(column: Any, arrow: Any, kind: Any) -> list[Any]:  # Any: a column and a type of pyarrow, and its values
    """Return the values of a column as Python objects of this type; equal texts are one object."""
    found: list[Any] = []
    for chunk in column.chunks:
        if isinstance(chunk, arrow.DictionaryArray):
            used = chunk.indices.unique().drop_null()
            values = dict(zip(used.to_pylist(), chunk.dictionary.take(used).cast(kind).to_pylist(), strict=True))
            found += map(values.get, chunk.indices.to_pylist())
        else:
            found += chunk.cast(kind).to_pylist()
    return found


def _ended(line: bytes | None) -> bytes:
    if line is None:
        raise ValueError("a record is missing")
    return line + b"\n"


def _columns(lines: Sequence[bytes], arrow: Any) -> dict[str, Any]:  # Any: pyarrow
    """Return the columns of these lines. Raises RunError for a line that is not an outcome."""
    try:
        if not lines[-1].endswith(b"\n"):
            raise ValueError("the last line has no end")  # noqa: TRY301  reported as the others
        schema = _schema(arrow)
        return {name: arrow.array(values, schema.field(name).type) for name, values in _fields(lines).items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RunError(f"An outcome cannot be written as Parquet ({error}). Use --outcomes jsonl.") from error


def _fields(lines: Sequence[bytes]) -> dict[str, list[object]]:
    """Return the values of each column. Raises AttributeError, KeyError, TypeError or ValueError for other lines."""
    texts = [line.decode() for line in lines]
    records: list[dict[str, Any]] = [json.loads(text) for text in texts]  # Any: JSON
    return {
        "sample": [each["sample"] for each in records],
        "metric": [each["metric"] for each in records],
        "outcome": [each["outcome"] for each in records],
        "value": [each.get("value") for each in records],
        "reason": [each.get("reason") or each.get("error", {}).get("message") for each in records],
        "record": [text[:-1] for text in texts],
    }


def _schema(arrow: Any) -> Any:  # Any: pyarrow
    names = ("sample", "metric", "outcome", "reason", "record")
    types = {name: arrow.string() for name in names} | {"value": arrow.float64()}
    order = ("sample", "metric", "outcome", "value", "reason", "record")
    return arrow.schema([(name, types[name]) for name in order])


def _modules() -> tuple[Any, Any]:  # Any: pyarrow has no types
    """Return pyarrow and its Parquet module. Raises UsageError if they are not installed."""
    needs = "A run with its outcomes as Parquet"
    return tuple(
        optional_module(name, wanted_by=needs, install="merilo[parquet]") for name in ("pyarrow", "pyarrow.parquet")
    )


def check_installed() -> None:
    """Raise UsageError if pyarrow is not installed."""
    _modules()
