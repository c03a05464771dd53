"""Excel workbooks, written with XlsxWriter, which never reads a file and writes only what it is given."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any, Final

from merilo.data.csv_escaping import escaped
from merilo.errors import UsageError
from merilo.extras import optional_module
from merilo.results.sample_table import Cell, Kind, cell_text

if TYPE_CHECKING:
    from merilo.commands.export.run import Written
    from merilo.results.sample_table import SampleTable

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
