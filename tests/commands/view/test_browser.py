"""`merilo view` in a headless Chromium, which the tests start; skipped without one."""

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from axe import as_opened, violations
from browser import Browser
from graded_runs import graded
from uvicorn import Config, Server

from merilo.commands.view.app import create_app
from merilo.commands.view.run import _listening, _page_that_opens

pytestmark = pytest.mark.slow  # they start processes
HOSTILE = "<img src=x onerror=document.title='ran'>"
NAMES = "[...document.querySelectorAll('.runs tbody tr')].filter(e => !e.hidden).map(e => e.cells[1].dataset.v)"


@contextmanager
def served(browser: Browser, directory: Path) -> Iterator[str]:
    """The address of a server over a directory, in a thread of this process, after it has let the browser in."""
    with closing(_listening(0)) as listener:
        port = listener.getsockname()[1]
        server = Server(Config(create_app(directory, "token", port), log_level="critical", lifespan="off", ws="none"))
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
        thread.start()
        try:
            let_in(browser, f"http://127.0.0.1:{port}/token/")
            yield f"http://127.0.0.1:{port}/token/"
        finally:
            server.should_exit = server.force_exit = True
            thread.join()


def let_in(browser: Browser, address: str) -> None:
    """Open the printed address, which leads to the list."""
    browser.visit(address)
    browser.wait("document.querySelector('h1')?.textContent === 'Runs'")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Three runs over the same questions, of three days, one with a hostile name, and a damaged one."""
    for day, name in enumerate(("first", "second", HOSTILE, "damaged")):
        graded(tmp_path / name, {"a": [day % 3], "b": [2], "c": [1]})
        for path in (tmp_path / name).iterdir():
            os.utime(path, (86_400 * (day + 1), 86_400 * (day + 1)))
    (tmp_path / "damaged" / "summary.json").write_text("{")
    return tmp_path


def test_the_printed_address_lets_a_browser_in(browser: Browser, runs: Path) -> None:
    """The file that is opened leads to the list; an address without the secret does not."""
    with served(browser, runs) as address:
        for other in ("", "tokem/", "token"):
            browser.visit(address.replace("token/", other))
            assert browser.run("document.querySelector('h1').textContent") == "Not let in"
        with _page_that_opens(address) as file:
            let_in(browser, file)
        browser.run("setTimeout(() => location.reload()); window.old = true")
        browser.wait("!window.old && document.querySelector('h1')?.textContent === 'Runs'")
        assert browser.run("document.cookie") == ""


def test_another_server_of_this_machine_gets_no_secret(browser: Browser, runs: Path) -> None:
    """On another port, opened by its address, by a link from a page of ours or as a form, in the same browser."""
    got: list[str] = []

    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            got.append(f"{self.requestline}\n{self.headers}")
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<h1>other</h1>")

        def log_message(self, *_: object) -> None: ...

    with served(browser, runs) as address, HTTPServer(("127.0.0.1", 0), Other) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        there = f"http://127.0.0.1:{other.server_port}/"
        try:
            browser.visit(there)
            for page in (address, f"{address}nothing"):
                browser.visit(page)
                make = f"Object.assign(document.createElement('a'), {{href: '{there}linked'}})"
                browser.run(f"setTimeout(() => document.body.appendChild({make}).click())")
                browser.wait("document.querySelector('h1')?.textContent === 'other'")
                assert browser.run("document.referrer") == ""
        finally:
            other.shutdown()
    assert sum("GET /linked" in each for each in got) == 2
    assert not any("token" in each for each in got)


def test_list_to_comparison(browser: Browser, runs: Path) -> None:
    """Filter, sort, choose two runs, compare them, go back: without a console message or a request to elsewhere."""
    with served(browser, runs) as address:
        browser.visit(address)
        assert browser.run(NAMES)[1:] == [HOSTILE, "second", "first"]
        browser.run("document.querySelector('[data-key=name]').click()")
        assert browser.run(NAMES)[1:] == ["damaged", "first", "second"]
        browser.run("(e => { e.value = 'sec'; e.dispatchEvent(new Event('input')) })(document.querySelector('#find'))")
        assert browser.run(NAMES) == ["second"]
        assert browser.run("document.querySelector('#count').textContent") == "1 of 4 runs"
        browser.run("(e => { e.value = ''; e.dispatchEvent(new Event('input')) })(document.querySelector('#find'))")
        assert browser.run("document.querySelector('#compare').disabled") is True
        for name in ("first", "second"):
            browser.run(f"document.querySelector('[aria-label=\"Choose {name}\"]').click()")
        assert browser.run("document.querySelector('#compare').textContent") == "Compare 2 runs"
        browser.run("document.querySelector('#compare').click()")
        browser.wait("document.querySelector('h1')?.textContent === 'second against first'")
        assert browser.errors() == []
        assert {each.startswith(address) for each in browser.requests() if each != "about:blank"} == {True}
        assert browser.run("document.title") != "ran"


def test_no_page_overflows(browser: Browser, runs: Path) -> None:
    """List, report and an error page fit into 390, 1024 and 1440 pixels, without a console message of a script."""
    with served(browser, runs) as address:
        own = browser.run("document.querySelector('.interrupted a, .runs tbody tr:last-child a').href")
        for page in (address, own, f"{address}nothing"):
            for width in (390, 1024, 1440):
                browser.size(width)
                browser.visit(page)
                for dark in (True, False):
                    browser.size(width, dark=dark)
                    assert browser.run("document.documentElement.scrollWidth") <= width
                assert [each for each in browser.errors() if each["method"] != "Log.entryAdded"] == []


def test_axe_finds_nothing_in_the_list(browser: Browser, axe: str, runs: Path) -> None:
    """At 1440 and 390 pixels, light and dark: no violation."""
    with served(browser, runs) as address:
        assert violations(browser, axe, address, [(as_opened, "html")]) == []


def test_without_scripts_runs_can_be_compared(browser: Browser, runs: Path) -> None:
    """With scripts off, the list is complete, and the form leads to the comparison."""
    with served(browser, runs) as address:
        browser.scripts(enabled=False)
        browser.visit(address)
        browser.scripts(enabled=True)
        assert len(browser.run(NAMES)) == 4
        for name in ("first", "second"):
            browser.run(f"document.querySelector('[aria-label=\"Choose {name}\"]').checked = true")
        browser.run("document.querySelector('#compare').click()")
        browser.wait("document.querySelector('h1')?.textContent === 'second against first'")
