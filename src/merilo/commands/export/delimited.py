"""CSV and JSON Lines, written sample by sample, so that a run of any size needs little memory."""

from __future__ import annotations

import csv
import io
import json
from typing import IO, TYPE_CHECKING

from merilo.data.csv_escaping import escaped
from merilo.results.sample_table import Cell, Kind, cell_text

if TYPE_CHECKING:
    from merilo.commands.export.run import Written
    from merilo.results.sample_table import SampleTable


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


def _csv_cell(cell: Cell, kind: Kind) -> str:
    found = cell_text(cell, kind)
    if found is None:
        return ""
    return escaped(found) if isinstance(found, str) else repr(found)
