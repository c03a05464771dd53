"""The frame of a report page, and the parts that the report and the comparison share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from merilo.rendering.assets import MARK_SCRIPTS, asset, policy
from merilo.rendering.markup import Markup, el, joined, raw_element
from merilo.version import version

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from merilo.commands.compare.notes import ComparisonNotes
    from merilo.commands.report.result import Caution


def page(
    title: str,
    body: Iterable[Markup],
    scripts: Sequence[str] = (),
    data: Iterable[Markup] = (),
    after: str = "",
    *,
    sheet: str = "",
    served: bool = False,
) -> str:
    """Return a whole page: its body, then `data` and the scripts with these names as one, then `after`.

    The content security policy allows merilo's own style and scripts by digest, and no request. `sheet`: a style sheet
    in addition to that of the report. `served`: a page of our own server, which may ask that server for more.
    """
    style = asset("report.css") + (asset(sheet) if sheet else "")
    scripts = [MARK_SCRIPTS, "\n".join(map(asset, scripts))] if scripts else []
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=policy(style, scripts, served=served)),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", title),
        raw_element("style", style),
        raw_element("script", scripts[0]) if scripts else None,
    )
    parts = [*body, *data, *([raw_element("script", scripts[1])] if scripts else []), Markup(after), _footer()]
    return f"<!doctype html>\n{el('html', head, el('body', _spaced(parts)), lang='en')}\n"


def text(value: str | None, *, tag: str = "span", cls: str = "") -> Markup:
    """Return a text of data or models, isolated and in its own direction."""
    return el(tag, value or "", cls=f"t {cls}".strip(), dir="auto")


def cautions(found: Sequence[Caution]) -> Markup:
    """Return the notes that come before the numbers."""
    return joined(
        el(
            "div",
            el("p", el("b", each.heading), " ", each.text),
            el("details", el("summary", "Details"), el("p", each.more)) if each.more else None,
            cls="note",
            role="note",
        )
        for each in found
    )


def heading(title: str, note: str = "", *, anchor: str | None = None) -> Markup:
    """Return the heading of a section with a note next to it."""
    return el("div", el("h2", title, id=anchor), el("span", note) if note else None, cls="sec")


def drawer(cls: str = "") -> Markup:
    """Return the panel in which scripts show one sample; `broad`: for several runs."""
    return el("div", cls=f"drawer {cls}".strip(), id="drawer", role="dialog", aria_label="Sample", tabindex=-1)


def chip(tone: str, glyph: str, name: str) -> Markup:
    """Return a label in the colour of its meaning, which the character repeats."""
    return el("span", el("span", glyph, aria_hidden="true"), f" {name}", cls=f"chip {tone}")


def notes(groups: Sequence[ComparisonNotes]) -> Markup | None:
    """Return groups of notes, folded; None without any."""
    if not groups:
        return None
    rows = [
        el("section", el("h3", each.heading), el("dl", [_note(name, words) for name, words in each.entries]))
        for each in groups
    ]
    return el("details", el("summary", "Notes on the numbers"), rows, cls="fold notes")


def _note(name: str, words: str) -> Markup:
    return el("div", el("dt", text(name)), el("dd", text(words)))


def _footer() -> Markup:
    return el("footer", f"merilo {version()}", cls="wrap foot")


def _spaced(parts: Iterable[Markup]) -> Markup:
    return Markup("\n" + "\n".join(part for part in parts if part) + "\n")
