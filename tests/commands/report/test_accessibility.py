"""Pages under axe-core, on paper, and in scripts that are read from the right or have no spaces."""

import re
import zlib
from pathlib import Path
from typing import Any

import pytest
from axe import as_opened, violations
from browser import Browser
from faulty_run import AMOUNTS as ALL_AMOUNTS
from faulty_run import faulty, rows

from merilo.commands.compare.run import compare_runs
from merilo.commands.report.run import report_run
from merilo.commands.report.run_page import comparison_page, run_page

pytestmark = pytest.mark.slow  # they start processes
OTHER_SCRIPTS = {
    "arabic": "\u0645\u062a\u0649 \u0627\u0643\u062a\u0645\u0644 \u0627\u0644\u0628\u0631\u062c 1889\u061f " * 6,
    "hebrew": "\u05de\u05ea\u05d9 \u05d4\u05d5\u05e9\u05dc\u05dd \u05d4\u05de\u05d2\u05d3\u05dc 1889? " * 6,
    "chinese": "\u57c3\u83f2\u5c14\u94c1\u5854\u4e8e1889\u5e74\u7ae3\u5de5" * 12,
}
AMOUNTS = dict.fromkeys(ALL_AMOUNTS, 1) | {("enough", "supported"): len(OTHER_SCRIPTS)}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The report and the comparison; one sample is in each of the other scripts."""
    folder = tmp_path_factory.mktemp("pages")
    samples: list[dict[str, Any]] = rows(AMOUNTS)
    for row, words in zip(samples, OTHER_SCRIPTS.values(), strict=False):
        row["user_input"] = words
        row["response"] = f"{words}. It is supported."
        row["retrieved_contexts"] = [{"id": "x", "text": f"{words}. This holds enough."}]
    fewer = [{**each, "retrieved_contexts": each["retrieved_contexts"][:1]} for each in samples]
    first = faulty(folder / "first", samples)
    found = compare_runs([first, faulty(folder / "second", fewer)])
    texts = {"report": run_page(report_run(first)), "comparison": comparison_page(found)}
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in texts}


@pytest.mark.parametrize("name", ["report", "comparison"])
def test_axe_finds_nothing(browser: Browser, axe: str, pages: dict[str, Path], name: str) -> None:
    """At 1440 and 390 pixels, light and dark, closed, with a sample open, and without scripts: no violation."""
    steps = [(as_opened, "html"), (open_sample, "#drawer"), (without_scripts, "#plain")]
    assert violations(browser, axe, pages[name].as_uri(), steps) == []


def open_sample(browser: Browser) -> None:
    """Open the first sample."""
    browser.key("j")
    browser.wait("document.querySelector('#drawer.on .inside')")


def without_scripts(browser: Browser) -> None:
    """Close the sample, and show what is seen without scripts."""
    browser.key("Escape")
    browser.run("document.documentElement.classList.remove('js')")


@pytest.mark.parametrize("name", ["report", "comparison"])
def test_paper_has_every_sample(browser: Browser, pages: dict[str, Path], name: str) -> None:
    """Printed, a page of 9 samples has the plain copy, on a number of sheets that fits its text."""
    browser.open(pages[name])
    sheets = _sheets(browser.print_pdf())
    assert 2 <= sheets <= 9


def _sheets(document: bytes) -> int:
    """The number of pages of a PDF."""
    streams = re.findall(rb"stream\r?\n(.*?)endstream", document, re.DOTALL)
    texts = [document]
    for each in streams:
        try:
            texts.append(zlib.decompress(each.strip()))
        except zlib.error:
            continue
    return sum(len(re.findall(rb"/Type\s*/Page\b", each)) for each in texts)


@pytest.mark.parametrize("width", [390, 1024, 1440])
def test_text_has_its_own_direction_and_breaks(browser: Browser, pages: dict[str, Path], width: int) -> None:
    """Arabic and Hebrew run from the right, Chinese breaks without spaces, and nothing is wider than the window."""
    browser.size(width)
    for number, (name, words) in enumerate(OTHER_SCRIPTS.items()):
        browser.open(pages["report"], f"#sample=enough-supported-{number}")
        browser.wait("document.querySelector('#drawer.on .inside')")
        style = "getComputedStyle(document.querySelector('.ask'))"
        assert browser.run("document.querySelector('.ask').textContent") == words
        assert browser.run(f"{style}.unicodeBidi") == "plaintext"
        assert browser.run("document.querySelector('.ask').matches(':dir(rtl)')") is (name != "chinese")
        assert browser.run("document.querySelector('#drawer').scrollWidth") <= width
        assert browser.run("document.documentElement.scrollWidth") <= width
