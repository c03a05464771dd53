"""Texts of others in the cells of a CSV file, so that no spreadsheet takes one for a formula, and back."""

from __future__ import annotations

import re
from typing import Final

_FORMULA: Final = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_ESCAPED: Final = re.compile("'+[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")


def escaped(text: str) -> str:
    """The text with an apostrophe before it where a spreadsheet would calculate; `plain` takes it away again.

    Source: OWASP, "CSV Injection": cells that begin with = + - @, a tab or a line end; also their full-width forms.
    """
    return f"'{text}" if _FORMULA.match(text) else text


def plain(cell: str) -> str:
    """The text that `escaped` made the cell of; a cell that nobody escaped stays as it is."""
    return cell[1:] if _ESCAPED.match(cell) else cell
