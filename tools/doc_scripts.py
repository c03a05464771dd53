"""The tables of scripts that were compared with ragas and DeepEval, for the documentation."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, Final

TESTS: Final = Path(__file__).resolve().parent.parent / "tests"
_HEADER: Final = re.compile(
    r'^# Upstream page: (?P<page>.+)\n# Lines: (?P<lines>.+)\n"""(?P<about>.+?)"""', re.MULTILINE
)


def ragas_scripts() -> str:
    """Return the counts of the scripts for ragas."""
    return _scripts("ragas")


def deepeval_scripts() -> str:
    """Return the counts of the scripts for DeepEval."""
    return _scripts("deepeval")


def _scripts(package: str) -> str:
    """Return one row for each release: how many scripts were compared and how many were equal; then the differences."""
    table: dict[str, Any] = tomllib.loads((TESTS / "extras" / "environments.toml").read_text(encoding="utf-8"))
    differences = table.pop("differences")
    releases = {name: row for name, row in table.items() if name.startswith(package)}
    found = [_lines(path) for path in sorted((TESTS / "compat" / package / "scripts").glob("*.py"))]
    lines = ["| release | scripts | equal |", "| --- | --- | --- |"]
    for name, row in releases.items():
        count = sum(row["line"] in each for each in found)
        lines.append(f"| {row['title']} | {count} | {count - len(differences.get(name, {}))} |")
    reasons = [f"- `{script}`: {reason}" for name in releases for script, reason in differences.get(name, {}).items()]
    return "\n".join([*lines, "", *(["Differs because:", "", *reasons] if reasons else [])])


def _lines(path: Path) -> list[str]:
    """Return the releases for which a script was written."""
    found = _HEADER.match(path.read_text(encoding="utf-8"))
    if found is None:
        raise SystemExit(f"{path.name} does not name its page, its lines and what it does.")
    return found["lines"].split()
