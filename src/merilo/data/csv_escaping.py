"""Escaping of texts in CSV cells, so that a spreadsheet does not run them as formulas, and its reversal."""

from __future__ import annotations

import re
from typing import Final

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
