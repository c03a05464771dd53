"""`merilo export`: the same table in three formats."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faulty_run import faulty
from imported import import_scores

import merilo
from merilo.commands.export.run import export_run
from merilo.data.source import plain
from merilo.judging.questions import Question
from merilo.judging.verdicts import Failure, FailureKind
from merilo.rendering.frames import SampleTable

HOSTILE = '=HYPERLINK("http://127.0.0.1/?"&A1,"x")'
CONTROL = "\x01 and \x1b[31m, _x0041_, \ufffe, line\r\nend\ralone"
ROWS = [
    {
        "id": HOSTILE,
        "user_input": CONTROL,
        "retrieved_contexts": ["-2", {"text": "b", "id": "B"}],
        "metadata": {"k": 1},
    },
    {"id": "@2", "user_input": "q", "response": "+1"},
    {"id": "3", "user_input": "q", "retrieved_contexts": []},
    {"id": "4", "user_input": "broken", "retrieved_contexts": ["c"], "language": "en"},
]
NAMES = [
    *("id", "user_input", "retrieved_contexts", "response", "reference", "reference_contexts"),
    *("retrieved_context_ids", "reference_context_ids", "language", "metadata", "contexts"),
    *("fault", "cause", "unsupported", "k"),
    *("context_relevance", "context_relevance_status", "context_relevance_reason"),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> merilo.Run:
    """A run with scored, undefined and failed outcomes, and texts that a spreadsheet would run."""

    def answer(question: Question[Any]) -> dict[str, Any] | Failure:
        if question.user_input == "broken":
            return Failure(FailureKind.REFUSED, "=the judge said no")
        return {"grade": 2, "evidence": [0]}

    judge = merilo.ScriptedJudge.by(answer, version="1")
    out = tmp_path_factory.mktemp("export") / "run"
    return merilo.evaluate(ROWS, metrics=["context_relevance"], judge=judge, out=out, storage={"cache": False})


def exported(run: merilo.Run, path: Path) -> bytes:
    export_run(run, path)
    return path.read_bytes()


def test_jsonl_holds_the_table_as_it_is(run: merilo.Run, tmp_path: Path) -> None:
    """Each line is one sample with all columns; missing values are null, and contexts stay lists."""
    rows = [json.loads(line) for line in exported(run, tmp_path / "x.jsonl").splitlines()]
    assert [list(row) for row in rows] == [NAMES] * 4
    assert [row["id"] for row in rows] == [HOSTILE, "@2", "3", "4"]
    assert rows[0]["user_input"] == CONTROL
    assert rows[0]["retrieved_contexts"] == ["-2", {"text": "b", "id": "B"}]
    assert rows[0]["metadata"] == {"k": 1}
    assert [row["contexts"] for row in rows] == [2, None, 0, 1]
    assert [row["context_relevance_status"] for row in rows] == ["scored", "undefined", "undefined", "failed"]
    assert [row["context_relevance"] for row in rows] == [1.0, None, None, None]
    assert rows[0]["context_relevance_reason"] is None
    assert "retrieved_contexts" in rows[1]["context_relevance_reason"]
    assert "the judge said no" in rows[3]["context_relevance_reason"]


def test_csv_is_defused_and_can_be_reversed(run: merilo.Run, tmp_path: Path) -> None:
    """No cell begins with a character that starts a formula; without the apostrophes the texts are the originals."""
    text = exported(run, tmp_path / "x.csv").decode()
    head, *rows = csv.reader(io.StringIO(text, newline=""))
    assert head == NAMES
    assert not [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))]
    found = [dict(zip(head, map(plain, row), strict=True)) for row in rows]
    assert [row["id"] for row in found] == [HOSTILE, "@2", "3", "4"]
    assert found[0]["user_input"] == CONTROL
    assert json.loads(found[0]["retrieved_contexts"]) == ["-2", {"text": "b", "id": "B"}]
    assert found[1]["response"] == "+1"
    assert [row["contexts"] for row in found] == ["2", "", "0", "1"]
    assert [row["context_relevance"] for row in found] == ["1.0", "", "", ""]


def test_parquet_has_types(run: merilo.Run, tmp_path: Path) -> None:
    """Texts are strings, contexts are integers and scores are doubles, also in columns without a value."""
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    exported(run, tmp_path / "x.parquet")
    table = parquet.read_table(tmp_path / "x.parquet")
    types = {field.name: str(field.type) for field in table.schema}
    assert list(types) == NAMES
    assert {types["id"], types["reference"], types["metadata"]} == {"string"}
    assert (types["contexts"], types["context_relevance"]) == ("int64", "double")
    assert table["user_input"].to_pylist()[0] == CONTROL
    assert table["contexts"].to_pylist() == [2, None, 0, 1]
    assert table["context_relevance"].to_pylist() == [1.0, None, None, None]


@pytest.mark.parametrize(("ending", "library"), [("csv", "csv"), ("jsonl", "json"), ("parquet", "pyarrow")])
def test_the_same_run_gives_the_same_bytes(
    run: merilo.Run, tmp_path: Path, ending: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the time nor the name of the file is in it."""
    pytest.importorskip(library, reason=f"{library} is not installed")
    first = exported(run, tmp_path / f"a.{ending}")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setattr("time.time", lambda: 2e9)
    assert exported(run, tmp_path / f"b.{ending.upper()}") == first


