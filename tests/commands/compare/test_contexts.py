"""Runs with different numbers of contexts."""

from pathlib import Path
from typing import Any

import pytest
from compared import compare_runs
from graded_runs import graded, many

from merilo.commands.compare.record import comparison_record
from merilo.commands.compare.result import RunComparison
from merilo.commands.compare.text import comparison_page


def grades(count: int, *own: int) -> dict[str, list[int]]:
    """So many samples with contexts of these grades."""
    return {f"s{number}": list(own) for number in range(count)}


def numbers_of(found: RunComparison) -> list[dict[str, Any]]:
    """The mean numbers of contexts of the runs."""
    return [dict(each.facts) for each in found.caveats if each.code == "context-numbers"]


def text(found: RunComparison) -> str:
    """Its full page in one line."""
    return " ".join(str(comparison_page(found, 100, full=True)).split())


def test_the_mean_numbers_are_stated(tmp_path: Path) -> None:
    """The page and the record have the mean number of each run."""
    short, long = graded(tmp_path / "short", grades(30, 2)), graded(tmp_path / "long", grades(30, 2, 0, 0, 0))
    found = compare_runs([short, long])
    assert "1.00 in short, 4.00 in long" in text(found)
    assert [each["facts"] for each in comparison_record(found)["caveats"]][:1] == [
        {"first": "short", "second": "long", "first_mean": 1.0, "second_mean": 4.0, "samples": 30}
    ]


def test_samples_without_contexts_count_as_none(tmp_path: Path) -> None:
    """A sample for which nothing was retrieved has the number 0."""
    full, silent = graded(tmp_path / "a", many(30, 1)), graded(tmp_path / "b", {**many(30, 1), "s0": []})
    found = compare_runs([full, silent])
    assert [(each["first_mean"], each["second_mean"]) for each in numbers_of(found)] == [(1.0, pytest.approx(29 / 30))]
