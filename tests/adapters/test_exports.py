"""Result files of evaluation tools become samples with scores."""

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from each_case import each_case

from merilo.adapters.base import Item
from merilo.adapters.exports import export_of, result_files
from merilo.data.load import load
from merilo.data.sample import Sample
from merilo.errors import DataError

FILES = Path(__file__).parent / "files"
QUESTION = "When was the tower completed?"
DONE = "The tower was completed in 1889."


def items(path: Path) -> list[Item]:
    """Return the items of a file that merilo must recognise."""
    found = export_of(path)
    assert found is not None
    return list(found.items())


def samples(path: Path) -> list[Sample]:
    """Return the samples that `merilo run` reads."""
    found = list(load(path))
    assert all(isinstance(each, Sample) for each in found)
    return [each for each in found if isinstance(each, Sample)]


@each_case(
    ("name", "package", "version"),
    [
        ("promptfoo.json", "promptfoo", "0.121.20"),
        ("promptfoo.jsonl", "promptfoo", ""),
        ("inspect.json", "inspect-ai", "0.3.285"),
        ("deepeval.json", "deepeval", ""),
        ("mlflow.json", "mlflow", ""),
    ],
)
def test_package_and_version(name: str, package: str, version: str) -> None:
    """A file is recognised with its package, and with the version if it states one."""
    found = export_of(FILES / name)
    assert found is not None
    assert (found.kind.package, found.version) == (package, version)


@pytest.mark.parametrize("name", ["promptfoo.json", "promptfoo.jsonl"])
def test_promptfoo(name: str) -> None:
    """Variables fill the sample; the id is the number of the test, equal in every evaluation."""
    first, second = items(FILES / name)
    assert first.record is not None
    assert second.record is not None
    assert (first.record["id"], first.record["user_input"]) == ("0", QUESTION)
    assert first.record["retrieved_contexts"] == [{"text": DONE}]
    assert first.record["response"] == first.record["reference"] == "It was completed in 1889."
    assert dict(first.scores) == {"score": 1.0, "exact": 1.0, "contains": 1.0}
    assert "reference" not in second.record
    assert dict(second.scores) == {"score": 0.0, "icontains": 0.0}


@each_case(
    ("row", "expected"),
    [
        ({"vars": {"topic": "Q"}}, {"user_input": "Q"}),
        ({"vars": {}, "prompt": {"raw": '[{"role":"user","content":"Q"}]'}}, {"user_input": "Q"}),
        ({"vars": {"q": 1, "r": 2}, "response": {"output": {"a": 1}}}, {"response": '{"a": 1}'}),
        ({"vars": {"query": "Q", "context": ["a", "b"]}}, {"retrieved_contexts": [{"text": "a"}, {"text": "b"}]}),
        ({"testIdx": 3, "promptIdx": 1}, {"id": "3.1"}),
        (
            {"gradingResult": {"componentResults": [{"metadata": {"context": "c"}}, None]}},
            {"retrieved_contexts": [{"text": "c"}]},
        ),
    ],
)
def test_rows_of_promptfoo(tmp_path: Path, row: dict[str, Any], expected: dict[str, Any]) -> None:
    """Question, contexts and response are found where promptfoo's users put them."""
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"results": {"version": 3, "results": [row]}}))
    (item,) = items(path)
    assert item.record is not None
    assert {key: item.record.get(key) for key in expected} == expected


def test_inspect() -> None:
    """The contexts come from a sample's metadata, letters of scorers become numbers, further targets are kept."""
    first, second = items(FILES / "inspect.json")
    assert first.record is not None
    assert first.record["retrieved_contexts"] == [{"text": DONE}]
    assert first.record["reference"] == "1889"
    assert first.record["metadata"] == {"topic": "towers", "targets": ["1889", "in the year 1889"]}
    assert [dict(each.scores) for each in (first, second)] == [{"includes": 1, "match": 1}, {"includes": 0, "match": 0}]


def test_an_archive_of_inspect(tmp_path: Path) -> None:
    """An `.eval` log is read sample by sample and gives the same items as the JSON log."""
    log = json.loads((FILES / "inspect.json").read_text())
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", "{}")
        for each in log["samples"]:
            archive.writestr(f"samples/{each['id']}_epoch_1.json", json.dumps(each))
        archive.writestr("samples/c_epoch_1.json", "{")
    *good, bad = items(path)
    assert [each.record for each in good] == [each.record for each in items(FILES / "inspect.json")]
    assert bad.problems


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Python reads zstd from 3.14 on")
def test_an_archive_that_this_python_cannot_unpack() -> None:
    """Inspect packs with zstd, and the error names the command that converts the log."""
    with pytest.raises(DataError, match="inspect log convert --to json"):
        items(FILES / "inspect.eval")


def test_a_damaged_archive(tmp_path: Path) -> None:
    """A file that is not a zip archive is an error with its name."""
    path = tmp_path / "log.eval"
    path.write_bytes(b"PK\x03\x04 broken")
    with pytest.raises(DataError, match=r"log\.eval"):
        items(path)


def test_deepeval() -> None:
    """`merilo run` reads a test run of DeepEval; a metric without a score has none."""
    (item,) = items(FILES / "deepeval.json")
    assert item.scores["Faithfulness"] == 1.0
    assert item.scores["Bias"] is None
    (sample,) = samples(FILES / "deepeval.json")
    assert [each.text for each in sample.contexts] == [DONE]
    assert (sample.id, sample.reference) == ("tower", "1889")


@pytest.mark.parametrize(
    "row",
    [
        {"id": "e1", "dataset_id": "d", "inputs": {"question": QUESTION}, "outputs": {"answer": "1889"}},
        {"id": "e1", "datasetId": "d", "input": {"question": QUESTION}, "expectedOutput": "1889"},
    ],
)
def test_datasets(tmp_path: Path, row: dict[str, Any]) -> None:
    """The output of an example in a dataset is the reference, not the response."""
    path = tmp_path / "examples.jsonl"
    path.write_text(json.dumps(row) + "\n")
    (sample,) = samples(path)
    assert (sample.user_input, sample.reference, sample.response) == (QUESTION, "1889", None)


@each_case("file", result_files())
@each_case("value", [None, 1, 10**400, float("nan"), "x", [], [[]], {}, [None, {"a": 1}], {"a": {"score": 1}}])
def test_malformed_rows_raise_nothing(file: Any, value: object) -> None:
    """Any JSON in the place of a value is read without an error."""
    keys = ("vars", "response", "gradingResult", "namedScores", "score", "testCase", "provider", "prompt")
    more = ("input", "output", "target", "scores", "metadata", "epoch", "inputs", "outputs", "expectedOutput")
    row = dict.fromkeys((*keys, *more, "metricsData", "name"), value)
    assert file.item(row, 1).record is not None
    file.rows_in({"results": value, "samples": value, "testCases": value})


@each_case("name", ["ragas_0_1.csv", "ragas_0_1.json", "ragas_0_2.csv", "ragas_0_2.json"])
def test_results_of_ragas(name: str) -> None:
    """Tables of every line of ragas give the same samples; 0.2, 0.3 and 0.4 write the same bytes."""
    first, second = samples(FILES / name)
    assert (first.user_input, first.response, first.reference) == (QUESTION, "In 1889.", "1889")
    assert [each.text for each in second.contexts] == ["Rome has seven hills.", "It's of iron."]