def test_rows_are_streamed(run: merilo.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CSV and JSON Lines write a sample before the next one is read."""
    table = SampleTable.of(run)
    rows = [*table.rows()]
    for ending in ("csv", "jsonl"):
        sizes: list[int] = []
        part = tmp_path / f"x.{ending}.part"

        def watched(sizes: list[int] = sizes, part: Path = part) -> Iterator[object]:
            for _ in range(300):
                sizes.append(part.stat().st_size)
                yield from rows

        monkeypatch.setattr(SampleTable, "rows", lambda _, watched=watched: watched())
        export_run(run, tmp_path / f"x.{ending}")
        assert sizes[-1] > 100_000


def test_a_metric_called_like_a_column_gets_another_name(tmp_path: Path) -> None:
    """Names are unique, and the columns of the sample keep theirs."""
    (tmp_path / "s.csv").write_text("id,s,s_status\na,0.5,0.25\n", encoding="utf-8")
    run = import_scores(tmp_path / "s.csv", scores=["s", "s_status"], out=tmp_path / "run")
    names = [column.name for column in SampleTable.of(run).columns][-6:]
    assert names == [
        *("foreign:s", "foreign:s_status", "foreign:s_reason"),
        *("metric_foreign:s_status", "metric_foreign:s_status_status", "metric_foreign:s_status_reason"),
    ]


def test_verdict_cause_and_statement_of_each_sample(tmp_path: Path) -> None:
    """The fault of each sample is that of the report, with its cause and the statements that are not supported."""
    run = faulty(tmp_path / "run")
    rows = [json.loads(line) for line in exported(run, tmp_path / "x.jsonl").splitlines()]
    assert {row["id"]: row["fault"] for row in rows} == dict(run.faults.samples)
    invented = [row for row in rows if row["fault"] == "invented"]
    assert {row["cause"] for row in invented} == {
        "The contexts do not hold the answer, and the response claims what they do not support."
    }
    assert all(row["unsupported"] and row["unsupported"] in row["response"] for row in invented)
    assert {row["unsupported"] for row in rows if row["fault"] == "right"} == {None}


def test_keys_of_the_metadata_are_columns(tmp_path: Path) -> None:
    """At most 50 keys have a column, the most frequent; numbers keep their type, and equal names get a prefix."""
    own = {"team": "a", "id": "other", "metadata_id": 1, "turn": 2, "weight": 1, "flag": True, "id_recall": None}
    more = {"team": "b", "turn": 3, "weight": 0.5} | {f"rare{number}": number for number in range(60)}
    data = [
        {"id": str(at), "retrieved_context_ids": ["x"], "reference_context_ids": ["x"], "metadata": each}
        for at, each in enumerate([own, own, more])
    ]
    run = merilo.evaluate(data, metrics=["id_recall"], out=tmp_path / "run")
    table = SampleTable.of(run)
    assert len(table.keys) == 50
    assert [*own] == [*table.keys[:7]]
    rows = [json.loads(line) for line in exported(run, tmp_path / "x.jsonl").splitlines()]
    assert rows[0]["id"] == "0"
    assert (rows[0]["metadata_id"], rows[0]["metadata_metadata_id"]) == ("other", 1)
    assert (rows[0]["id_recall"], rows[0]["metric_id_recall"]) == (None, 1.0)
    frame = run.to_pandas()
    assert frame["team"].tolist() == ["a", "a", "b"]
    assert (str(frame["weight"].dtype), frame["turn"].tolist()) == ("float64", [2, 2, 3])
