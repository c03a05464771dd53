"""Every golden case gives what the published code gave, and the harness fails where it should."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from published.cases import VENDORED, Case, Level, read_file
from published.levels import Computed, compute
from published.playing import Played, play

from merilo.errors import UsageError
from merilo.judging.verdicts import FailureKind
from merilo.metrics.base import Failed, Score

TOLERANCE = 1e-7
ALL = [case for path in sorted(VENDORED.glob("*.json")) for case in read_file(path)]
CASES = {case.id: case for case in ALL}
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
    "unknown-predecessor": ({"after": "nobody"}, "no case before it"),
}


async def faults(found: Iterable[Case], folder: Path) -> dict[str, str]:
    """The message for each case that does not give what it expects."""
    messages: dict[str, str] = {}
    for number, case in enumerate(found):
        (folder / str(number)).mkdir()
        try:
            await check(case, folder / str(number))
        except (AssertionError, LookupError, ValueError, UsageError, pytest.fail.Exception) as error:
            messages[case.id] = str(error)
    return messages


async def check(case: Case, folder: Path) -> None:
    """Compare the outcome, the number of requests and all else that a case asserts with the published code's."""
    if case.level is Level.SAMPLE:
        check_played(case, await play(case, CASES, folder))
    else:
        check_computed(case, compute(case))


@pytest.mark.parametrize("path", sorted(VENDORED.glob("*.json")), ids=lambda path: path.stem)
async def test_golden(path: Path, tmp_path: Path) -> None:
    """Each case of a file gives what the published code gave."""
    assert await faults(read_file(path), tmp_path) == {}


def test_there_are_as_many_cases_as_the_page_says() -> None:
    """The vendored folder has the number of cases that its README states, each with its own id."""
    assert f"{len(CASES)} cases" in (VENDORED / "README.md").read_text(encoding="utf-8")
    assert len(CASES) == len(ALL)


async def test_a_faulty_case_fails(tmp_path: Path) -> None:
    """A case that expects something else, or names what is unknown, fails with the reason; a good one passes."""
    written = [GOOD, *({**GOOD, **changes, "id": name} for name, (changes, _) in FAULTS.items())]
    (tmp_path / "cases.json").write_text(json.dumps(written), encoding="utf-8")
    messages = await faults(read_file(tmp_path / "cases.json"), tmp_path)
    assert {name: message in messages.pop(name, "") for name, (_, message) in FAULTS.items()} == dict.fromkeys(
        FAULTS, True
    )
    assert messages == {}
    (tmp_path / "cases.json").write_text(json.dumps([{**GOOD, "expected_colour": "red"}]), encoding="utf-8")
    with pytest.raises(ValueError, match="which nobody checks"):
        read_file(tmp_path / "cases.json")


def check_played(case: Case, played: Played) -> None:
    """Hold an outcome to the case."""
    expected, outcome = case.raw["expected_score"], played.outcome
    if outcome is None:
        assert case.expects_error, f"{case.id}: {played.refusal}"
    elif isinstance(expected, int | float):
        assert isinstance(outcome, Score), f"{case.id}: expected {expected}, got {outcome}"
        assert abs(outcome.value - expected) <= TOLERANCE, f"{case.id}: expected {expected}, got {outcome}"
        check_counts(case, outcome)
    else:
        assert expected in {None, "NaN"}, f"{case.id}: a sample cannot score {expected!r}"
        assert not isinstance(outcome, Score), f"{case.id}: expected no score, got {outcome}"
        broken = isinstance(outcome, Failed) and outcome.error.kind is FailureKind.BROKEN
        assert not broken, f"{case.id}: {outcome}"
    check_requests(case, played)


def check_counts(case: Case, score: Score) -> None:
    """Hold what a score says beside its value to the case."""
    for name, count in (
        ("expected_success", "success"),
        ("valid", "valid"),
        ("extraction_failed", "extraction_failed"),
    ):
        expected = case.raw.get(name)
        if expected is not None:
            assert bool(score.counts[count]) is bool(expected), f"{case.id}: {name} is {expected}, got {score}"


def check_requests(case: Case, played: Played) -> None:
    """Hold the requests to the case; where an error is expected their number is not compared."""
    sent = len(played.requests)
    if "prompts_sent" in case.raw and not case.expects_error:
        assert sent == case.raw["prompts_sent"], f"{case.id}: {case.raw['prompts_sent']} requests expected, {sent} sent"
    differs = case.raw.get("second_prompt_differs_from_first")
    if differs is not None:
        first, second = played.requests[:2]
        assert (first.messages != second.messages) is differs, f"{case.id}: second prompt differs is not {differs}"


def check_computed(case: Case, computed: Computed) -> None:
    """Hold a computed number, or numbers by name, to the case."""
    expected = case.raw["expected_score"]
    if expected is None or expected == "NaN":
        assert computed.value is None, f"{case.id}: expected no number, got {computed}"
    else:
        assert computed.value == pytest.approx(expected, rel=0, abs=TOLERANCE), case.id
    if (interval := case.raw.get("expected_interval")) is not None:
        assert computed.interval == pytest.approx(tuple(interval), rel=0, abs=TOLERANCE), case.id
