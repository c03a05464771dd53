"""Result files of evaluation tools as samples with scores: promptfoo, Inspect and DeepEval."""

from __future__ import annotations

import json
import zipfile
import zlib
from math import nan
from typing import TYPE_CHECKING, Any, Final

from merilo.adapters.attributes import decoded, find, finite, first
from merilo.adapters.base import Item
from merilo.adapters.contents import answer_in, documents_in, question_in
from merilo.data import check
from merilo.data.aliases import text_names
from merilo.data.json_records import Decoder
from merilo.data.source import MAX_LINE_BYTES, MAX_UNPACKED_BYTES
from merilo.errors import DataError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from merilo.data.lines import RawRecord

_REFERENCES: Final = ("reference", "ground_truth", "expected", "expected_answer", "target")
_CONTEXTS: Final = ("retrieved_contexts", "contexts", "context", "documents", "retrieval_context")
_WITH_REFERENCE: Final = ("context-recall", "factuality", "similar", "equals", "model-graded-factuality")
"""Assertions of promptfoo whose value is the expected answer."""
_INSPECT_LETTERS: Final = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Letters of Inspect's scorers (correct, partial, incorrect, no answer) as Inspect itself turns them into numbers."""
_ENTRY: Final = "samples/"


def promptfoo_rows(record: Mapping[str, Any]) -> list[Any] | None:  # Any: JSON of promptfoo
    """Return the results in an output file; None for one result of a JSON Lines file."""
    return _objects(find(record, "results.results")) or _objects(record.get("results"))


def promptfoo_item(row: Mapping[str, Any], place: int) -> Item:  # Any: JSON of promptfoo
    """Return one result of promptfoo: its variables hold the question, and often the contexts and the reference."""
    variables = row.get("vars") if check.is_record(row.get("vars")) else find(row, "testCase.vars")
    names: dict[str, Any] = dict(variables) if check.is_record(variables) else {}
    graded = [each for each in _list(find(row, "gradingResult.componentResults")) if check.is_record(each)]
    contexts = next((names[key] for key in _CONTEXTS if names.get(key)), None)
    if contexts is None:
        contexts = next((each for grade in graded if (each := find(grade, "metadata.context"))), None)
    asserted = (
        find(each, "value") for each in _list(find(row, "testCase.assert")) if find(each, "type") in _WITH_REFERENCE
    )
    output = find(row, "response.output")
    question = next((names[key] for group in text_names("user_input") for key in group if names.get(key)), None)
    if question is None and len(names) == 1:
        question = next(iter(names.values()))
    record = _record(
        id=_promptfoo_id(row),
        user_input=question_in(question if question is not None else find(row, "prompt.raw")),
        retrieved_contexts=_contexts(contexts),
        response=output if isinstance(output, str) or output is None else json.dumps(output, ensure_ascii=False),
        reference=first(names, _REFERENCES) or next((each for each in asserted if isinstance(each, str)), None),
        metadata=_record(
            provider=find(row, "provider.id"),
            prompt=find(row, "prompt.label"),
            description=find(row, "testCase.description"),
            error=row.get("error") or None,
        ),
    )
    return Item(place, record=record, scores=_promptfoo_scores(row, graded), id=str(record.get("id", "")))


def _promptfoo_id(row: Mapping[str, Any]) -> str | None:  # Any: JSON of promptfoo
    """Return an id that is the same in every evaluation of the same tests: promptfoo's own differs each time."""
    test, prompt = row.get("testIdx"), row.get("promptIdx")
    if not isinstance(test, int):
        return None
    return f"{test}" if not prompt else f"{test}.{prompt}"


def _promptfoo_scores(row: Mapping[str, Any], graded: list[Any]) -> dict[str, float]:  # Any: JSON of promptfoo
    scores = {"score": _number(row.get("score"))}
    named = row.get("namedScores")
    for name, value in named.items() if check.is_record(named) else ():
        scores[name] = _number(value)
    for grade in graded:
        name = str(find(grade, "assertion.metric") or find(grade, "assertion.type") or "")
        if name and name not in scores:
            scores[name] = _number(grade.get("score"))
    return scores


def inspect_rows(record: Mapping[str, Any]) -> list[Any] | None:  # Any: JSON of Inspect
    """Return the samples of a log; None for one sample of an archive."""
    return _objects(record.get("samples"))


def inspect_item(row: Mapping[str, Any], place: int) -> Item:  # Any: JSON of Inspect
    """Return one sample of Inspect; the contexts are those in its metadata."""
    epoch, name = row.get("epoch"), row.get("id")
    targets = row.get("target")
    listed: list[Any] = [each for each in _list(targets) if isinstance(each, str)] or [targets]
    held: dict[str, Any] = dict(row["metadata"]) if check.is_record(row.get("metadata")) else {}
    key = next((key for key in _CONTEXTS if held.get(key)), None)
    record = _record(
        id=f"{name}/{epoch}" if isinstance(epoch, int) and epoch > 1 else name,
        user_input=question_in(row.get("input")),
        retrieved_contexts=_contexts(held.pop(key)) if key is not None else None,
        response=find(row, "output.completion") or answer_in(find(row, "output.choices")),
        reference=listed[0] if listed[0] != "" else None,
        metadata={**held, **_record(targets=listed[1:] or None, error=find(row, "error.message"))},
    )
    scores: dict[str, float] = {}
    stated = row.get("scores")
    for name, score in stated.items() if check.is_record(stated) else ():
        value = find(score, "value")
        if check.is_record(value):
            scores.update({f"{name}.{part}": _inspect_number(each) for part, each in value.items()})
        else:
            scores[name] = _inspect_number(value)
    return Item(place, record=record, scores=scores, id=str(record.get("id", "")))


