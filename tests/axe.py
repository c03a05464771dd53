"""Pages under axe-core, at two widths and in both colour schemes."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from browser import Browser

_CHECK = """axe.run(%s, {resultTypes: ['violations'],
    runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']})
  .then(found => JSON.stringify(found.violations.map(
    each => [each.id, each.impact, each.nodes.slice(0, 3).map(node => node.html.slice(0, 160))])))"""

Step = tuple[Callable[[Browser], object], str]
"""What is done to the page first, and the selector of the part that is checked then."""


def as_opened(browser: Browser) -> None:
    """Do nothing to the page."""
    del browser


def violations(browser: Browser, axe: str, address: str, steps: Sequence[Step]) -> list[list[Any]]:
    """Return what axe-core finds after each step, with the width and the colour scheme."""
    found = []
    browser.policy(enabled=False)
    try:
        for width in (1440, 390):
            browser.size(width)
            browser.visit(address)
            browser.run(f"{axe};0")
            for step, part in steps:
                step(browser)
                for dark in (False, True):
                    browser.size(width, dark=dark)
                    found += [[width, dark, part, *each] for each in json.loads(browser.run(_CHECK % json.dumps(part)))]
    finally:
        browser.policy(enabled=True)
    return found
