"""Frames, Arrow tables, Parquet files and saved data sets are read row by row, with missing values kept missing."""

import dataclasses
import datetime as dt
import json
from collections import namedtuple
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from each_case import each_case
from pyarrow import parquet
from pydantic import BaseModel

from merilo.data.load import load
from merilo.data.sample import BadRecord
from merilo.errors import DataError, UsageError

ROWS: list[dict[str, Any]] = [
    {"question": "When?", "contexts": ["In 1889.", "It rains."], "answer": "1889", "rank": 1.5, "seen": {"by": ["a"]}},
    {"question": "Who?", "contexts": [], "answer": None, "rank": None, "seen": None},
]
EXPECTED = [
    {
        "id": "1",
        "user_input": "When?",
        "retrieved_contexts": ["In 1889.", "It rains."],
        "response": "1889",
        "metadata": {"rank": 1.5, "seen": {"by": ["a"]}},
    },
    {"id": "2", "user_input": "Who?", "retrieved_contexts": []},
]


def _reader(rows: list[dict[str, Any]]) -> pa.RecordBatchReader:
    table = pa.Table.from_pylist(rows)
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches())


MAKERS: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
    "pandas": pd.DataFrame,
    "pandas of arrow": lambda rows: pa.Table.from_pylist(rows).to_pandas(),
    "pandas, arrow types": lambda rows: pa.Table.from_pylist(rows).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.DataFrame,
    "polars, lazy": lambda rows: pl.DataFrame(rows).lazy(),
    "arrow": pa.Table.from_pylist,
    "arrow batch": pa.RecordBatch.from_pylist,
    "arrow reader": _reader,
}


def records(source: Any) -> list[Any]:
    """All samples of a source as records; a bad record fails the test."""
    found = list(load(source))
    assert not [item for item in found if isinstance(item, BadRecord)], found
    return [item.to_record() for item in found if not isinstance(item, BadRecord)]


@each_case("kind", MAKERS)
def test_tables_are_read_alike(kind: str) -> None:
    """Nested values, an empty list and missing values arrive the same from every library."""
    assert records(MAKERS[kind](ROWS)) == EXPECTED


def test_a_table_is_read_again_and_a_reader_is_not() -> None:
    """A frame can be read twice; a stream of batches says that it cannot."""
    frame = load(pd.DataFrame(ROWS))
    assert len(list(frame)) == len(list(frame)) == 2
    stream = load(_reader(ROWS))
    assert len(list(stream)) == 2
    with pytest.raises(UsageError, match="only once"):
        list(stream)


def test_a_named_index_is_a_column() -> None:
    """Users of pandas keep ids in the index; a number in a nameless one is not an id."""
    frame = pd.DataFrame(ROWS[:1], index=pd.Index(["x"], name="id"))
    assert records(frame)[0]["id"] == "x"
    assert records(pd.DataFrame(ROWS[:1], index=[7]))[0]["id"] == "1"


def test_missing_values_of_each_library_are_missing() -> None:
    """None, NaN, NA and NaT of pandas are no value; numpy's arrays and numbers are lists and numbers."""
    frame = pd.DataFrame(
        {
            "question": pd.array(["When?", None], dtype="string"),
            "answer": [float("nan"), pd.NA],
            "day": [pd.Timestamp("2024-01-02"), pd.NaT],
            "contexts": [np.array(["In 1889."], dtype=object), None],
            "retrieved_context_ids": [np.array([3, 4]), None],
        }
    )
    assert records(frame.head(1)) == [
        {
            "id": "1",
            "user_input": "When?",
            "retrieved_contexts": ["In 1889."],
            "retrieved_context_ids": ["3", "4"],
            "metadata": {"day": "2024-01-02T00:00:00"},
        }
    ]
    assert records(frame)[1] == {"id": "2"}


@dataclasses.dataclass
class Answered:
    question: str
    answer: str
    contexts: list[str]


class Passage(BaseModel):
    content: str
    doc_id: str
    score: float


class Model(BaseModel):
    question: str
    contexts: list[Passage]


Row = namedtuple("Row", ["question", "answer"])  # noqa: PYI024  the plain form is what is tested


def test_objects_with_fields_are_records() -> None:
    """Dataclasses, pydantic models and named tuples are read by their fields, contexts in them too."""
    model = Model(question="Who?", contexts=[Passage(content="Eiffel.", doc_id="p1", score=0.5)])
    found = records([Answered("When?", "1889", ["In 1889."]), model, Row("Where?", "Paris")])
    assert found == [
        {"id": "1", "user_input": "When?", "response": "1889", "retrieved_contexts": ["In 1889."]},
        {"id": "2", "user_input": "Who?", "retrieved_contexts": [{"text": "Eiffel.", "id": "p1", "score": 0.5}]},
        {"id": "3", "user_input": "Where?", "response": "Paris"},
    ]