def _inspect_number(value: object) -> float:
    return _INSPECT_LETTERS[value] if isinstance(value, str) and value in _INSPECT_LETTERS else _number(value)


def inspect_archive(path: Path) -> Iterator[RawRecord]:
    """Yield the samples of an `.eval` log, a zip archive with one JSON file per sample.

    Raises DataError if the archive cannot be read, or unpacks to more than other packed files may.
    """
    number, unpacked, decode = 0, 0, Decoder().line
    try:
        with zipfile.ZipFile(path) as archive:
            names = [each for each in archive.namelist() if each.startswith(_ENTRY) and each.endswith(".json")]
            for number, name in enumerate(names, start=1):
                with archive.open(name) as entry:
                    content = entry.read(MAX_LINE_BYTES + 1)
                unpacked += len(content)
                if len(content) > MAX_LINE_BYTES or unpacked > MAX_UNPACKED_BYTES:
                    raise DataError.of(Problem("a smaller sample", "a longer one", source=path.name, line=number))
                yield decode(content, number)
    except NotImplementedError as error:  # zipfile does not know the compression, which is zstd
        advice = "convert it: inspect log convert --to json --output-dir DIR"
        got = "one that Python reads only from version 3.14 on"
        raise DataError.of(
            Problem("an .eval log without zstd compression", got, None, path.name, advice=advice)
        ) from error
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError) as error:
        advice = "write it again, or convert it: inspect log convert --to json --output-dir DIR"
        problem = Problem(
            "a readable .eval log", f"an error ({error})", None, path.name, number or None, "sample", advice
        )
        raise DataError.of(problem) from error


_DEEPEVAL_FIELDS: Final = {
    "user_input": ("input",),
    "response": ("actualOutput", "actual_output"),
    "reference": ("expectedOutput", "expected_output"),
    "retrieved_contexts": ("retrievalContext", "retrieval_context"),
    "reference_contexts": ("context",),
}
"""Field of a sample → its names in DeepEval's files; `context` is DeepEval's ideal retrieval result."""


def deepeval_rows(record: Mapping[str, Any]) -> list[Any] | None:  # Any: JSON of DeepEval
    """Return the test cases of a test run."""
    held = record.get("testRunData")
    return _objects(first(held if check.is_record(held) else record, ("testCases", "test_cases"))) or []


def _metrics(case: Mapping[str, Any]) -> list[dict[str, Any]]:  # Any: JSON of DeepEval
    """Return the results of the metrics of a test case."""
    found = case.get("metricsData") or case.get("metrics_data")
    return [dict(each) for each in found if check.is_record(each)] if check.is_list(found) else []


def _deepeval_record(case: Mapping[str, Any]) -> dict[str, object]:  # Any: JSON of DeepEval
    """Return a test case as a record; reasons and errors of its metrics go into the metadata."""
    record: dict[str, object] = {}
    for field, names in _DEEPEVAL_FIELDS.items():
        value = next((case[name] for name in names if case.get(name) is not None), None)
        if value is not None:
            record[field] = value
    record["id"] = case.get("name")
    held = case.get("metadata")
    metadata: dict[str, object] = dict(held) if check.is_record(held) else {}
    for what in ("reason", "error"):
        texts = {str(each.get("name")): each[what] for each in _metrics(case) if each.get(what)}
        if texts:
            metadata[f"deepeval_{what}s"] = texts
    if case.get("tags"):
        metadata["tags"] = case["tags"]
    if metadata:
        record["metadata"] = metadata
    return record


def deepeval_item(case: Mapping[str, Any], place: int) -> Item:  # Any: JSON of DeepEval
    """Return one test case of DeepEval."""
    scores = {str(each.get("name")): each.get("score") for each in _metrics(case)}
    return Item(place, record=_deepeval_record(case), scores=scores, id=str(case.get("name") or ""))


def example_item(row: Mapping[str, Any], place: int) -> Item:  # Any: JSON of LangSmith or Langfuse
    """Return an example of a dataset of LangSmith or Langfuse: its output is the reference."""
    record = _record(
        id=row.get("id"),
        user_input=question_in(first(row, ("inputs", "input"))),
        reference=answer_in(first(row, ("outputs", "expectedOutput", "expected_output"))),
        metadata=dict(row["metadata"]) if check.is_record(row.get("metadata")) else None,
    )
    return Item(place, record=record, id=str(row.get("id") or ""))


def _record(**fields: Any) -> dict[str, Any]:  # Any: JSON
    return {name: value for name, value in fields.items() if value is not None and value != {}}


def _contexts(value: object) -> list[dict[str, object]] | None:
    """Return contexts in a variable: one text, a list, or either as JSON."""
    if value is None:
        return None
    inner = decoded(value)
    return [{"text": inner}] if isinstance(inner, str) else [each for each in documents_in(inner) if "text" in each]


def _objects(value: object) -> list[Any] | None:  # Any: JSON
    return [each for each in value if check.is_record(each)] if check.is_list(value) else None


def _list(value: object) -> list[Any]:  # Any: JSON
    return list(value) if check.is_list(value) else []


def _number(value: object) -> float:
    """Return a score as a number; NaN if there is none."""
    found = finite(value)
    return nan if found is None else found
