"""Static pages: one file each, without scripts or external resources, everything escaped.

Text of data and models is never markup. It is cleaned as for a terminal, so that no character hides text or reverses
its direction, and then escaped. The content security policy in the head allows only our own style sheet, by digest.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from merilo.errors import RunError
from merilo.rendering.sanitize import clean_lines, harmless
from merilo.runs.publish import write_file
from merilo.version import version

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from jinja2 import Environment

_WIDTH, _EDGE = 120, 6


@dataclass(frozen=True, slots=True)
class PlotPosition:
    """A value and its interval as x coordinates in a drawing; None if missing."""

    low: str | None = None
    value: str | None = None
    high: str | None = None


@dataclass(frozen=True, slots=True)
class Plot:
    """Intervals to draw in the last column of a table; they repeat numbers that the cells show."""

    heading: str
    zero: str | None
    rows: tuple[PlotPosition, ...]


def rendered(template: str, **values: object) -> str:
    """Return the page or fragment that a template renders from these values."""
    style = files("merilo.rendering").joinpath("templates", "style.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return (
        _environment()
        .get_template(f"{template}.html.jinja")
        .render(style=style, lines=clean_lines, style_hash=f"sha256-{digest}", version=version(), **values)
    )


def write_page(path: Path, text: str) -> None:
    """Write a page atomically, so that a reader sees the old or the new one. Raises RunError if writing fails."""
    try:
        write_file(path, text)
    except OSError as error:
        raise RunError(f"Cannot write {path} ({error.strerror}); choose another file.") from error


def plot(
    heading: str,
    rows: Iterable[tuple[float | None, tuple[float, float] | None]],
    *,
    ends: tuple[float, float] | None = None,
    zero: float | None = None,
) -> Plot:
    """Return values and their intervals on one common scale.

    `ends`: the scale; None: from the smallest to the largest of the numbers and `zero`.
    """
    found = list(rows)
    reach = [each for value, interval in found for each in (value, *(interval or ())) if each is not None]
    low, high = ends or (min([*reach, zero or 0.0]), max([*reach, zero or 0.0]))
    scale = (_WIDTH - 2 * _EDGE) / (high - low) if high > low else 0.0

    def place(value: float | None) -> str | None:
        return None if value is None else f"{_EDGE + (min(max(value, low), high) - low) * scale:.1f}"

    drawn = (
        PlotPosition(
            *((place(interval[0]), place(value), place(interval[1])) if interval else (None, place(value), None))
        )
        for value, interval in found
    )
    return Plot(heading, place(zero), tuple(drawn))


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
