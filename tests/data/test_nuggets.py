"""Nuggets in the metadata of a sample: the forms that are read, and those that are not."""

from typing import Any

import pytest
from each_case import each_case

from merilo.data.load import load
from merilo.data.sample import INVALID_NUGGETS, NO_NUGGETS, Nugget, NuggetError, Sample, nuggets_in


@each_case(
    ("given", "expected"),
    [
        (["a", " b "], [("a", True), ("b", True)]),
        ([{"text": "a", "vital": False}, {"text": "b"}], [("a", False), ("b", True)]),
        ([{"text": "a", "importance": "okay"}, {"text": "b", "importance": "vital"}], [("a", False), ("b", True)]),
        ([{"text": "a", "importance": "okay", "assignment": "support"}], [("a", False)]),
        ([{"text": "a", "vital": False}, "a"], [("a", True)]),
        ('["a", {"text": "b", "vital": false}]', [("a", True), ("b", False)]),
        ([], []),
    ],
)
def test_forms(given: Any, expected: list[tuple[str, bool]]) -> None:
    """Texts are vital, objects say it, a cell has JSON, and equal texts are one nugget."""
    assert nuggets_in({"nuggets": given}) == tuple(Nugget(*each) for each in expected)


@each_case(
    "given",
    [
        "a; b",
        "[" * 100_000,
        {"text": "a"},
        [1],
        [" "],
        [None],
        [{"vital": True}],
        [{"text": "a", "vital": 1}],
        [{"text": "a", "importance": "high"}],
        [{"text": "a", "importance": ["vital"]}],
    ],
)
def test_other_forms_are_invalid(given: Any) -> None:
    """Anything else is an error that names the form; a sample without nuggets has its own message."""
    with pytest.raises(NuggetError, match="are not a list of texts"):
        nuggets_in({"nuggets": given})
    assert 'with "text"' in INVALID_NUGGETS
    with pytest.raises(NuggetError, match=NO_NUGGETS):
        nuggets_in({})


def test_a_column_of_nuggets_is_stored_with_the_sample() -> None:
    """A column `nuggets` is stored in the metadata, which the record of the sample keeps; no notice calls it unread."""
    data = load([{"user_input": "q", "response": "r", "nuggets": ["a"], "topic": 7}])
    (sample,) = data
    assert isinstance(sample, Sample)
    assert nuggets_in(Sample.from_record(sample.to_record()).metadata) == (Nugget("a"),)
    assert data.columns.sentence() == "Kept in the metadata, unread: topic."
