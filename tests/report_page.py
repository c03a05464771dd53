"""Helpers for tests that read and use a report or a comparison in the browser."""

from pathlib import Path

from browser import Browser

WIDTH = 1440
"""Pixels of a wide window."""


def opened_wide(browser: Browser, page: Path) -> Browser:
    """Open a page in a wide window, with scripts."""
    browser.size(WIDTH)
    browser.open(page)
    return browser


def ids(browser: Browser) -> list[str]:
    """Return the ids of the rows in sight, in order."""
    found: list[str] = browser.run("[...document.querySelectorAll('tr[data-place] .sub')].map(e => e.textContent)")
    return found


def count(browser: Browser) -> str:
    """Return the text that counts the rows."""
    return str(browser.run("document.querySelector('.tools .count').textContent"))


def search(browser: Browser, words: str) -> None:
    """Type words into the search field."""
    browser.key("/")
    for letter in words:
        browser.key(letter)


def check_quiet(browser: Browser, page: Path) -> None:
    """Check that nothing was requested but the page, and that the console is empty."""
    assert set(browser.requests()) == {page.resolve().as_uri()}
    assert browser.errors() == []


def check_fits(browser: Browser, page: Path, *, width: int, drawer: str) -> None:
    """Check that a page and an opened sample (`drawer`, an expression) fit the window in both colour schemes, without
    messages or requests.
    """
    browser.size(width)
    browser.open(page)
    for opened in (False, True):
        if opened:
            browser.key("j")
            browser.wait(drawer)
        for dark in (True, False):
            browser.size(width, dark=dark)
            assert browser.run("document.documentElement.scrollWidth") <= width
            assert browser.run("document.querySelector('#drawer').scrollWidth") <= width
    check_quiet(browser, page)
