"""HTML pages from the templates next to this module: every text is escaped, so text of data and models is never markup.

Pages with scripts hold their data as JSON, written by `json_text`; scripts show it as text only.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import zlib
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from merilo.data.sanitize import visible
from merilo.numbers import count, number, percent, span
from merilo.runs.files import write_file, writing
from merilo.version import version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from jinja2 import Environment

    from merilo.runs.run import Run


_MARK_SCRIPTS: Final = "document.documentElement.classList.add('js')"
"""Hides the plain copy before it is drawn. A page whose scripts are blocked keeps it."""
_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_ESCAPED: Final = re.compile(r"\\(?:[bfr]|u00)")
"""Matches a control character, other than a tab or the end of a line, as JSON writes it."""


@cache
def _templates() -> Environment:
    """Return the templates, which escape every value and show unsafe characters of texts as `U+202E`."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # slow to import

    found = Environment(
        autoescape=True,
        finalize=_shown,
        keep_trailing_newline=True,
        loader=FunctionLoader(_asset),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    names: dict[str, Any] = found.globals  # Any: what templates may use
    names |= {"amount": "{:,}".format, "count": count, "number": number, "span": span, "version": version}
    found.filters["digest"] = _digest
    names["pieces"] = re.compile(r"(?<=[_(])").split
    return found


def _shown(value: object) -> object:
    if value is None:
        return ""
    return visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def drawn(template: str, **values: object) -> str:
    """Return a template with these values; one of None is blank."""
    return _templates().get_template(template).render(values)


def page(
    template: str,
    data: Mapping[str, object] | None = None,
    *,
    scripts: Sequence[str] = (),
    sheet: str = "",
    served: bool = False,
    **values: object,
) -> str:
    """Return a whole page: a template that extends `page.html`, with JSON `data` by the id of its element.

    The content security policy allows merilo's own style and scripts by digest, and no request. `scripts`: files that
    become one script. `sheet`: a style sheet in addition to that of the report. `served`: a page of our own server,
    which may ask that server for more.
    """
    style = _asset("report.css") + (_asset(sheet) if sheet else "")
    codes = [_MARK_SCRIPTS, "\n".join(map(_asset, scripts))] if scripts else []
    texts = {name: json_text(each) for name, each in (data or {}).items()}
    return drawn(template, style=style, scripts=codes, data=texts, served=served, **values)


def _digest(text: str) -> str:
    """Return the source expression by which a content security policy allows a script or style with this text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _asset(name: str) -> str:
    """Return the text of a style sheet or script."""
    return files("merilo.rendering").joinpath("templates", name).read_text(encoding="utf-8")


def json_text(value: object) -> str:
    r"""Return the value as compact JSON for a script element: `<`, `>` and `&` are written as `\u003c` and so on."""
    text = _encode(value)
    if not text.isprintable() or _ESCAPED.search(text):
        text = _encode(safe(value))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def packed(value: object) -> str:
    """Return the value as JSON, compressed (zlib) and encoded as base64."""
    return base64.b64encode(zlib.compress(json_text(value).encode(), 6)).decode()


def safe(value: object) -> object:
    """Return JSON-able data in which every text is `visible`."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        fields = cast("dict[object, object]", value)  # isinstance tells nothing of keys and values
        return {visible(str(key)): safe(each) for key, each in fields.items()}
    if isinstance(value, list | tuple):
        return [safe(each) for each in cast("list[object]", value)]  # as above
    return value


def write_page(path: Path, text: str) -> None:
    """Write a page atomically, so that a reader sees the old or the new one. Raises RunError if writing fails."""
    with writing(path):
        write_file(path, text)


def printed_html(result: object) -> str:
    """Return what `print` shows of a result as HTML, everything in it escaped."""
    return f"<pre>{html.escape(visible(str(result)))}</pre>"


_AXIS, _VALUES, _TOP, _ROW = 300, 170, 34, 26
"""Pixels: the widths of the axis and of the numbers next to it, and the heights of the title and of a row."""
_TICKS: Final = 4


@dataclass(frozen=True, slots=True)
class IntervalPlot:
    """A figure; a notebook shows it, `save` writes it, and `svg` is its text."""

    svg: str = field(repr=False)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the figure to a file (.svg) and return its path. Raises RunError if writing fails."""
        write_page(Path(path), self.svg)
        return Path(path)

    def _repr_svg_(self) -> str:
        """Return the figure for notebooks."""
        return self.svg


def run_plot(run: Run) -> IntervalPlot:
    """Return the figure: one row per metric, with the mean and interval that every page shows."""
    rows = [run[metric] for metric in run.metrics]
    ends = [0.0, 1.0, *(each for row in rows for each in (row.mean, *(row.interval or ())) if each is not None)]
    low, high = float(min(ends)), float(max(ends))
    left, bottom = 24 + 7 * max(len(row.metric) for row in rows), _TOP + _ROW * len(rows)

    def at(value: float) -> float:
        return round(left + (value - low) / (high - low) * _AXIS, 1)

    levels = ", ".join(dict.fromkeys(percent(row.level) for row in rows))
    title = f"{run.path.resolve().name}: means with {levels} intervals, {run.done:,} samples"
    steps = [low + (high - low) * place / _TICKS for place in range(_TICKS + 1)]
    ticks = [(at(each), f"{each:.3g}") for each in steps]
    shown = [
        {
            "metric": row.metric,
            "y": _TOP + _ROW * (place + 0.5),
            "interval": row.interval and [*map(at, row.interval)],
            "mean": None if row.mean is None else at(row.mean),
            "text": f"{number(row.mean)} ({'no interval' if row.interval is None else span(row.interval)})",
        }
        for place, row in enumerate(rows)
    ]
    size = {"left": left, "right": left + _AXIS, "top": _TOP, "bottom": bottom, "width": left + _AXIS + _VALUES}
    return IntervalPlot(drawn("plot.svg", title=title, ticks=ticks, rows=shown, **size))
