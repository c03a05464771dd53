"""The functions that draw results, by name, so that a result type does not import the code that draws it."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

RENDERERS: Final = {
    ("Run", "frame"): "merilo.rendering.notebook:run_frame",
    ("Run", "html"): "merilo.rendering.notebook:run_table",
    ("Run", "text"): "merilo.rendering.summary:run_text",
    ("RunComparison", "frame"): "merilo.commands.compare.record:comparison_frame",
    ("RunComparison", "html"): "merilo.commands.compare.html:comparison_table",
    ("RunComparison", "text"): "merilo.commands.compare.text:comparison_text",
}
"""Result type and form → module and function, which takes the result."""


def render(result: object, form: str) -> Any:  # Any: text, or a data frame of pandas
    """Return the result drawn in a form: `text`, `html` or `frame` (a pandas data frame)."""
    module, _, function = RENDERERS[type(result).__name__, form].partition(":")
    return getattr(import_module(module), function)(result)
