"""Ids of samples: each its own, also where some records have none and go by their number."""

from pathlib import Path
from typing import Any

import pytest
from grouping import grouped
from judged_rivers import verdict_for

import merilo


def evaluate(data: object, tmp_path: Path, **arguments: Any) -> merilo.Run:
    judge = merilo.ScriptedJudge.by(verdict_for)
    return merilo.evaluate(
        data, **grouped(judge=judge, metrics=["context_relevance"], cache=False, out=tmp_path / "run", **arguments)
    )


def record(sample_id: object = None) -> dict[str, Any]:
    given = {} if sample_id is None else {"id": sample_id}
    return {**given, "user_input": "q?", "retrieved_contexts": ["a river"]}


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([None, "1"], "record 2, field 'id': expected a unique id, got '1', which is the id of record 1"),
        ([None, 1], "record 2, field 'id': expected a unique id, got '1', which is the id of record 1"),
        (["2", None], "its number 2 is its id, which sample 1 has already"),
        (["a", "a"], "got 'a', the id of sample 1"),
        (["2", "x", "2"], "got '2', the id of sample 1"),
        ([None, "x", "x"], "got 'x', the id of sample 2"),
    ],
)
def test_two_samples_of_one_id_are_refused(ids: list[object], message: str, tmp_path: Path) -> None:
    """The sentence names both records, and says where one of them goes by its number for want of an id."""
    with pytest.raises(merilo.DataError) as refused:
        evaluate([record(each) for each in ids], tmp_path)
    assert message in str(refused.value)


def test_the_second_of_one_id_can_be_skipped(tmp_path: Path) -> None:
    """With skip_invalid the first sample of an id stays, and the run says what was left out."""
    run = evaluate([record(), record("1"), record("y")], tmp_path, skip_invalid=True)
    assert [sample.sample.id for sample in run.samples] == ["1", "y"]
    assert len(run.manifest.skipped) == 1


def test_a_fault_of_all_records_is_told_once(tmp_path: Path) -> None:
    """A file without a known column is one line for all records, which names the columns."""
    rows = [{"colour": "red", "weight": 1} for _ in range(30)]
    with pytest.raises(merilo.DataError) as refused:
        evaluate(rows, tmp_path)
    told = str(refused.value).splitlines()
    assert len(told) == 2
    assert "all 30 records: expected at least one of the fields" in told[1]
    assert "'colour', 'weight'" in told[1]
    assert len(refused.value.problems) == 30


def test_a_fault_of_some_records_is_told_once_with_their_places(tmp_path: Path) -> None:
    """Places that follow one another are a span; a fault that one record alone has keeps its place."""
    bad = {"user_input": 1, "retrieved_contexts": ["c"]}
    rows = [bad, bad, bad, record(), bad, {"user_input": 2, "retrieved_contexts": ["c"]}]
    with pytest.raises(merilo.DataError) as refused:
        evaluate(rows, tmp_path)
    told = str(refused.value).splitlines()
    assert len(told) == 3
    assert "records 1 to 3, 5, field 'user_input': expected" in told[1]
    assert "record 6, field 'user_input': expected" in told[2]
