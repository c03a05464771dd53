"""The functions that draw results, by name, so that a result type does not import the code that draws it."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

RENDERERS: Final[dict[tuple[str, str], str]] = {}
"""Result type and form → module and function, which takes the result. `merilo` itself fills it, above all rooms."""


def render(result: object, form: str, **options: object) -> Any:  # Any: text or a data frame
    """Return the result drawn in a form: `text`, `html`, `frame` (a data frame), or one that a command writes."""
    return _drawn(type(result).__name__, form, result, options)


def notebook_html(result: object) -> str:
    """Return what a notebook shows of a result: the text that `print` shows, as HTML."""
    return str(_drawn("object", "notebook", result, {}))


def _drawn(name: str, form: str, result: object, options: dict[str, object]) -> Any:  # Any: as above
    module, _, function = RENDERERS[name, form].partition(":")
    return getattr(import_module(module), function)(result, **options)
