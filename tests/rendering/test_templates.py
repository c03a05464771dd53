"""The templates of pages: whatever a value holds, it stays text."""

import re
from importlib.resources import files
from pathlib import Path

import pytest
from each_case import each_case
from jinja2 import UndefinedError, nodes
from page_text import Reader

from merilo.rendering import markup
from merilo.rendering.markup import drawn, page

FOLDER = Path(str(files("merilo.rendering"))) / "templates"
TEMPLATES = sorted(path.name for path in FOLDER.iterdir() if path.suffix in {".html", ".svg"})
HOSTILE = "<script>canary()</script><img src=x onerror=canary()>'\"&lt;\u202eevil\x1b[31m{{ 7*7 }}{% raw %}"


def test_only_our_own_files_are_unescaped() -> None:
    """`safe` marks styles, scripts and the JSON of `json_text` in the frame of a page; nothing else is unescaped."""
    texts = {name: (FOLDER / name).read_text(encoding="utf-8") for name in TEMPLATES}
    marked = [(name, found) for name, text in texts.items() for found in re.findall(r"(\S+)\s*\|\s*safe", text)]
    assert marked == [("page.html", name) for name in ("style", "scripts[0]", "json", "scripts[1]")]
    assert not any(re.search(r"autoescape|\|\s*(tojson|xmlattr|urlize)|__html__", text) for text in texts.values())
    sources = [path.read_text(encoding="utf-8") for path in FOLDER.parent.parent.rglob("*.py")]
    assert not any(re.search(r"\bMarkup\(|markupsafe", source) for source in sources)


@each_case("name", TEMPLATES)
def test_attributes_are_quoted(name: str) -> None:
    """A value in an attribute is between quotes, so that a blank in it starts no other attribute."""
    text = re.sub(r"\{%.*?%\}", "", (FOLDER / name).read_text(encoding="utf-8"))
    assert not re.search(r"=\s*\{\{", re.sub('"[^"]*"', '""', text))
    assert not re.search(r"\son\w+=|javascript:", text)


@each_case("name", TEMPLATES)
def test_every_template_escapes(name: str) -> None:
    """Each output of a template is escaped when it is compiled."""
    found = markup._templates()
    tree = found.parse((FOLDER / name).read_text(encoding="utf-8"))
    assert not list(tree.find_all((nodes.EvalContextModifier, nodes.ScopedEvalContextModifier, nodes.MarkSafe)))
    assert found.autoescape is True


def test_a_hostile_value_is_text_and_adds_no_attribute() -> None:
    """In text and in attributes, with its control characters visible; template syntax in it is not run."""
    read = Reader(page("error.html", served=True, title=HOSTILE, message=HOSTILE))
    assert {tag for tag, _ in read.elements} == set("html head meta title style body nav a main h1 p footer".split())
    assert read.text.count("<script>canary()") == 3
    assert "U+202Eevil" in read.text
    assert "{{ 7*7 }}" in read.text
    shown = {"label": HOSTILE, "lines": [{"band": HOSTILE, "path": HOSTILE, "end": HOSTILE}]}
    trend = Reader(markup._templates().get_template("parts.html").module.trend(shown))  # type: ignore[attr-defined]
    (svg,), paths = trend.all("svg"), trend.all("path")
    assert set(svg) == {"viewbox", "preserveaspectratio", "role", "aria-label"}
    assert {tuple(each) for each in paths} == {("class", "d")}
    assert "U+202Eevil" in str(svg["aria-label"])


def test_a_value_that_is_missing_is_an_error() -> None:
    """A template never leaves out a value because its name is wrong."""
    with pytest.raises(UndefinedError):
        drawn("error.html", title="x")
