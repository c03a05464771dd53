"""The report in a headless Chromium, which the tests start; skipped without one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree as ET

import pytest
from browser import Browser
from faulty_run import AMOUNTS, faulty, rows
from hostile_texts import HOSTILE
from report_page import check_fits, check_quiet, count, ids, opened_wide, search

from merilo.commands.compare.run import compare_runs
from merilo.commands.report.run import report_run
from merilo.commands.report.run_page import comparison_page, run_page

pytestmark = pytest.mark.slow  # they start processes
DRAWER = "document.querySelector('#drawer.on .inside')"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with samples in every cell."""
    folder = tmp_path_factory.mktemp("report")
    path = folder / "report.html"
    path.write_text(run_page(report_run(faulty(folder / "first"))), encoding="utf-8")
    return path


@pytest.fixture
def opened(browser: Browser, report: Path) -> Browser:
    """The report, opened at 1440 pixels."""
    return opened_wide(browser, report)


@pytest.mark.parametrize("width", [390, 1024, 1440])
def test_opens_without_errors_requests_or_overflow(browser: Browser, report: Path, width: int) -> None:
    """At each width, in both colour schemes: no console message, no request, no horizontal overflow."""
    check_fits(browser, report, width=width, drawer=DRAWER)


CATCH = """
navigator.clipboard.writeText = async text => { window.text = text; };
URL.createObjectURL = blob => { window.blob = blob; return 'data:,'; };
HTMLAnchorElement.prototype.click = function () {
  if (this.download) window.file = this.download;
  else this.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true }));
};
"""


def _pressed(browser: Browser, place: str, name: str) -> None:
    browser.run(CATCH)
    browser.run(f"[...document.querySelectorAll('{place} button')].find(e => e.textContent === '{name}').click()")


def _copied_table(browser: Browser, place: str) -> list[list[str]]:
    """Press the button of a table and return the cells of the Markdown that it copies."""
    _pressed(browser, place, "Copy table")
    lines = browser.run("window.text").splitlines()
    assert all(line.startswith("| ") and line.endswith(" |") for line in lines)
    head, rule, *rows = [[cell.strip() for cell in line[1:-1].split(" | ")] for line in lines]
    assert rule == ["---"] * len(head)
    assert {len(row) for row in rows} == {len(head)}
    return [head, *rows]


def test_every_table_leaves_as_markdown(opened: Browser) -> None:
    """The fault table, the metrics and the filtered samples are copied whole, each with its head."""
    head, *faults = _copied_table(opened, "[aria-labelledby=faults]")
    assert head == ["", "all supported", "not all supported", "declined"]
    assert faults[1][2] == "1 \u2717 Invented retriever, then generator"
    head, *metrics = _copied_table(opened, "[aria-labelledby=metrics]")
    assert head == ["Metric", "Mean", "Interval", "Scores"]
    assert ["context_relevance", "0.361", "0.247 - 0.487", "18 scored"] in metrics
    opened.run("document.querySelectorAll('[data-fault]')[0].click()")
    amount = int(count(opened).partition(" ")[0])
    head, *rows = _copied_table(opened, ".tools")
    assert head[:2] == ["Fault", "Question"]
    assert len(rows) == amount < 18
    opened.run("document.querySelectorAll('[data-fault]')[0].click()")


