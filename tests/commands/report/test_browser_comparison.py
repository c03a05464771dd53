"""The comparison in a headless Chromium; skipped without one."""

from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree as ET

import pytest
from browser import Browser
from compared import compare_runs
from faulty_run import METRICS, faulty, rows
from report_page import check_fits, count, ids, opened_wide, search

from merilo.commands.report.run_page import comparison_page

pytestmark = pytest.mark.slow  # they start processes
DRAWER = "document.querySelector('#drawer.on .two')"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A comparison of a run with the same answers to one context less in the samples whose contexts are short."""
    folder = tmp_path_factory.mktemp("comparison")
    changed = [
        {**each, "retrieved_contexts": each["retrieved_contexts"][:1]} if "short" in each["id"] else each
        for each in rows()
    ]
    found = compare_runs([faulty(folder / "old"), faulty(folder / "new", changed)])
    path = folder / "comparison.html"
    path.write_text(comparison_page(found), encoding="utf-8")
    return path


@pytest.fixture
def opened(browser: Browser, page: Path) -> Browser:
    """The comparison, opened at 1440 pixels."""
    return opened_wide(browser, page)


def choose(browser: Browser, label: str, value: str) -> None:
    """Choose an option of a filter."""
    browser.run(
        f"(s => {{ s.value = '{value}'; s.dispatchEvent(new Event('change')) }})"
        f"(document.querySelector('select[aria-label={label}]'))"
    )


@pytest.mark.parametrize("width", [390, 1024, 1440])
def test_opens_without_errors_requests_or_overflow(browser: Browser, page: Path, width: int) -> None:
    """At each width, in both colour schemes: no console message, no request, no horizontal overflow."""
    check_fits(browser, page, width=width, drawer=DRAWER)


def test_the_differences_leave_as_a_figure(opened: Browser) -> None:
    """The file has one line per difference with its metric and interval; the verdict's column stays in the table."""
    opened.run("URL.createObjectURL = blob => { window.blob = blob; return 'data:,'; }")
    opened.run("HTMLAnchorElement.prototype.click = () => {}")
    opened.run("[...document.querySelectorAll('.gap button')].find(e => e.textContent === 'Save figure').click()")
    opened.run("window.blob.text().then(text => { window.text = text; })")
    root = ET.fromstring(opened.run("window.text"))  # noqa: S314  our own page
    svg = "{http://www.w3.org/2000/svg}"
    drawn = opened.run("document.querySelectorAll('.forest svg').length")
    assert len(root.findall(f"{svg}svg")) == len(root.findall(f"{svg}text")) == drawn > 0
    assert all(each.get("stroke", "").startswith("rgb") for each in root.iter(f"{svg}line"))


def test_sort_filter_and_search(opened: Browser) -> None:
    """All common samples are listed; filters by change and metric, search and sort work together."""
    assert count(opened) == "18 samples"
    choose(opened, "Metric", str(METRICS.index("context_relevance")))
    choose(opened, "Change", "equal")
    assert count(opened) == "18 samples"  # one short context less changes no mean: both have grade 0
    choose(opened, "Change", "moved")
    assert count(opened) == "0 of 18 samples"
    opened.run("[...document.querySelectorAll('.empty .btn')].at(-1).click()")
    search(opened, "declined 2")
    assert ids(opened) == ["enough-declined-2"]


def test_metric_of_the_forest_chooses_the_column(opened: Browser) -> None:
    """A click on a metric in the forest plot marks its row and shows the values of that metric."""
    opened.run("document.querySelector('[data-metric=context_relevance]').click()")
    assert opened.run("document.querySelector('.forest tr.on th').textContent") == "context_relevance"
    opened.run("document.querySelector('[data-metric=context_sufficiency]').click()")
    assert opened.run("document.querySelector('.forest tr.on th').textContent") == "context_sufficiency"


def test_keys_and_permalinks_open_both_runs_side_by_side(browser: Browser, page: Path) -> None:
    """A link opens a sample with a pane for each run next to each other; j, k and Escape work."""
    browser.open(page, "#sample=" + quote("short-strayed-0"))
    browser.wait(DRAWER)
    assert browser.run("[...document.querySelectorAll('#drawer .two h3 .t')].map(e => e.textContent)") == ["old", "new"]
    places = browser.run("[...document.querySelectorAll('#drawer .two .pane')].map(e => e.getBoundingClientRect().top)")
    assert places[0] == places[1]
    chips = browser.run("[...document.querySelectorAll('#drawer .two .ctx summary .chip')].map(e => e.textContent)")
    assert chips == ["same rank", "grade 0", "only here", "grade 0", "same rank", "grade 0"]
    browser.key("1")
    assert browser.run("document.querySelector('.sent.on').id").startswith("r0c")
    browser.key("Escape")
    assert browser.run("document.querySelector('#drawer.on')") is None
    browser.key("j")
    browser.wait(DRAWER)
    browser.key("j")
    browser.wait("document.querySelector('#drawer .pos').textContent.startsWith('2 of')")


def test_without_scripts_both_runs_are_there(browser: Browser, page: Path) -> None:
    """With scripts off, the numbers and the samples of both runs are in the page."""
    browser.scripts(enabled=False)
    browser.open(page)
    browser.scripts(enabled=True)
    assert browser.run("document.querySelectorAll('#plain > .move').length") == len(rows())
    assert browser.run("document.querySelector('#plain').checkVisibility()") is True
    assert browser.run("document.querySelector('#app').checkVisibility()") is False
