"""Records of CSV and TSV files: rows with the header's names, with blank cells as None.

Texts in cells are escaped, so that a spreadsheet does not run them as formulas.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Final

from merilo.data import check
from merilo.data.lines import Lines, RawRecord
from merilo.errors import DataError, Problem

_SEPARATOR: Final = re.compile(r"(?:\ufeff)?sep=(.)\s*", re.IGNORECASE)
_QUOTED: Final = re.compile(r'"[^"]*+"')
_ESCAPED_BYTE: Final = re.compile("[\udc80-\udcff]")


def csv_rows(lines: Lines, separator: str | None, name: str, limit: int) -> Iterator[RawRecord]:
    """Yield the rows under the header, each with its first line; `separator` None: detected from the header.

    `limit` is the maximum number of bytes of a row, which may have many lines. Raises DataError for a damaged header
    and for a longer row.
    """
    too_long: list[Problem] = []
    row_so_far = [0, 1]
    texts = _texts(lines, too_long, name, limit, row_so_far)
    first = next((text for text in texts if text.strip()), None)
    if first is not None and (stated := _SEPARATOR.fullmatch(first)):  # Excel states the separator in the first line
        separator, first = stated[1], next((text for text in texts if text.strip()), None)
    if first is None:
        return
    csv.field_size_limit(max(csv.field_size_limit(), limit))  # process-wide; csv has no other limit
    reader = csv.reader(chain([first], texts), delimiter=separator or delimiter(first), strict=True)
    header = _header(reader, name)
    while True:
        place = lines.number + 1
        row_so_far[:] = 0, place
        try:
            row = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            yield RawRecord(place, None, (Problem("a CSV row", f"one that is damaged ({error})"), *too_long))
        else:
            if too_long or any(cell and not cell.isspace() for cell in row):
                yield _csv_record(header, row, place, tuple(too_long))
        too_long.clear()


def _texts(lines: Lines, too_long: list[Problem], name: str, limit: int, row: list[int]) -> Iterator[str]:
    """Yield the lines as text, an empty one for each that is too long; raises DataError for a row of too many bytes.

    Without this limit, a quote that is not closed would make the rest of the file one row, and csv would hold all of
    it. `row`: the bytes of the row so far, and its first line.
    """
    for line in lines:
        if isinstance(line, Problem):
            too_long.append(line)
            yield ""
            continue
        row[0] += len(line)
        if row[0] > limit:
            expected, advice = f"a row of at most {limit:,} bytes", "check for a quote that is not closed"
            raise DataError.of(Problem(expected, "a longer one", None, name, row[1], advice=advice))
        yield line.decode(errors="surrogateescape")  # one bad byte must not end the file


def delimiter(header: str) -> str:
    """Return the separator of a header: a tab if it has one, otherwise the most frequent of `,`, `;` and `|`."""
    bare = _QUOTED.sub("", header)
    # spreadsheets write ';' in many locales, and tabs where a table is copied
    return "\t" if "\t" in bare.strip() else max(",;|", key=bare.count)


def _header(reader: "Iterator[list[str]]", name: str) -> list[str]:
    try:
        header = [cell.strip() for cell in next(reader)]
        if header.count("") > 1:  # columns of a spreadsheet that were never filled
            header = [cell or f"column {place}" for place, cell in enumerate(header, start=1)]
    except csv.Error as error:
        raise DataError.of(Problem("a CSV header", f"one that is damaged ({error})", source=name, line=1)) from error
    if len(header) > check.MAX_COLUMNS:
        raise DataError.of(Problem(f"at most {check.MAX_COLUMNS:,} columns", f"{len(header):,}", source=name, line=1))
    if repeated := [cell for cell, count in Counter(header).items() if count > 1]:
        raise DataError.of(Problem("each column once", f"the column {repeated[0]!r} again", source=name, line=1))
    if (fault := check.text_fault("".join(header))) is not None:
        raise DataError.of(Problem("column names in UTF-8", fault, source=name, line=1))
    return header


def _csv_record(header: list[str], row: list[str], place: int, problems: tuple[Problem, ...]) -> RawRecord:
    if problems or len(row) != len(header):
        shape = Problem(f"a row of {len(header)} cells, as in the header", f"one of {len(row)}")
        return RawRecord(place, None, problems or (shape,))
    for column, cell in zip(header, row, strict=True):
        if not cell.isascii() and (byte := _ESCAPED_BYTE.search(cell)):
            got = f"byte 0x{ord(byte[0]) - 0xDC00:02X}"
            problems += (Problem("UTF-8 text", got, column, advice="save the file as UTF-8"),)
    if not "".join(row).strip(" :-"):  # the rule of a Markdown table
        row = [""] * len(row)
    value: dict[str, object] = {column: cell or None for column, cell in zip(header, row, strict=True)}
    return RawRecord(place, None if problems else value, problems)


_FORMULA: Final = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_ESCAPED: Final = re.compile("'+[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")


def escaped(text: str) -> str:
    """Return the text, with an apostrophe before it if a spreadsheet would run it as a formula.

    `plain` removes the apostrophe.

    Source: OWASP, "CSV Injection": cells that begin with = + - @, a tab or a line end. Also their full-width forms.
    """
    return f"'{text}" if _FORMULA.match(text) else text


def plain(cell: str) -> str:
    """Undo `escaped`; return a cell that was not escaped unchanged."""
    return cell[1:] if _ESCAPED.match(cell) else cell
