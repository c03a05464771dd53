"""Slices in the report: a table for each field, of which one is in sight, and a filter for each value."""

import re
from pathlib import Path

import pytest
from browser import Browser
from faulty_run import AMOUNTS, faulty, rows
from report_page import check_quiet, count, opened_wide

import merilo
from merilo.commands.report.run_page import report_text
from merilo.errors import UsageError

HOSTILE = "<img src=x onerror=canary()>"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> merilo.Run:
    """A run whose samples have a source, of which one value is hostile, and a team that some samples lack."""
    samples = [
        {**row, "metadata": {"source": ("wiki", "manual", HOSTILE)[at % 3], **({"team": "a"} if at % 2 else {})}}
        for at, row in enumerate(rows())
    ]
    return faulty(tmp_path_factory.mktemp("sliced") / "run", samples)


@pytest.fixture(scope="module")
def page(run: merilo.Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(report_text([run], by="source"), encoding="utf-8")
    return path


def test_by_chooses_the_first_field(run: merilo.Run) -> None:
    """Without `by` a field of the metadata comes first; `by` names another one, or is refused with those there are."""
    assert ">By team</h2>" in report_text([run])
    assert ">By source</h2>" in report_text([run], by="source")
    with pytest.raises(UsageError, match="'team', 'source'"):
        report_text([run], by="owner")
    with pytest.raises(UsageError, match="Name one run, or leave --by out"):
        report_text([run, run], by="source")


def test_the_field_of_largest_spread_is_first(tmp_path: Path) -> None:
    """Without `by` the slices open with the field whose means differ most; the columns are the most frequent faults."""
    amounts = {("enough", "supported"): 12, ("short", "supported"): 12}
    samples = [
        {**row, "metadata": {"parity": str(at % 2), "topic": row["id"].split("-")[0]}}
        for at, row in enumerate(rows(amounts))
    ]
    page = report_text([faulty(tmp_path / "run", samples)])
    assert ">By topic</h2>" in page
    table = page[page.index('class="slices"') :]
    assert re.findall(r'scope="col">(\w[\w ]*)<', table)[:4] == ["topic", "n", "Right", "Evidence missing"]


@pytest.mark.slow
def test_a_value_filters_the_samples(browser: Browser, page: Path) -> None:
    """Each row of the table has the number of samples to which it filters; its faults are those of these samples."""
    opened = opened_wide(browser, page)
    found = opened.run(
        "[...document.querySelectorAll('[data-by]:not([hidden]) tbody tr')].map(e => [e.cells[0].textContent, "
        "e.cells[1].textContent])"
    )
    assert sorted(found) == sorted([[HOSTILE, "6"], ["wiki", "6"], ["manual", "6"]])
    for place in range(3):
        opened.run(f"document.querySelectorAll('[data-slice]')[{place}].click()")
        assert count(opened) == f"6 of {sum(AMOUNTS.values())} samples"
        assert opened.run(f"document.querySelectorAll('[data-slice]')[{place}].getAttribute('aria-pressed')") == "true"
    opened.run("document.querySelectorAll('[data-slice]')[2].click()")
    assert count(opened) == "18 samples"
    assert opened.run("document.querySelectorAll('img').length") == 0
    check_quiet(opened, page)


@pytest.mark.slow
def test_another_field_shows_its_table(browser: Browser, page: Path) -> None:
    """The select shows the table of another field; samples without the field are the value "(none)"."""
    opened = opened_wide(browser, page)
    opened.run(
        "(s => { s.value = [...s.options].find(e => e.textContent === 'team').value; "
        "s.dispatchEvent(new Event('change')) })(document.querySelector('#by select'))"
    )
    shown = "[...document.querySelectorAll('[data-by]:not([hidden]) tbody th')].map(e => e.textContent)"
    assert sorted(opened.run(shown)) == ["(none)", "a"]


@pytest.mark.slow
def test_an_opened_sample_shows_its_metadata(browser: Browser, page: Path) -> None:
    """The metadata of a sample is in its drawer, and in the plain copy without scripts."""
    opened = opened_wide(browser, page)
    opened.key("j")
    opened.wait("document.querySelector('#drawer.on .inside')")
    drawer = opened.run("document.querySelector('#drawer').innerText")
    assert "Metadata" in drawer
    assert "source" in drawer
    browser.scripts(enabled=False)
    browser.open(page)
    browser.scripts(enabled=True)
    seen = browser.run("document.body.innerText")
    assert "source: wiki" in seen
    assert "By source" in seen
    assert f"source: {HOSTILE}" in seen
