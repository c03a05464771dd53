"""Missing values as numpy, pandas, JSON and tables write them: absent in optional fields, an error in required ones."""

import json
from decimal import Decimal
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from each_case import each_case

from merilo.data import check
from merilo.data.context import Context
from merilo.data.labels import read_labels
from merilo.data.load import load
from merilo.data.sample import BadRecord, Sample
from merilo.errors import DataError

OPTIONAL = (
    "response",
    "reference",
    "retrieved_contexts",
    "reference_contexts",
    "retrieved_context_ids",
    "reference_context_ids",
    "language",
    "metadata",
    "topic",
    "id",
)
MISSING = [None, nan, np.float64(nan), np.float32(nan)]


def only(dataset: Any) -> Sample:
    """The one sample, which must be good."""
    (item,) = dataset
    assert isinstance(item, Sample), item
    return item


@each_case("value", MISSING)
def test_a_missing_value_in_any_optional_field_is_no_value(value: object) -> None:
    """None and NaN, also numpy's, leave the field out, in records and in samples made by hand."""
    record = {"user_input": "q?", **dict.fromkeys(OPTIONAL, value)}
    assert only(load([record])) == Sample("1", user_input="q?")
    fields = {name: value for name in OPTIONAL if name not in {"topic", "id"}}
    assert Sample("1", user_input="q?", **fields) == Sample("1", user_input="q?")


def test_missing_values_of_pandas_are_no_value() -> None:
    """A frame's NA and NaT too; its numpy arrays are lists, and contexts in them go by their other names."""
    pandas = pytest.importorskip("pandas")
    for value in (pandas.NA, pandas.NaT, nan):
        record = {"user_input": "q?", **dict.fromkeys(OPTIONAL, value)}
        assert only(load([record])) == Sample("1", user_input="q?")
    contexts = np.array([{"page_content": "c", "score": pandas.NA}], dtype=object)
    frame = pandas.DataFrame({"question": ["q?", "r?"], "contexts": [contexts, None], "answer": ["a", None]})
    first, second = load(frame.to_dict("records"))
    assert first == Sample("1", user_input="q?", retrieved_contexts=[Context("c")], response="a")
    assert second == Sample("2", user_input="r?")


def test_json_may_write_nan_or_null(tmp_path: Path) -> None:
    """Python's NaN in JSON Lines and JSON is missing, also inside a context and in the metadata."""
    line = (
        '{"user_input": "q?", "response": NaN, "reference": null, "topic": NaN, "retrieved_contexts": '
        '[{"text": "c", "id": NaN, "score": NaN, "language": NaN, "metadata": NaN}], "metadata": {"a": [1, NaN]}}'
    )
    expected = Sample("1", user_input="q?", retrieved_contexts=["c"], metadata={"a": [1, None]})
    for name, content in {"d.jsonl": line, "d.json": f"[{line}]"}.items():
        (tmp_path / name).write_text(content)
        sample = only(load(tmp_path / name))
        assert sample == expected
        assert json.loads(json.dumps(sample.to_record(), allow_nan=False)) == sample.to_record()


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"retrieved_contexts": ["a", nan]}, "'retrieved_contexts[1]': expected a string or an object with 'text'"),
        ({"retrieved_contexts": [{"text": nan}]}, "'retrieved_contexts[0].text': expected text"),
        ({"retrieved_context_ids": ["a", nan]}, "'retrieved_context_ids[1]': expected an id"),
    ],
)
def test_a_missing_value_in_a_required_place_is_an_error(record: dict[str, Any], message: str) -> None:
    """A context needs its text and a list of ids its ids: a gap would move the ranks of all that follow."""
    (bad,) = load([record])
    assert isinstance(bad, BadRecord)
    assert message in bad.problems[0].message
    assert bad.problems[0].message.endswith("got NaN (a missing value).")


def test_a_sample_needs_an_id() -> None:
    """A sample made by hand has no number to go by."""
    with pytest.raises(DataError, match=r"expected an id \(text or a whole number\), got NaN \(a missing value\)"):
        Sample(nan)  # type: ignore[arg-type]  # the wrong type is what is tested


@each_case("value", [0, 0.0, False, "", "nan", [], {}, np.float32(0), np.array([nan]), Decimal(1), object()])
def test_what_has_a_value_is_not_missing(value: object) -> None:
    """Zero, blank and empty are values, and so is an array."""
    assert not check.is_missing(value)


@each_case("word", ["nan", "NaN", "None", "null", "<NA>", "NaT", " nan "])
def test_a_printed_missing_value_in_another_cell_than_a_texts_is_missing(word: str, tmp_path: Path) -> None:
    """An id, a language, a list and metadata are no such word."""
    path = tmp_path / "d.csv"
    header = "user_input,id,language,retrieved_contexts,reference_context_ids,metadata,ground_truths"
    path.write_text(f"{header},reference_contexts.0,reference_contexts.1\nq?{f',{word}' * 6},g,{word}\n")
    dataset = load(path)
    assert only(dataset) == Sample("1", user_input="q?", reference_contexts=["g"])
    assert "plain text" not in dataset.columns.sentence()


@each_case("word", ["nan", "NaN", "None", "null"])
def test_a_printed_missing_value_in_a_cell_of_a_text_is_a_text(word: str, tmp_path: Path) -> None:
    """A response may be the word "None"; the summary says that it was read so, and an empty cell is missing."""
    path = tmp_path / "d.csv"
    path.write_text(f"user_input,response,reference\nq?,{word},\n")
    dataset = load(path)
    assert only(dataset) == Sample("1", user_input="q?", response=word)
    assert "nan or None in response as text" in dataset.columns.sentence()


def test_a_labelled_record_may_miss_what_is_optional(tmp_path: Path) -> None:
    """NaN in the optional fields of labels is absent; in a required one it is named."""
    record = {"task": "nli", "context": "c", "statement": "s", "label": 1, "query": nan, "lang": nan, "id": nan}
    meta = {"constructed": nan, "label01": nan, "scale": nan}
    path = tmp_path / "labels.jsonl"
    path.write_text(json.dumps({**record, "meta": meta}))
    (found,) = read_labels([path])
    assert (found.id, found.query, found.language, found.constructed) == ("labels:1", "", None, False)
    assert found.label01 == 1.0
    path.write_text(json.dumps({**record, "statement": nan}))
    with pytest.raises(DataError, match="field 'statement': expected a text"):
        read_labels([path])
