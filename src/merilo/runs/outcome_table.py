"""Outcomes as a Parquet file: one row for each line of `outcomes.jsonl`, in the same order.

::

    sample, metric, outcome, value, reason    what other tools read
    record                                    the line itself, without its end

Readers of merilo use `record` alone, so both forms give them the same bytes. `merilo verify` compares the other columns
with it. The bytes of the file depend on the version of pyarrow; the lines do not. Needs the extra `parquet`.
"""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from merilo.errors import RunError
from merilo.extras import optional_module

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

ROWS: Final = 10_000
"""Rows of one row group, which a reader holds at once. A merge holds one of each shard."""
_LINES: Final = 1_000
"""Lines that are turned into Python objects at once."""


def write_table(lines: Iterable[bytes], path: Path) -> None:
    """Write the lines of outcomes as a Parquet file. Raises UsageError without pyarrow, RunError for other lines."""
    arrow, parquet = _modules()
    schema = _schema(arrow)
    rest = iter(lines)
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        while group := list(islice(rest, ROWS)):
            writer.write_table(arrow.table(_columns(group, arrow), schema=schema), row_group_size=ROWS)


def table_lines(path: Path, *, reopen: bool = False) -> Iterator[bytes]:
    """Yield the lines that `write_table` wrote. Raises OSError or ValueError for another file.

    `reopen`: as in `outcome_lines`.
    """
    arrow, _ = _modules()
    for group in _groups(path, ["record"], reopen=reopen):
        records = group.column("record").cast(arrow.binary())
        for start in range(0, len(records), _LINES):
            for line in records.slice(start, _LINES).to_pylist():
                yield _ended(line)


def table_fault(path: Path) -> str | None:
    """Return what is wrong with the columns of a table whose lines are right; None if nothing is.

    Raises OSError or ValueError if the file cannot be read.
    """
    arrow, _ = _modules()
    for number, group in enumerate(_groups(path, None)):
        lines = [_ended(line) for line in group.column("record").cast(arrow.binary()).to_pylist()]
        if not group.equals(arrow.table(_columns(lines, arrow), schema=_schema(arrow))):
            return f"the columns of row group {number:,} do not follow from its records"
    return None


def _groups(path: Path, columns: list[str] | None, *, reopen: bool = False) -> Iterator[Any]:  # Any: tables of pyarrow
    """Yield these columns of each row group; None: all columns."""
    _, parquet = _modules()
    with path.open("rb") as file:
        source = parquet.ParquetFile(file)
        metadata = source.metadata
        for number in range(0 if reopen else metadata.num_row_groups):
            yield source.read_row_group(number, columns=columns, use_threads=False)
    for number in range(metadata.num_row_groups if reopen else 0):
        with path.open("rb") as file:
            source = parquet.ParquetFile(file, metadata=metadata)
            group = source.read_row_group(number, columns=columns, use_threads=False)
        yield group


def _ended(line: bytes | None) -> bytes:
    if line is None:
        raise ValueError("a record is missing")
    return line + b"\n"


def _columns(lines: Sequence[bytes], arrow: Any) -> dict[str, Any]:  # Any: pyarrow
    """Return the columns of these lines. Raises RunError for a line that is not an outcome."""
    try:
        texts = [line.decode() for line in lines]
        records: list[dict[str, Any]] = [json.loads(text) for text in texts]  # Any: JSON
        if not texts[-1].endswith("\n"):
            raise ValueError("the last line has no end")  # noqa: TRY301  reported as the others
        found: dict[str, list[object]] = {
            "sample": [each["sample"] for each in records],
            "metric": [each["metric"] for each in records],
            "outcome": [each["outcome"] for each in records],
            "value": [each.get("value") for each in records],
            "reason": [each.get("reason") or each.get("error", {}).get("message") for each in records],
            "record": [text[:-1] for text in texts],
        }
        return {name: arrow.array(values, _schema(arrow).field(name).type) for name, values in found.items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RunError(f"An outcome cannot be written as Parquet ({error}). Use --outcomes jsonl.") from error


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
