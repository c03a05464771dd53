"""The golden harness fails where it should: a wrong number, an unknown name, a file that is no file of cases."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

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
    "score-where-none-is-expected": ({"expected_score": "NaN"}, "expected no score"),
    "wrong-count-of-requests": ({"prompts_sent": 2}, "2 requests expected, 1 sent"),
    "wrong-validity": ({"valid": 0}, "valid is 0"),
    "no-reply-left": ({"judge_outputs": []}, "has no reply left"),
    "unknown-system": ({"system": "nobody"}, "there is no system"),
    "unknown-metric": ({"metric": "charm"}, "No metric"),
    "unknown-version": ({"version": "git 0000000"}, "is not reproduced in version"),
    "unknown-level": ({"level": "galaxy"}, "is no case"),
    "unknown-option": ({"config": {"colour": "red"}, "expected_error": "any", "expected_score": None}, "no parameter"),
    "unknown-scale": (
        {
            "system": "trulens",
            "metric": "context_relevance",
            "version": "git 97f531a",
            "inputs": {"question": "q", "context": "c"},
            "config": {"max_score_val": 7},
        },
        "scale=0-3",
    ),
    "unknown-input": ({"inputs": {"query": "q", "passage": "p", "smell": "s"}}, "nothing reads the inputs"),
    "unknown-expectation": ({"expected_colour": "red"}, "which nobody checks"),
    "unknown-predecessor": ({"after": "nobody"}, "no case before it"),
    "no-expectation": ({"expected_score": ...}, "is no case"),
}
_RATING: Mapping[str, Any] = {"score": 2, "reasoning": "r"}
KNOWN: Mapping[str, Mapping[str, Any]] = {
    "options-of-axion's-engine": {
        "system": "axion",
        "metric": "ContextualRelevancy",
        "version": "git 7ab96dc",
        "inputs": {"query": "q", "retrieved_content": ["c"]},
        "config": {"max_concurrent_llm_calls": 5, "threshold": 0.7},
        "judge_outputs": [{"verdicts": [{"verdict": "yes"}]}],
        "expected_score": 1,
    },
    "conversation": {
        "system": "axion",
        "metric": "AnswerRelevancy",
        "version": "git 7ab96dc",
        "inputs": {
            "query": "q",
            "actual_output": "a",
            "conversation": [{"role": "user", "content": "q0"}, {"role": "assistant", "content": "a0"}],
        },
        "config": {"multi_turn_strategy": "all_turns"},
        "judge_outputs": [{"statements": ["s"]}, {"verdicts": [{"verdict": "no"}]}, {"explanation": "e"}],
        "expected_score": 0,
    },
    "list-of-models": {
        "system": "spring-ai-ragas",
        "metric": "ContextRelevance",
        "version": "0.3.3",
        "inputs": {"userInput": "q", "retrievedContexts": ["c"]},
        "config": {"models": ["m2"], "language": "ru"},
        "judge_outputs": [{"m1": {"score": 0}, "m2": _RATING}],
        "expected_score": 1,
    },
    "ends-of-the-scale": {
        "system": "trulens",
        "metric": "context_relevance",
        "version": "git 97f531a",
        "inputs": {"question": "q", "context": "c"},
        "config": {"max_score_val": 10, "temperature": 0.0},
        "judge_outputs": ["7"],
        "expected_score": 0.7,
    },
    "name-of-a-function": {
        "system": "trulens",
        "metric": "groundedness_measure_with_cot_reasons",
        "version": "git 97f531a",
        "inputs": {"source": "c", "statement": "It is long."},
        "judge_outputs": ['["It is long."]', "3"],
        "expected_score": 1,
    },
}
FILES: Mapping[str, tuple[str, str]] = {
    "broken": ("[{", "cannot be read"),
    "empty-list": ("[]", "holds no list of cases"),
    "no-list": ('{"id": "x"}', "holds no list of cases"),
    "no-object": ('["x"]', "is no object"),
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
    known = [{**case, "id": name} for name, case in KNOWN.items()]
    (folder / "cases.json").write_text(json.dumps([GOOD, *known, *cases]), encoding="utf-8")
    for name, (text, _) in FILES.items():
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    return verdicts(folder)


def test_a_good_case_passes(judged: Mapping[str, str]) -> None:
    """A case that merilo reproduces passes, beside many that fail."""
    assert not judged["good"]


@pytest.mark.parametrize("name", KNOWN)
def test_a_published_name_is_known(judged: Mapping[str, str], name: str) -> None:
    """Names that a published system uses and merilo does not are understood."""
    assert not judged[name]


@pytest.mark.parametrize("name", FAULTS)
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
