"""HTML built from elements: every text is escaped by one function, so text of data and models is never markup.

Used by pages with scripts. Their data is JSON in the page, written by `json_text`; scripts show it as text only.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import zlib
from importlib.resources import files
from typing import TYPE_CHECKING, Final, cast

from merilo.rendering.explain import sample_texts, values
from merilo.rendering.page import Page, cut
from merilo.rendering.sanitize import visible
from merilo.rendering.weak import WeakMarks
from merilo.runs.files import write_file, writing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from merilo.data.sample import Sample
    from merilo.metrics.base import Outcome
    from merilo.runs.run import SampleResult


MARK_SCRIPTS: Final = "document.documentElement.classList.add('js')"
"""Hides the plain copy before it is drawn. A page whose scripts are blocked keeps it."""
_VOID = frozenset({"meta", "br", "input"})
_CLOSED = frozenset({"line", "rect", "circle", "polyline"})
"""Elements of SVG without children."""
_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_ESCAPED: Final = re.compile(r"\\(?:[bfr]|u00)")
"""Matches a control character, other than a tab or the end of a line, as JSON writes it."""


class Markup(str):
    """HTML that is already escaped."""

    __slots__ = ()


def escaped(text: str) -> Markup:
    """Return the text as HTML: markup characters escaped, control and bidirectional characters shown as `U+202E`."""
    return Markup(html.escape(visible(text), quote=True))


def el(tag: str, *children: object, cls: str = "", **attributes: object) -> Markup:
    """Return an element.

    Children are texts, numbers, elements or lists of them. An attribute of None or False is omitted, one of True has
    no value; `_` in its name becomes `-`.
    """
    named = {"class": cls or None, **attributes}
    given = "".join(_attribute(name.strip("_").replace("_", "-"), value) for name, value in named.items())
    if tag in _VOID:
        return Markup(f"<{tag}{given}>")
    if tag in _CLOSED:
        return Markup(f"<{tag}{given}/>")
    return Markup(f"<{tag}{given}>{joined(children)}</{tag}>")


def joined(children: Iterable[object]) -> Markup:
    """Return the children as HTML, one after the other."""
    return Markup("".join(map(_child, children)))


def raw_element(tag: str, text: str, **attributes: object) -> Markup:
    """Return a script or style element with merilo's own text, or with JSON from `json_text`, unescaped."""
    given = "".join(_attribute(name.strip("_").replace("_", "-"), value) for name, value in attributes.items())
    return Markup(f"<{tag}{given}>{text}</{tag}>")


def _digest(text: str) -> str:
    """Return the source expression of a content security policy that allows a script or style with this text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def asset(name: str) -> str:
    """Return the text of a style sheet or script."""
    return files("merilo.rendering").joinpath("templates", name).read_text(encoding="utf-8")


def policy(style: str, scripts: Iterable[str], *, served: bool) -> str:
    """Return the content security policy of a page with this style and these scripts, and no request.

    `served`: a page of our own server, which may ask that server for more.
    """
    allowed = " ".join(map(_digest, scripts)) or "'none'"
    own = "connect-src 'self'; form-action 'self'" if served else "form-action 'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src {_digest(style)}; base-uri 'none'; {own}; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )


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


def _attribute(name: str, value: object) -> str:
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escaped(str(value))}"'


def _child(child: object) -> str:
    match child:
        case None:
            return ""
        case Markup():
            return child
        case str() | int() | float():
            return escaped(str(child))
        case _:
            return joined(child)  # type: ignore[arg-type]  # the rest are lists of children


_WIDTH: Final = 100
_TEXT: Final = 500
_CONTEXTS: Final = 10


def write_page(path: Path, text: str) -> None:
    """Write a page atomically, so that a reader sees the old or the new one. Raises RunError if writing fails."""
    with writing(path):
        write_file(path, text)


def printed_html(result: object) -> str:
    """Return what `print` shows of a result as HTML, everything in it escaped."""
    return el("pre", str(result))


def sample_html(sample: Sample) -> str:
    """Return the texts of a sample and its first contexts."""
    return _sample(sample, {})


def result_html(found: SampleResult) -> str:
    """Return the texts of a sample, its first contexts, and its outcomes."""
    return _sample(found.sample, found.outcomes)


def _sample(sample: Sample, outcomes: Mapping[str, Outcome]) -> str:
    page = Page(_WIDTH)
    sample_texts(page, sample)
    contexts = sample.retrieved_contexts or ()
    if contexts:
        page.heading(f"Retrieved contexts: {len(contexts):,}")
        page.entries([(f"{at}.", cut(each.text, _TEXT)) for at, each in enumerate(contexts[:_CONTEXTS], start=1)])
    if outcomes:
        values(page, outcomes, WeakMarks())
    return printed_html(page)
