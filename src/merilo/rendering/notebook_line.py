"""Progress in a Jupyter notebook: one output below the cell, replaced with each update.

IPython is never imported: in a notebook it is loaded already. The text is plain, so nothing in it can be markup.
"""

from __future__ import annotations

import sys
from typing import Any


class NotebookLine:
    """One output of a notebook cell that is replaced; it keeps its last text."""

    def __init__(self) -> None:
        self._shown = ""
        self._handle: Any = None  # Any: a DisplayHandle of IPython, which has no types here

    def show(self, text: str) -> None:
        """Show this text in place of the one before."""
        if text == self._shown:
            return
        self._shown, content = text, {"text/plain": text}
        if self._handle is None:
            self._handle = _display_module().display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)


def in_notebook() -> bool:
    """Return True if the code runs in a kernel of Jupyter, whose front end can replace an output."""
    if "IPython" not in sys.modules:
        return False
    shell: Any = sys.modules["IPython"].get_ipython()  # Any: no types
    return getattr(shell, "kernel", None) is not None


def _display_module() -> Any:  # Any: as above
    from importlib import import_module

    return import_module("IPython.display")
