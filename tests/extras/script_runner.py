"""Runs scripts written for another package, with that package or with its replacement in merilo. Standard library only.

    python script_runner.py FOLDER OUT.json LINE [PACKAGE]

runs the scripts of a folder that are for a version line and writes the numbers of each: unchanged, or with a package in
place of the name in their import lines. A script assigns its numbers to SCORES. NAME.json beside it has the rules of
its judge.
"""

import json
import math
import os
import re
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from scripted_endpoint import ScriptedEndpoint

_IMPORT = re.compile(r"^(\s*)(from|import) (ragas|deepeval)\b", re.MULTILINE)
_HEADER = re.compile(r"^# (Upstream page|Lines): (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Script:
    """A script: its name, text, judge's rules, the page that it was written after, and the lines that it is for."""

    name: str
    text: str
    rules: list[dict[str, Any]]
    page: str
    lines: tuple[str, ...]


def scripts_in(folder: Path, line: str = "") -> list[Script]:
    """The scripts of a folder, those of a line if one is given."""
    found = [_script(path) for path in sorted(folder.glob("*.py"))]
    return [each for each in found if not line or line in each.lines]


def _script(path: Path) -> Script:
    text = path.read_text(encoding="utf-8")
    header = dict(_HEADER.findall(text))
    rules = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    return Script(path.stem, text, rules, header["Upstream page"], tuple(header["Lines"].split()))


def with_imports_of(text: str, package: str) -> str:
    """The text with `ragas` or `deepeval` in its import lines replaced, and nothing else."""
    return _IMPORT.sub(rf"\1\2 {package}", text)


def run(script: Script, package: str = "") -> dict[str, float | None]:
    """The numbers of a script, None for NaN; `package` replaces the name in its import lines."""
    text = with_imports_of(script.text, package) if package else script.text
    names: dict[str, Any] = {"__name__": "__main__"}
    before = Path.cwd()
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder, ScriptedEndpoint(script.rules) as endpoint:
        os.environ.update(
            OPENAI_API_KEY="sk-none",
            OPENAI_BASE_URL=endpoint.base_url,
            OPENAI_API_BASE=endpoint.base_url,
            MERILO_CACHE=str(Path(folder) / "verdicts.sqlite"),
        )
        os.chdir(folder)  # for files that a package writes
        try:
            exec(compile(text, f"{script.name}.py", "exec"), names)  # noqa: S102  the scripts are ours
        finally:
            os.chdir(before)
            if endpoint.unmatched:
                print(f"{script.name}: no rule fits:\n{endpoint.unmatched[0][-1500:]}", file=sys.stderr)  # noqa: T201
    return {name: _number(value) for name, value in names["SCORES"].items()}


def _number(value: Any) -> float | None:
    number = float(value)
    return None if math.isnan(number) else number


def main() -> None:
    folder, out, line, *package = sys.argv[1:]
    found: dict[str, Any] = {}
    for script in scripts_in(Path(folder), line):
        try:
            found[script.name] = run(script, *package)
        except BaseException as error:  # noqa: BLE001  every script has a result
            traceback.print_exc()
            found[script.name] = f"{type(error).__name__}: {error}"[:300]
    Path(out).write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
