"""Ids of samples: each its own, also where some records have none and go by their number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from judged_rivers import verdict_for

import merilo

if TYPE_CHECKING:
    from pathlib import Path


def evaluate(data: object, tmp_path: Path, **arguments: Any) -> merilo.Run:
    judge = merilo.ScriptedJudge.by(verdict_for)
    return merilo.evaluate(
        data,  # type: ignore[arg-type]
        judge=judge,
        metrics=["context_relevance"],
        cache=False,
        out=tmp_path / "run",
        **arguments,
    )


def record(sample_id: object = None) -> dict[str, Any]:
    given = {} if sample_id is None else {"id": sample_id}
    return {**given, "user_input": "q?", "retrieved_contexts": ["a river"]}


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([None, "1"], "record 2, field 'id': expected an id of its own, got '1', by which record 1 goes already"),
        ([None, 1], "record 2, field 'id': expected an id of its own, got '1', by which record 1 goes already"),
        (["2", None], "goes by its number 2, which sample 1 has as its id"),
        (["a", "a"], "got 'a', which sample 1 has already"),
        (["2", "x", "2"], "got '2', which sample 1 has already"),
        ([None, "x", "x"], "got 'x', which sample 2 has already"),
    ],
)
def test_two_samples_of_one_id_are_refused(ids: list[object], message: str, tmp_path: Path) -> None:
    """The sentence names both records, and says where one of them goes by its number for want of an id."""
    with pytest.raises(merilo.DataError) as refused:
        evaluate([record(each) for each in ids], tmp_path)
    assert message in str(refused.value)


def test_numbers_beside_other_ids_are_fine(tmp_path: Path) -> None:
    """Records with and without ids stand side by side while no two are equal."""
    run = evaluate([record(), record("x"), record(), record("5"), record("02")], tmp_path)
    assert [sample.sample.id for sample in run.samples] == ["1", "x", "3", "5", "02"]


def test_an_id_far_back_is_found(tmp_path: Path) -> None:
    """An id is compared with all before it, not only with those read lately."""
    data = [record(f"s{number}") for number in range(700)]
    with pytest.raises(merilo.DataError, match=r"record 701, field 'id': .* got 's3', which sample 4 has already"):
        evaluate([*data, record("s3")], tmp_path)


def test_the_second_of_one_id_can_be_skipped(tmp_path: Path) -> None:
    """With skip_invalid the first sample of an id stays, and the run says what was left out."""
    run = evaluate([record(), record("1"), record("y")], tmp_path, skip_invalid=True)
    assert [sample.sample.id for sample in run.samples] == ["1", "y"]
    assert len(run.manifest.skipped) == 1