def test_standard_types_become_json() -> None:
    """Dates, decimals, UUIDs and paths in other columns are stored as texts and numbers."""
    row = {
        "question": "When?",
        "day": dt.date(2024, 1, 2),
        "price": Decimal("1.5"),
        "run": UUID(int=1),
        "file": Path("a.md"),
    }
    assert records([row])[0]["metadata"] == {
        "day": "2024-01-02",
        "price": 1.5,
        "run": "00000000-0000-0000-0000-000000000001",
        "file": "a.md",
    }


def test_an_unknown_object_is_a_problem_with_its_place() -> None:
    """A value that no rule reads is refused by type, never printed into the data."""
    (bad,) = load([{"question": "When?", "client": object()}])
    assert isinstance(bad, BadRecord)
    assert "metadata.client" in bad.problems[0].message
    assert "a value of type object" in bad.problems[0].message


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame([["When?", "a", "b"]], columns=["question", "contexts", "contexts"]),
        pa.Table.from_arrays([pa.array(["a"])] * 3, names=["question", "contexts", "contexts"]),
    ],
    ids=["pandas", "pyarrow"],
)
def test_a_column_that_occurs_twice_is_refused(table: Any) -> None:
    """Neither of two columns of one name is silently lost."""
    with pytest.raises(DataError, match="Expected each column once, got the column 'contexts' again"):
        list(load(table))


def test_a_column_of_a_parquet_file_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    """A file is read like a table."""
    columns = ["question", "contexts", "contexts"]
    parquet.write_table(pa.Table.from_arrays([pa.array(["a"])] * 3, names=columns), tmp_path / "rows.parquet")
    with pytest.raises(DataError, match="got the column 'contexts' again"):
        records(tmp_path / "rows.parquet")


def test_a_damaged_or_absent_parquet_file_is_an_error(tmp_path: Path) -> None:
    """Bytes that are no Parquet are refused with the name of the file, and so is a file that does not exist."""
    (tmp_path / "rows.parquet").write_bytes(b"PAR1 but nothing else")
    with pytest.raises(DataError, match=r"rows\.parquet: expected a readable file"):
        records(tmp_path / "rows.parquet")
    with pytest.raises(DataError, match="No such file"):
        records(tmp_path / "none.parquet")


def _save(folder: Path, rows: list[dict[str, Any]]) -> None:
    """Write a folder as `save_to_disk` of datasets 5.2.0 does."""
    folder.mkdir(parents=True)
    table = pa.Table.from_pylist(rows)
    with (
        pa.OSFile(str(folder / "data-00000-of-00001.arrow"), "wb") as sink,
        pa.ipc.new_stream(sink, table.schema) as out,
    ):
        out.write_table(table)
    state = {"_data_files": [{"filename": "data-00000-of-00001.arrow"}], "_format_type": None, "_split": None}
    (folder / "state.json").write_text(json.dumps(state))


def test_a_saved_data_set_is_read(tmp_path: Path) -> None:
    """A folder of `save_to_disk` is read without the `datasets` library; one with splits asks for one of them."""
    _save(tmp_path / "saved" / "train", ROWS)
    assert records(tmp_path / "saved" / "train") == EXPECTED
    (tmp_path / "saved" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    with pytest.raises(DataError, match=r"a folder of several splits. Name one of its folders: .*train, .*test"):
        records(tmp_path / "saved")


def test_a_saved_data_set_reads_no_file_outside_its_folder(tmp_path: Path) -> None:
    """A file name with a path in the state of a hostile folder does not leave the folder."""
    _save(tmp_path / "other", ROWS)
    _save(tmp_path / "saved", ROWS)
    (tmp_path / "saved" / "data-00000-of-00001.arrow").unlink()
    state = {"_data_files": [{"filename": "../other/data-00000-of-00001.arrow"}]}
    (tmp_path / "saved" / "state.json").write_text(json.dumps(state))
    with pytest.raises(DataError, match="saved: expected a readable file"):
        records(tmp_path / "saved")


@pytest.mark.extras
def test_real_data_sets_are_read(tmp_path: Path) -> None:
    """A `Dataset`, with each format, as a stream, shuffled and saved to disk, gives the same samples."""
    datasets = pytest.importorskip("datasets", reason="datasets is not installed here")
    table = datasets.Dataset.from_list(ROWS)
    for made in (table, table.with_format("numpy"), table.with_format("pandas"), table.to_iterable_dataset()):
        assert records(made) == EXPECTED
    table.save_to_disk(tmp_path / "saved")
    assert records(tmp_path / "saved") == EXPECTED
    datasets.DatasetDict({"train": table}).save_to_disk(tmp_path / "splits")
    assert records(tmp_path / "splits" / "train") == EXPECTED
