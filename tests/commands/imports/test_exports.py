"""`merilo import` on the files of other systems: listing, samples, scores, and scores written back."""

import gzip
import json
from pathlib import Path

import pytest
from imported import import_scores

import merilo
from merilo.commands.export.run import export_page, export_run
from merilo.commands.imports.text import contents_of, contents_page, contents_record, write_samples
from merilo.errors import DataError

FILES = Path(__file__).parents[2] / "adapters" / "files"
TRACES = FILES / "openinference.otlp.jsonl"


def test_the_list_names_traces_spans_and_what_is_no_sample() -> None:
    """The page and the record state the same counts."""
    found, first = contents_of(TRACES)
    page = str(contents_page(found, first, 100, None))
    assert "openinference.otlp.jsonl: OTLP JSON, 3 traces" in page
    assert "1 chain, 1 embedding, 2 llm, 1 reranker, 2 retriever" in page
    assert "1: no span states the question" in page
    assert "2 contexts, response: When was the tower completed?" in page
    record = contents_record(found, None)
    assert record["samples"] == 2
    assert record["not_samples"] == {"no span states the question": 1}
    assert record["missing"] == {"contexts": 1}


def test_retrieved_text_cannot_control_the_terminal(tmp_path: Path) -> None:
    """Control characters of a trace are shown as codes."""
    path = tmp_path / "spans.jsonl"
    attributes = {"input.value": "\x1b[2Jevil", "output.value": "A"}
    context = {"trace_id": "\x1b]0;t", "span_id": "s"}
    path.write_text(json.dumps({"context": context, "span_kind": "CHAIN", "attributes": attributes}) + "\n")
    assert "\x1b" not in str(contents_page(*contents_of(path), 100, None))


def test_samples_are_written(tmp_path: Path) -> None:
    """The written file gives the samples that the trace file itself gives."""
    out = tmp_path / "samples.jsonl"
    found = write_samples(TRACES, out)
    assert found.samples == 2
    assert list(merilo.load(out)) == list(merilo.load(TRACES))


def test_a_broken_line_does_not_prevent_writing(tmp_path: Path) -> None:
    """The line is reported with its number, and the other samples are written."""
    lines = TRACES.read_text().splitlines()
    path, out = tmp_path / "t.jsonl", tmp_path / "s.jsonl"
    path.write_text("\n".join([lines[0], '{"resourceSpans": [', *lines[1:]]))
    found = write_samples(path, out)
    assert found.samples == 2
    assert [each.line for each in found.problems] == [2]
    assert "line 2" in str(contents_page(found, [], 100, str(out)))


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("t.jsonl", bytes(range(256)) * 9, "got a binary file"),
        ("t.jsonl.gz", gzip.compress(bytes(range(256)) * 9, mtime=0)[:60], "got a truncated gzip file"),
        ("t.jsonl", b'{"resourceSpans": ' + b"[" * 9999, r"t\.jsonl, line 1: .* nested too deeply"),
    ],
)
def test_a_file_that_cannot_be_read_is_not_called_unknown(
    tmp_path: Path, name: str, content: bytes, problem: str
) -> None:
    """The error names the damage, as `merilo run` does."""
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=problem):
        contents_of(path)


@pytest.mark.parametrize(
    ("name", "metric", "mean", "origin"),
    [
        ("promptfoo.json", "foreign:exact", 1.0, "promptfoo results, promptfoo.json"),
        ("mlflow.json", "foreign:relevance", 1.0, "MLflow traces, mlflow.json"),
    ],
)
def test_scores_become_a_run(tmp_path: Path, name: str, metric: str, mean: float, origin: str) -> None:
    """The scores that a file states are imported with its samples."""
    run = import_scores(FILES / name, out=tmp_path / "run")
    assert run.metrics[metric].mean == mean
    assert run.manifest.origin == origin


def test_a_score_that_some_rows_lack_is_undefined_there(tmp_path: Path) -> None:
    """`exact` is a score of the first test alone."""
    run = import_scores(FILES / "promptfoo.json", out=tmp_path / "run")
    assert (run.metrics["foreign:exact"].scored, run.metrics["foreign:exact"].undefined) == (1, 1)


def test_scores_are_written_beside_the_spans(tmp_path: Path) -> None:
    """Each score is an event of the GenAI conventions with the ids of the span that answered."""
    run = merilo.evaluate(TRACES, metrics=["faithfulness"], judge="embedded", out=tmp_path / "run")
    out = tmp_path / "scores.otlp.jsonl"
    found = export_run(run, out)
    assert found.samples == 2
    assert str(export_page(found, 80)).startswith("2 samples and 2 events, saved in ")
    first = out.read_bytes()
    logs = [json.loads(line)["resourceLogs"][0]["scopeLogs"][0] for line in first.splitlines()]
    assert logs[0]["scope"]["name"] == "merilo"
    event = logs[0]["logRecords"][0]
    assert event["eventName"] == "gen_ai.evaluation.result"
    assert (event["traceId"], event["spanId"]) == ("0af7651916cd43dd8448eb211c800001", "b7ad6b7169200005")
    assert event["timeUnixNano"] == "1795600000009000000"
    values = {each["key"]: each["value"] for each in event["attributes"]}
    assert values["gen_ai.evaluation.name"] == {"stringValue": "faithfulness"}
    assert 0 <= values["gen_ai.evaluation.score.value"]["doubleValue"] <= 1
    labels = {each["key"]: each["value"] for each in logs[1]["logRecords"][0]["attributes"]}
    assert labels["gen_ai.evaluation.score.label"] == {"stringValue": "undefined"}
    export_run(run, out)
    assert out.read_bytes() == first
