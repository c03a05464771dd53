"""Lists that stand in one cell of a table."""

import ast
import json
import re
from typing import Final

from merilo.data import check

_MOST_LITERAL_CHARS: Final = 5_000_000  # Python's own parser takes a hundred times the memory of its text
_LITERAL: Final = re.compile(r"""\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\s*""", re.DOTALL)


def list_in_cell(cell: str) -> list[object] | None:
    """The list that a cell holds, as JSON or as Python writes it; None where it is neither."""
    try:
        value: object = json.loads(cell)
    except (ValueError, RecursionError):
        value = _python_texts(cell)
        if value is None and "{" in cell and len(cell) <= _MOST_LITERAL_CHARS:
            try:
                value = ast.literal_eval(cell.strip())
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                return None
    return [*value] if check.is_list(value) else None


def _python_texts(cell: str) -> list[object] | None:
    """The texts of a Python list of texts; None for anything else, also for numpy's lists without commas.

    Python itself would read those as one long text.
    """
    inner = cell.strip()
    if not (inner.startswith("[") and inner.endswith("]")):
        return None
    texts: list[object] = []
    position, end = 1, len(inner) - 1
    while position < end:
        found = _LITERAL.match(inner, position, end)
        if found is None or (found.end() < end and inner[found.end()] != ","):
            return None
        try:
            texts.append(ast.literal_eval(found[1]))
        except (ValueError, SyntaxError, MemoryError):
            return None
        position = found.end() + 1
    return texts
