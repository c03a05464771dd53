"""Fragments of HTML that notebooks show, without scripts, styles or external resources, and the writer of pages.

Text of data and models is never markup. It is cleaned as for a terminal, so that no character hides text or reverses
its direction, and then escaped.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from merilo.errors import RunError
from merilo.rendering.sanitize import clean_lines, harmless
from merilo.runs.publish import write_file

if TYPE_CHECKING:
    from pathlib import Path

    from jinja2 import Environment


def rendered(template: str, **values: object) -> str:
    """Return the fragment of HTML that a template renders from these values."""
    return _environment().get_template(f"{template}.html.jinja").render(lines=clean_lines, **values)


def write_page(path: Path, text: str) -> None:
    """Write a page atomically, so that a reader sees the old or the new one. Raises RunError if writing fails."""
    try:
        write_file(path, text)
    except OSError as error:
        raise RunError(f"Cannot write {path} ({error.strerror}); choose another file.") from error


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("merilo.rendering", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_cleaned,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _cleaned(value: object) -> object:
    """Return text that is safe to show; markup that a template made is escaped already and is returned unchanged."""
    return harmless(value) if type(value) is str else value
