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
    """Return the table of the scripts for ragas."""
    return _scripts("ragas")


def deepeval_scripts() -> str:
    """Return the table of the scripts for DeepEval."""
    return _scripts("deepeval")


def _scripts(package: str) -> str:
    """Return one row for each script and one column for each release, and the reasons of the differences."""
    table: dict[str, Any] = tomllib.loads((TESTS / "extras" / "environments.toml").read_text(encoding="utf-8"))
    differences = table.pop("differences")
    releases = {name: row for name, row in table.items() if name.startswith(package)}
    heads = ["script", "what it does", *(row["title"] for row in releases.values())]
    lines = ["| " + " | ".join(heads) + " |", "| --- " * len(heads) + "|"]
    for path in sorted((TESTS / "compat" / package / "scripts").glob("*.py")):
        found = _HEADER.match(path.read_text(encoding="utf-8"))
        if found is None:
            raise SystemExit(f"{path.name} does not name its page, its lines and what it does.")
        cells = [_cell(path.stem, row, differences.get(name, {}), found) for name, row in releases.items()]
        lines.append("| " + " | ".join([f"[{path.stem}]({found['page']})", found["about"], *cells]) + " |")
    reasons = [f"- `{script}`: {reason}" for name in releases for script, reason in differences.get(name, {}).items()]
    return "\n".join([*lines, "", *(["Differs because:", "", *reasons] if reasons else [])])


def _cell(script: str, row: dict[str, Any], differences: dict[str, str], found: re.Match[str]) -> str:
    if row["line"] not in found["lines"].split():
        return ""
    return "differs" if script in differences else "equal"
