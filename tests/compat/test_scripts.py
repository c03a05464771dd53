"""Scripts written after the documentation of ragas and DeepEval run with only their import lines changed.

Their numbers are compared with those that the packages themselves gave with the same scripted judge
(tests/extras/recorded; `make test-extras` runs them again).
"""

import json
import math
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from extras.script_runner import Script, run, scripts_in, with_imports_of

TESTS = Path(__file__).parent.parent
TABLE: dict[str, Any] = tomllib.loads((TESTS / "extras" / "environments.toml").read_text(encoding="utf-8"))
DIFFERENCES: dict[str, dict[str, str]] = TABLE.pop("differences")


def runs() -> list[Any]:
    return [
        pytest.param(name, script, id=f"{name}: {script.name}")
        for name, row in TABLE.items()
        for script in scripts_in(TESTS.parent / row["scripts"], row["line"])
    ]


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the scripts import beside the package: clients and models, as merilo calls them."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "stand_ins"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "MERILO_CACHE", "MERILO_SESSION_RUNS"):
        monkeypatch.setenv(name, "")  # restored after the script has set it


@pytest.mark.parametrize(("name", "script"), runs())
def test_a_script_gives_the_numbers_of_the_package(name: str, script: Script) -> None:
    """Each number is the package's own, and a listed difference is one."""
    recorded = json.loads((TESTS / "extras" / "recorded" / TABLE[name]["recorded"]).read_text(encoding="utf-8"))
    found = run(script, TABLE[name]["package"])
    expected = recorded[script.name]
    assert found.keys() == expected.keys()
    equal = all(same(found[key], expected[key]) for key in expected)
    if script.name in DIFFERENCES.get(name, {}):
        assert not equal
    else:
        assert found == pytest.approx(expected, abs=1e-7)


def same(first: float | None, second: float | None) -> bool:
    if first is None or second is None:
        return first is second
    return math.isclose(first, second, abs_tol=1e-7)


def test_only_import_lines_change() -> None:
    """The replacement leaves every other line as it is."""
    for row in TABLE.values():
        for script in scripts_in(TESTS.parent / row["scripts"], row["line"]):
            before, after = script.text.splitlines(), with_imports_of(script.text, row["package"]).splitlines()
            changed = [old for old, new in zip(before, after, strict=True) if old != new]
            assert changed
            assert all(line.split()[0] in {"from", "import"} for line in changed)


def test_differences_name_scripts() -> None:
    """Each listed difference is of a script of that environment."""
    for name, reasons in DIFFERENCES.items():
        names = {script.name for script in scripts_in(TESTS.parent / TABLE[name]["scripts"], TABLE[name]["line"])}
        assert reasons.keys() <= names


def test_importing_loads_no_framework() -> None:
    """Neither package imports LangChain, pandas, ragas or DeepEval."""
    import subprocess

    code = (
        "import sys, merilo.compat.ragas.metrics.collections, merilo.compat.deepeval.metrics;"
        "sys.exit(any(name in sys.modules for name in ('langchain_core', 'pandas', 'ragas', 'deepeval', 'openai')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
