"""Bring the list of slow tests, which `make fast` leaves out, up to date with a report of what it ran.

    make fast ARGS="--junitxml=report.xml"
    python tools/slow_tests.py report.xml

Tests that are gone leave the list. Then those test functions join it that took the most time, all parameters together,
until the rest fits into the time that `make fast` may take. Tests that start processes are left out anyway
(tests/conftest.py).
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

_FAST_S = 60.0
"""Seconds that the fast tests may take together, without their collection, on one quiet core."""
_ROOT = Path(__file__).resolve().parent.parent
_LIST = _ROOT / "tests" / "slow.txt"


def main(report: Path) -> None:
    """Write the list."""
    seconds: Counter[str] = Counter()
    for case in ET.parse(report).iter("testcase"):  # noqa: S314  written by pytest on this machine
        function = case.attrib["name"].partition("[")[0]
        seconds[f"{case.attrib['classname'].replace('.', '/')}.py::{function}"] += float(case.attrib["time"])
    slow = {name for name in _LIST.read_text(encoding="utf-8").split() if _exists(name)}
    left = sum(seconds.values())
    for name, taken in seconds.most_common():
        if left <= _FAST_S:
            break
        slow.add(name)
        left -= taken
    _LIST.write_text("".join(f"{name}\n" for name in sorted(slow)), encoding="utf-8")


def _exists(name: str) -> bool:
    path, _, function = name.partition("::")
    file = _ROOT / path
    return file.exists() and f"def {function}(" in file.read_text(encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
