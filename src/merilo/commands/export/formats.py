"""The file formats of an exported table: CSV, JSON Lines, Parquet and Excel workbooks.

Rows are written sample by sample or in groups, so that a run of any size needs little memory.
"""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, Final

from merilo.data.csv_escaping import escaped
from merilo.errors import UsageError
from merilo.extras import optional_module
from merilo.results.sample_table import Cell, Kind, cell_text

if TYPE_CHECKING:
    from merilo.results.sample_table import SampleTable

_GROUP_ROWS: Final = 10_000
"""Rows of a group of a Parquet file."""
MAX_ROWS: Final = 1_048_576
MAX_COLUMNS: Final = 16_384
MAX_CHARACTERS: Final = 32_767
"""Limits of a sheet. Characters are UTF-16 units, as Excel counts them."""
_CUT: Final = " [truncated]"
_CREATED: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""The date in every workbook, so that the same run gives the same bytes."""
_LINE_END: Final = re.compile(r"\r\n?")
_ILLEGAL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that XML 1.0 does not allow."""


@dataclass(slots=True)
class Written:
    """The amounts that a writer counts while it writes."""

    samples: int = 0
    truncated: int = 0
    """Number of cells whose text was too long for the format."""
    events: int = 0
    """Number of events; 0 for a table."""


def write_csv(table: SampleTable, file: IO[bytes], written: Written) -> None:
    """Write the table as CSV: UTF-8, a line of names first, texts defused for spreadsheets."""
    text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="", write_through=True)
    # with \r\n, \r alone is quoted too: Python before 3.13 quotes only the characters of the line end
    rows = csv.writer(text, lineterminator="\r\n")
    kinds = [column.kind for column in table.columns]
    rows.writerow([escaped(column.name) for column in table.columns])
    for row in table.rows():
        rows.writerow([_csv_cell(cell, kind) for cell, kind in zip(row, kinds, strict=True)])
        written.samples += 1
    text.detach()  # the caller flushes and closes the file


def write_jsonl(table: SampleTable, file: IO[bytes], written: Written) -> None:
    """Write one JSON object per sample, with all columns; a missing value is null, lists and objects stay as they are.

    Nothing is defused: a JSON file is not opened as a spreadsheet.
    """
    names = [column.name for column in table.columns]
    for row in table.rows():
        line = json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False, separators=(",", ":"))
        file.write(line.encode("utf-8", "backslashreplace") + b"\n")
        written.samples += 1


def write_parquet(table: SampleTable, file: IO[bytes], written: Written) -> None:
    """Write the table as Parquet: texts as strings, contexts as 64-bit integers, scores as doubles."""
    arrow, parquet = (
        optional_module(name, wanted_by="A .parquet file", install="merilo[parquet]")
        for name in ("pyarrow", "pyarrow.parquet")
    )
    types: dict[Kind, Any] = {Kind.COUNT: arrow.int64(), Kind.SCORE: arrow.float64()}  # Any: types of pyarrow
    schema = arrow.schema([(column.name, types.get(column.kind, arrow.string())) for column in table.columns])
    rows = table.rows()
    with parquet.ParquetWriter(file, schema) as writer:
        while group := [*islice(rows, _GROUP_ROWS)]:
            arrays = [
                arrow.array([cell_text(row[at], column.kind) for row in group], type=schema.field(at).type)
                for at, column in enumerate(table.columns)
            ]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))
            written.samples += len(group)


def write_xlsx(table: SampleTable, file: IO[bytes], written: Written) -> None:
    """Write the table as a workbook with one sheet. Raises UsageError if it has too many rows or columns."""
    if table.run.done >= MAX_ROWS or len(table.columns) > MAX_COLUMNS:
        raise UsageError(
            f"A sheet holds {MAX_ROWS - 1:,} samples and {MAX_COLUMNS:,} columns; the run has {table.run.done:,} and "
            f"{len(table.columns):,}. Export it as .csv or .parquet."
        )
    library = optional_module("xlsxwriter", wanted_by="An .xlsx file", install="merilo[xlsx]")
    book = library.Workbook(file, {"constant_memory": True})
    try:
        _fill(book, table, written)
    finally:
        try:
            book.close()  # also removes the temporary files of the library
        except library.exceptions.FileCreateError as error:
            raise OSError(str(error)) from error


def _fill(book: Any, table: SampleTable, written: Written) -> None:  # Any: XlsxWriter
    book.set_properties({"created": _CREATED})
    sheet = book.add_worksheet("samples")
    sheet.freeze_panes(1, 1)
    for at, column in enumerate(table.columns):
        _write(sheet, (0, at), column.name, Kind.TEXT, written)
    for number, row in enumerate(table.rows(), 1):
        for at, (cell, column) in enumerate(zip(row, table.columns, strict=True)):
            _write(sheet, (number, at), cell, column.kind, written)
        written.samples += 1


def _write(sheet: Any, place: tuple[int, int], cell: Cell, kind: Kind, written: Written) -> None:  # Any: XlsxWriter
    whole = cell_text(cell, kind)
    if isinstance(whole, int | float):
        sheet.write_number(*place, whole)
    elif whole:
        text = legal(whole)
        kept = fitting(escaped(text))
        written.truncated += not kept.endswith(text)
        sheet.write_string(*place, kept)


def legal(text: str) -> str:
    r"""Return the text with line ends as \n, and characters that a workbook cannot hold as codes such as `\x1b`."""
    return _ILLEGAL.sub(_code, _LINE_END.sub("\n", text))


def _code(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def fitting(text: str) -> str:
    """Return the text, truncated with a note if it is too long for a cell."""
    units = text.encode("utf-16-le")
    if len(units) <= 2 * MAX_CHARACTERS:
        return text
    return units[: 2 * (MAX_CHARACTERS - len(_CUT))].decode("utf-16-le", "ignore") + _CUT


def _csv_cell(cell: Cell, kind: Kind) -> str:
    found = cell_text(cell, kind)
    if found is None:
        return ""
    return escaped(found) if isinstance(found, str) else repr(found)
