"""Run the scripts of tests/compat with the packages that they were written for: `python tools/extras.py [NAME]`.

Each environment of tests/extras/environments.toml gets a virtual environment, `.venv-extras-NAME`. There, its scripts
run unchanged, with the same scripted judge as in the tests, and their numbers are compared with those in
tests/extras/recorded. merilo is then installed beside the package, and the scripts run again with their import lines
changed, so with the real objects of LangChain and others. Exits with 1 if a script fails, or if a number is not the
recorded one. `--record` writes the package's numbers.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ROOT / "tests" / "extras"
NO_TELEMETRY = {"RAGAS_DO_NOT_TRACK": "true", "DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "OTEL_SDK_DISABLED": "true"}


def environments() -> dict[str, dict[str, Any]]:
    """Return the rows of the table."""
    table = tomllib.loads((EXTRAS / "environments.toml").read_text(encoding="utf-8"))
    return {name: row for name, row in table.items() if name != "differences"}


def differences(name: str) -> dict[str, str]:
    """Return the scripts of an environment whose numbers differ in merilo, with the reasons."""
    table = tomllib.loads((EXTRAS / "environments.toml").read_text(encoding="utf-8"))
    found: dict[str, str] = table["differences"].get(name, {})
    return found


def python_of(name: str, install: list[str]) -> Path:
    """Return the interpreter of an environment, which is made once."""
    folder = ROOT / f".venv-extras-{name}"
    python = folder / "bin" / "python"
    stamp = folder / "installed.json"
    if not stamp.exists() or json.loads(stamp.read_text(encoding="utf-8")) != install:
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *install], check=True)
        stamp.write_text(json.dumps(install), encoding="utf-8")
    return python


def numbers_of(python: Path, row: dict[str, Any], package: str = "") -> dict[str, Any]:
    """Return the numbers of all scripts of an environment, or the error of a script in their place.

    `package` replaces the name in their import lines.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "numbers.json"
        command = [
            str(python),
            "-W",
            "ignore",
            str(EXTRAS / "script_runner.py"),
            str(ROOT / row["scripts"]),
            str(out),
            row["line"],
            *([package] if package else []),
        ]
        subprocess.run(command, check=True, env={**os.environ, **NO_TELEMETRY}, stdout=subprocess.DEVNULL)
        found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return found


def main() -> None:
    """Compare or record the numbers of one environment, or of all."""
    parser = argparse.ArgumentParser(description="Run the scripts of tests/compat with their own packages.")
    parser.add_argument("names", nargs="*", help="environments; all if none is named")
    parser.add_argument("--record", action="store_true", help="write the numbers instead of comparing them")
    arguments = parser.parse_args()
    faults: list[str] = []
    for name, row in environments().items():
        if arguments.names and name not in arguments.names:
            continue
        python = python_of(name, row["install"])
        found = numbers_of(python, row)
        recorded = EXTRAS / "recorded" / row["recorded"]
        faults += [f"{name}: {script}: {error}" for script, error in found.items() if isinstance(error, str)]
        if arguments.record:
            recorded.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        elif not same(json.loads(recorded.read_text(encoding="utf-8")), found):
            faults.append(f"{name}: the numbers are not those in {recorded.relative_to(ROOT)}; --record writes them.")
        if row.get("beside", True):
            faults += beside(name, row, python, found)
        print(f"{name}: {len(found)} scripts")
    if faults:
        sys.exit("\n".join(faults))


def beside(name: str, row: dict[str, Any], python: Path, upstream: dict[str, Any]) -> list[str]:
    """Install merilo beside the package; return the scripts whose numbers with it are not the package's."""
    subprocess.run([python, "-m", "pip", "install", "--quiet", str(ROOT)], check=True)
    subprocess.run([python, "-m", "pip", "check"], check=True)
    found = numbers_of(python, row, row["package"])
    listed = differences(name)
    wrong = [script for script in found if script not in listed and not same(found[script], upstream[script])]
    return [f"{name}: {script}: {found[script]} with merilo beside the package" for script in wrong]


def same(first: Any, second: Any) -> bool:
    """Return True if two results are equal, numbers within 1e-7."""
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)
    if isinstance(first, float) and isinstance(second, float):
        return abs(first - second) < 1e-7
    return bool(first == second)


if __name__ == "__main__":
    main()
