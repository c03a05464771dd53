"""Write the list of slow tests that `make fast` leaves out, from the report of a whole run.

    make test ARGS="--junitxml=report.xml"
    python tools/slow_tests.py report.xml

Tests that start processes are left out anyway (tests/conftest.py). Of the others, the list has those test functions
that took the most time, all parameters together, until the rest fits into the time that `make fast` may take.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

_REST = 0.12
"""Fraction of the measured time that the fast tests may take."""
_LIST = Path(__file__).resolve().parent.parent / "tests" / "slow.txt"


def main(report: Path) -> None:
    """Write the list."""
    seconds: Counter[str] = Counter()
    for case in ET.parse(report).iter("testcase"):  # noqa: S314  written by pytest on this machine
        function = case.attrib["name"].partition("[")[0]
        seconds[f"{case.attrib['classname'].replace('.', '/')}.py::{function}"] += float(case.attrib["time"])
    left = sum(seconds.values())
    allowed = left * _REST
    slow: list[str] = []
    for name, taken in seconds.most_common():
        if left <= allowed:
            break
        slow.append(name)
        left -= taken
    _LIST.write_text("".join(f"{name}\n" for name in sorted(slow)), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
