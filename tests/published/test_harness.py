"""The golden harness fails where it should: a wrong number, an unknown name, a file that is no file of cases."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from each_case import each_case

if TYPE_CHECKING:
    from collections.abc import Mapping

HERE = Path(__file__).parent
GOOD: Mapping[str, Any] = {
    "id": "good",
    "system": "umbrela",
    "metric": "relevance judgment 0-3",
    "version": "git e2c4e41",
    "inputs": {"query": "q", "passage": "p"},
    "judge_outputs": ["##final score: 2"],
    "expected_score": 2,
    "valid": 1,
    "prompts_sent": 1,
}
FAULTS: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "wrong-score": ({"expected_score": 1}, "expected 1"),
    "wrong-count-of-requests": ({"prompts_sent": 2}, "2 requests expected, 1 sent"),
    "wrong-validity": ({"valid": 0}, "valid is 0"),
    "no-reply-left": ({"judge_outputs": []}, "has no reply left"),
    "unknown-metric": ({"metric": "charm"}, "No metric"),
    "unknown-version": ({"version": "git 0000000"}, "is not reproduced in version"),
    "unknown-input": ({"inputs": {"query": "q", "passage": "p", "smell": "s"}}, "nothing reads the inputs"),
    "unknown-expectation": ({"expected_colour": "red"}, "which nobody checks"),
    "unknown-predecessor": ({"after": "nobody"}, "no case before it"),
    "no-expectation": ({"expected_score": ...}, "is no case"),
}
FILES: Mapping[str, tuple[str, str]] = {
    "broken": ("[{", "cannot be read"),
    "no-list": ('{"id": "x"}', "holds no list of cases"),
}


def verdicts(folder: Path) -> dict[str, str]:
    """The report of each failed test of a folder by its id, and '' for each that passed."""
    command = [sys.executable, "-m", "pytest", str(HERE), "-k", "test_golden", "-q", "-rA", "--no-header", "--tb=line"]
    ran = subprocess.run(
        [*command, "-p", "no:cacheprovider", "--golden", str(folder)],
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    found: dict[str, str] = {}
    for line in ran.stdout.splitlines():
        outcome, _, rest = line.partition(" ")
        if outcome in {"PASSED", "FAILED", "ERROR"} and "test_golden[" in rest:
            found[rest.partition("test_golden[")[2].partition("]")[0]] = "" if outcome == "PASSED" else ran.stdout
    assert found, ran.stdout + ran.stderr
    return found


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """What one run says about a folder that holds every fault, and a good case among them."""
    folder = tmp_path_factory.mktemp("faults")
    cases = [{**GOOD, **changes, "id": name} for name, (changes, _) in FAULTS.items()]
    cases = [{key: value for key, value in case.items() if value is not ...} for case in cases]
    (folder / "cases.json").write_text(json.dumps([GOOD, *cases]), encoding="utf-8")
    for name, (text, _) in FILES.items():
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    return verdicts(folder)


def test_a_good_case_passes(judged: Mapping[str, str]) -> None:
    """A case that merilo reproduces passes, beside many that fail."""
    assert not judged["good"]


@each_case("name", FAULTS)
def test_a_faulty_case_fails(judged: Mapping[str, str], name: str) -> None:
    """A case that expects something else, or names what nobody knows, fails and says why."""
    assert FAULTS[name][1] in judged[name]


@pytest.mark.parametrize("name", FILES)
def test_a_faulty_file_fails(judged: Mapping[str, str], name: str) -> None:
    """A file that cannot be read or holds no cases fails as a test of its own."""
    (report,) = (report for title, report in judged.items() if title.startswith(f"{name}.json"))
    assert FILES[name][1] in report


def test_an_empty_folder_fails(tmp_path: Path) -> None:
    """A folder without cases is no success."""
    (report,) = verdicts(tmp_path).values()
    assert "holds no JSON file" in report


def test_every_case_is_one_test() -> None:
    """The vendored folder gives one test for each case, under its id."""
    ids = [case["id"] for path in (HERE / "golden").glob("*.json") for case in json.loads(path.read_text("utf-8"))]
    command = [sys.executable, "-m", "pytest", str(HERE), "--collect-only", "-q", "-k", "test_golden"]
    listed = subprocess.run(command, cwd=HERE.parents[1], capture_output=True, text=True, check=True).stdout
    assert sorted(ids) == sorted(line.partition("[")[2][:-1] for line in listed.splitlines() if "[" in line)
