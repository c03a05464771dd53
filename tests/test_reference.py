"""The generated parts of the documentation say what the code says; who writes them: tools/docs.py."""

import re
import shutil
import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import typer

import merilo
from merilo.cli import app
from merilo.metrics.registry import native_metrics, systems

ROOT = Path(__file__).resolve().parent.parent
METRICS, INTERFACE, FILES = (
    (ROOT / "docs" / "reference" / f"{name}.md").read_text(encoding="utf-8")
    for name in ("metrics", "interface", "files")
)


def checked(root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(root / "tools" / "docs.py"), "--check"], check=False, capture_output=True, text=True
    )


def test_the_pages_say_what_the_code_says() -> None:
    """Every generated part of README.md and docs/ is what tools/docs.py makes of the installed merilo."""
    done = checked(ROOT)
    assert done.returncode == 0, done.stderr


def test_a_page_that_drifts_is_named(tmp_path: Path) -> None:
    """A generated part that was changed by hand fails the check, by the name of its page."""
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    for name in ("tests/compat", "tests/extras", "benchmarks/labels"):  # their scripts and records are parts
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "README.md", tmp_path)
    page = tmp_path / "docs" / "reference" / "metrics.md"
    page.write_text(METRICS.replace("Supported statements /", "All statements /"), encoding="utf-8")
    done = checked(tmp_path)
    assert done.returncode == 1
    assert re.findall(r"(\S+) differs from the code", done.stderr) == ["docs/reference/metrics.md"]


def test_every_metric_and_definition_is_on_the_page() -> None:
    """Each native metric has a section, and each published definition a row under the release that it is of."""
    native, _, published = METRICS.partition("## Published definitions")
    sections = re.findall(r"^### (.+)$", native, re.MULTILINE)
    assert set(sections) == {name for name in native_metrics() if "." not in name}
    named = set(re.findall(r"^`([\w.-]+:[\w.]+)` \|", published, re.MULTILINE))
    for releases, table in re.findall(r"^### ragas (.+)\n\n((?:.+\n)+)", published, re.MULTILINE):
        for metrics in re.findall(r"^(`.*) \|", table, re.MULTILINE):
            for metric, some in re.findall(r"`(\w+)`(?: \(([^)]+)\))?", metrics):
                for release in (some or releases).split(", "):
                    version, _, part = release.partition(" ")
                    named.add(f"ragas-{version}:{part}{'.' * bool(part)}{metric}")
    assert named == {name for names in systems().values() for name in names}


def test_every_option_and_public_name_is_on_a_page() -> None:
    """Commands and Python have one page: each option of each command is there, and each name but those of errors."""
    found: Any = typer.main.get_command(app())
    commands = [
        (found.commands[group].commands if group else found.commands).values() for group in ("", "runs", "judge")
    ]
    options = {
        max(param.opts, key=len)
        for each in chain(*commands)
        for param in each.params
        if param.param_type_name == "option"
    }
    assert {option for option in options if f"`{option}" not in INTERFACE} <= {"--debug"}
    assert {name for name in merilo.__all__ if not re.search(rf"\b{name}\b", INTERFACE)} <= set(
        re.findall(r"\w+", FILES)
    )
