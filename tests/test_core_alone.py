"""merilo without the definitions of other systems: its tests pass, and commands say where these are."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from each_case import each_case

TESTS = (
    "data/test_sample.py",
    "engine/test_composites.py",
    "metrics/test_context_metrics.py",
    "metrics/test_registry.py",
)
ROW = {"id": "a", "user_input": "When?", "retrieved_contexts": ["It was completed in 1889."], "response": "In 1889."}
MISSING = "the package merilo_published, which is not installed"


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    """The environment of processes that do not find the package; see closed/sitecustomize.py."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return {**own, "MERILO_TESTS_HIDE": "merilo_published"}


def test_the_tests_of_the_core_pass(environment: dict[str, str]) -> None:
    """Quick tests of data, engine and metrics."""
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow and not extras and not long"]
    tests = [str(Path(__file__).parent / each) for each in TESTS]
    command = [sys.executable, "-m", "pytest", *options, *tests]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> Path:
    """A folder with data and a run."""
    found = tmp_path_factory.mktemp("core")
    (found / "data.jsonl").write_text(json.dumps(ROW) + "\n")
    assert merilo(found, environment, "run data.jsonl --quiet --out run").returncode == 0
    return found


def merilo(folder: Path, environment: dict[str, str], words: str) -> "subprocess.CompletedProcess[str]":
    """A command that has ended."""
    command = [sys.executable, "-m", "merilo", *words.split()]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_commands_work(folder: Path, environment: dict[str, str]) -> None:
    """`metrics` lists merilo's own; `show` and `compare` read a run."""
    for words in ("metrics", "metrics faithfulness", "show run", "show run --sample a", "compare run run"):
        done = merilo(folder, environment, words)
        assert (done.returncode, done.stderr) == (0, ""), words
        assert "ragas" not in done.stdout or words == "metrics faithfulness"


@each_case(
    "words",
    [
        "run data.jsonl --metrics ragas-0.4.3:faithfulness",
        "run data.jsonl --metrics faithfulness --judge openai:m --prompts installed",
    ],
)
def test_a_command_that_needs_the_package_says_so(folder: Path, environment: dict[str, str], words: str) -> None:
    """One sentence names the package."""
    done = merilo(folder, environment, words)
    assert done.returncode != 0
    (line,) = done.stderr.splitlines()
    assert MISSING in line


def test_scripts_of_other_packages_say_so(environment: dict[str, str]) -> None:
    """The import of a name of theirs."""
    command = [sys.executable, "-c", "from merilo.compat.ragas import evaluate"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == f"ImportError: The names of other packages are in {MISSING}."