def test_figures_leave_as_svg(opened: Browser, report: Path) -> None:
    """The file has each histogram with its metric and colours, and nothing that loads or runs."""
    _pressed(opened, "[aria-labelledby=metrics]", "Save figure")
    assert opened.run("window.file") == "first-report-Metrics.svg"
    opened.run("window.blob.text().then(text => { window.text = text; })")
    root = ET.fromstring(opened.run("window.text"))  # noqa: S314  our own page
    drawings = opened.run("document.querySelectorAll('.metric svg').length")
    assert len(root.findall("{http://www.w3.org/2000/svg}svg")) == drawings > 0
    texts = [each.text or "" for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert any(text.startswith("context_relevance  0.361  0.247 - 0.487") for text in texts)
    fills = {each.get("fill") for each in root.iter("{http://www.w3.org/2000/svg}rect")}
    assert len(fills) > 2
    assert all(fill and fill.startswith("rgb") for fill in fills)
    check_quiet(opened, report)


def test_faults_come_first(opened: Browser) -> None:
    """The rows begin with the worst fault, and end with grounded answers."""
    assert ids(opened)[0] == "short-strayed-0"
    assert ids(opened)[-1].startswith("enough-supported")
    assert count(opened) == "18 samples"


def test_counts_filter(opened: Browser) -> None:
    """Each count of the fault table filters to that many rows, and a second click shows all."""
    cells = opened.run("[...document.querySelectorAll('[data-fault] b')].map(e => e.textContent)")
    for place, amount in enumerate(cells):
        opened.run(f"document.querySelectorAll('[data-fault]')[{place}].click()")
        assert count(opened) == f"{amount} of 18 samples"
        opened.run(f"document.querySelectorAll('[data-fault]')[{place}].click()")
        assert count(opened) == "18 samples"


def test_sort_keeps_samples_without_a_score_last(opened: Browser) -> None:
    """Sorted by a metric, in both directions, undefined and failed samples come last."""
    for _ in range(2):
        opened.run(
            "[...document.querySelectorAll('.grid th button')].find(e => e.textContent.startsWith('faith')).click()"
        )
        last = ids(opened)[-6:]
        assert all("declined" in each for each in last[:5])
        assert last[5] == "enough-fails-0"
    assert opened.run("document.querySelector('th[aria-sort]').getAttribute('aria-sort')") == "descending"


def test_search_and_outcome_filter(opened: Browser) -> None:
    """Search finds words of questions, responses and ids; the outcome filter finds failed samples."""
    search(opened, "declined 2")
    assert ids(opened) == ["enough-declined-2"]
    opened.key("Escape")
    opened.run("[...document.querySelectorAll('.tools .btn')].find(e => e.textContent === 'Clear').click()")
    opened.run(
        "(s => { s.value = 'failed'; s.dispatchEvent(new Event('change')) })"
        "(document.querySelectorAll('.tools select')[1])"
    )
    assert ids(opened) == ["enough-fails-0"]


def test_keys_open_walk_and_close(opened: Browser) -> None:
    """f, j, k, a number, Escape and ? work as the list of keys says."""
    opened.key("f")
    assert count(opened) == "10 of 18 samples"
    for key, place in (("j", "1 of 10"), ("j", "2 of 10"), ("k", "1 of 10"), ("j", "2 of 10")):
        opened.key(key)
        opened.wait(f"document.querySelector('#drawer.on .pos')?.textContent === '{place}'")
    opened.key("2")
    assert opened.run("document.querySelector('.sent.on').textContent").startswith("Another text.")
    opened.key("Escape")
    assert opened.run("document.querySelector('#drawer.on')") is None
    assert opened.run("document.activeElement.className") == "q"
    opened.key("?")
    assert opened.run("document.querySelector('dialog').open") is True


def test_sample_shows_cause_and_evidence(opened: Browser) -> None:
    """An opened sample has its cause, coloured statements with the sentence each cites, and marked evidence."""
    opened.run("location.hash = '#sample=enough-strayed-0'")
    opened.wait(DRAWER)
    assert "Look first at the generator." in opened.run("document.querySelector('.cause').textContent")
    assert opened.run("[...document.querySelectorAll('.stmts > li')].map(e => e.className)") == [
        "supported",
        "unsupported",
    ]
    assert "Closest: context 2, sentence 1" in opened.run("document.querySelectorAll('.cite')[1].textContent")
    assert opened.run("document.querySelectorAll('.sent.ev').length") > 0


def test_permalinks(browser: Browser, report: Path) -> None:
    """A link opens its sample, Back closes it, and an unknown id is said to be unknown."""
    browser.open(report, "#sample=" + quote("enough-fails-0"))
    browser.wait(DRAWER)
    assert "It will not <b>." in browser.run("document.querySelector('#drawer').textContent")
    browser.open(report, "#sample=unknown")
    browser.wait("document.querySelector('.toast')")
    browser.key("j")
    browser.wait(DRAWER)
    assert browser.run("location.hash") == "#sample=short-strayed-0"
    browser.run("history.back()")
    browser.wait("!document.querySelector('#drawer.on')")


def test_without_scripts_every_number_is_there(browser: Browser, report: Path) -> None:
    """With scripts off, the page in sight has every mean, every score and every sample."""
    browser.scripts(enabled=False)
    browser.open(report)
    browser.scripts(enabled=True)
    seen = browser.run("document.body.innerText")
    found = report_run(report.parent / "first")
    for card in found.cards:
        assert f"{card.aggregate.mean:.3f}" in seen
    for row in rows():
        assert row["user_input"] in seen
    assert browser.run("document.querySelectorAll('.plaintable tbody tr').length") == sum(AMOUNTS.values())
    assert browser.run("document.querySelector('#app').checkVisibility()") is False


def test_few_rows_are_in_the_page(browser: Browser, tmp_path: Path) -> None:
    """Of 400 samples, only the rows near the window are in the page, also after scrolling."""
    samples = rows({("enough", "supported"): 400})
    path = tmp_path / "report.html"
    path.write_text(run_page(report_run(faulty(tmp_path / "run", samples, metrics=("context_sufficiency",)))))
    browser.open(path)
    for top in (0, 5000, 100000):
        browser.run(f"new Promise(done => {{ scrollTo(0, {top}); requestAnimationFrame(() => setTimeout(done, 50)) }})")
        assert 0 < browser.run("document.querySelectorAll('tr[data-place]').length") <= 60
    assert browser.run("document.querySelector('tr[data-place=\"399\"]') !== null")


def test_hostile_texts_run_nothing(browser: Browser, tmp_path: Path) -> None:
    """200 hostile texts in every field of samples and verdicts: nothing runs, in the report and the comparison.

    The comparison has every seventh text, so each way out of a field and each kind of script.
    """
    assert len(set(HOSTILE)) == 200
    run = faulty(tmp_path / "<img src=x onerror=canary()>", _hostile(HOSTILE))
    few = _hostile(HOSTILE[::7])
    better = [{**each, "response": f"It is supported. {each['response']}"} for each in few]
    found = compare_runs([faulty(tmp_path / "a", few), faulty(tmp_path / "<svg onload=canary()>", better)])
    for page, samples in ((run_page(report_run(run)), len(HOSTILE)), (comparison_page(found), len(few))):
        path = tmp_path / f"{samples}.html"
        path.write_text(page, encoding="utf-8")
        browser.open(path)
        browser.run("window.canary = () => { document.title = 'ran'; }; 0")
        _open_all(browser, samples)
        assert browser.run("document.title") != "ran"
        assert browser.run("document.querySelectorAll('img, iframe, object, embed, form, base').length") == 0
        assert browser.run("document.querySelectorAll('[onerror], [onload], [onfocus], [style*=\"9999\"]').length") == 0
        assert browser.run("document.documentElement.scrollWidth") <= 1440
        check_quiet(browser, path)


def _hostile(texts: Sequence[str]) -> list[dict[str, Any]]:
    """A sample for each text, which is in all of its fields."""
    return [
        {**rows({("short", "strayed"): 1}, extra=text)[0], "id": f"{number} {text}"}
        for number, text in enumerate(texts)
    ]


def _open_all(browser: Browser, samples: int) -> None:
    """Open every sample in turn."""
    opened = browser.run(
        f"""(async () => {{ for (let place = 1; place <= {samples}; place++) {{
        document.body.dispatchEvent(new KeyboardEvent('keydown', {{ key: 'j', bubbles: true }}));
        for (let wait = 0; document.querySelector('#drawer.on .pos')?.textContent !== `${{place}} of {samples}`; wait++)
            if (wait < 5000) await new Promise(done => setTimeout(done)); else return place; }}
        return 'all'; }})()"""
    )
    assert opened == "all"


def test_the_canary_can_sing(browser: Browser, tmp_path: Path) -> None:
    """The same payload runs in a page without a policy and without escaping, so the test above can fail."""
    path = tmp_path / "page.html"
    path.write_text(f"<script>canary = () => {{ document.title = 'ran' }}</script>{HOSTILE[0]}")
    browser.open(path)
    assert browser.run("document.title") == "ran"
