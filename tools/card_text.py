"""Figures and quoted texts as Markdown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from merilo.reports.clean import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    JSON = Mapping[str, Any]  # Any: JSON

NONE: Final = "–"
_MARKS: Final = re.compile(r"""[!"#$&'()*+/:<=>@\[\\\]^_`{|}~]|\.(?=\S)""")
"""Characters that Markdown, its extensions or HTML may interpret; a dot inside a word may be an address."""


def foreign(text: str) -> str:
    """Return a quoted text as plain words, without Markdown, HTML, addresses or invisible characters."""
    return _MARKS.sub(lambda found: f"&#{ord(found[0])};", clean(text))


def figure(each: JSON | None, digits: int = 2) -> str:
    """Return a measure with its interval, as `0.71 [0.65, 0.76]`."""
    if each is None or each.get("value") is None:
        return NONE
    ends = each.get("interval")
    told = f"{_number(each['value'], digits)}"
    return told if ends is None else f"{told} [{_number(ends[0], digits)}, {_number(ends[1], digits)}]"


def plain(each: JSON | None, digits: int = 2) -> str:
    """Return a measure without its interval."""
    return NONE if each is None or each.get("value") is None else _number(each["value"], digits)


def signed(each: JSON) -> str:
    """Return a difference with its interval, as `+0.03 [+0.01, +0.05]`."""
    if each.get("value") is None:
        return NONE
    ends = each.get("interval")
    told = _signed(each["value"])
    return told if ends is None else f"{told} [{_signed(ends[0])}, {_signed(ends[1])}]"


def percent(value: float | None, digits: int = 1) -> str:
    """Return a fraction, as `3.1 %`."""
    return NONE if value is None else f"{_number(100 * value, digits)} %"


def amount(value: float) -> str:
    """Return a number with three significant figures."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> str:
    """Return a Markdown table, with the first `left` columns aligned left and the others right."""
    rule = ["---" if place < left else "---:" for place in range(len(head))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))


def _number(value: float, digits: int) -> str:
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")


def _signed(value: float) -> str:
    return f"{round(value, 3) + 0.0:+.3f}".replace("-", "−")
