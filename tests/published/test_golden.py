"""Every golden case gives what the published code gave."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from published.cases import Case, Level, Unreadable
from published.levels import Computed, compute
from published.playing import Played, play

from merilo.judging.verdicts import FailureKind
from merilo.metrics.base import Failed, Score

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

TOLERANCE = 1e-7


async def test_golden(golden: Case | Unreadable, cases: Mapping[str, Case], tmp_path: Path) -> None:
    """The outcome, the number of requests and all else that the case asserts are those of the published code."""
    if isinstance(golden, Unreadable):
        pytest.fail(golden.reason)
    if golden.level is Level.SAMPLE:
        check_played(golden, await play(golden, cases, tmp_path))
    else:
        check_computed(golden, compute(golden))


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
