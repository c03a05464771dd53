"""Records that people labelled, as they are read."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from each_case import each_case

from merilo.data.labels import read_labels
from merilo.errors import DataError

CHUNK = {"id": "a", "source": "s", "task": "chunk_relevance", "query": "q", "context": "c", "label": 2}
GROUNDED = {"id": "b", "task": "groundedness", "context": "c", "response": "r", "label": 3, "meta": {"scale": "1-4"}}


def read(path: Path, *records: dict[str, Any], name: str = "labels.jsonl") -> Any:  # Any: a tuple of records
    """These records, written and read back."""
    file = path / name
    text = "".join(json.dumps(record) + "\n" for record in records)
    file.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return read_labels([file])


def test_the_least_a_record_needs(tmp_path: Path) -> None:
    """Task, texts and label are enough; the id is then the file's name and the line."""
    bare = {key: value for key, value in CHUNK.items() if key not in {"id", "source"}}
    (found,) = read(tmp_path, bare)
    assert (found.id, found.source, found.language, found.constructed) == ("labels:1", "labels", None, False)


@each_case(
    ("record", "label01", "yes"),
    [
        (GROUNDED, 2 / 3, False),
        ({**GROUNDED, "label": 4}, 1.0, True),
        ({**GROUNDED, "label": 4, "meta": {"scale": "1-5 utility"}}, 0.75, True),
        ({**GROUNDED, "label": 9, "meta": {"label01": 0.74}}, 0.74, False),
        ({**GROUNDED, "label": 1, "meta": {}}, 1.0, True),
        ({**GROUNDED, "label": 0.5, "meta": None}, 0.5, False),
    ],
)
def test_yes_is_from_three_quarters(tmp_path: Path, record: dict[str, Any], label01: float, yes: bool) -> None:
    """A label becomes yes from 0.75 on a scale from 0 to 1: as the record says, else by its scale, else as it is."""
    (found,) = read(tmp_path, record)
    assert found.label01 == pytest.approx(label01)
    assert found.yes is yes


def test_sentences_have_a_label_each(tmp_path: Path) -> None:
    """Labelled sentences keep their cut."""
    record = {"task": "sentence_relevance", "query": "q", "sentences": ["One. Two.", "Three."], "label": [0, 1]}
    (found,) = read(tmp_path, record)
    assert found.texts == ("One. Two.", "Three.")
    assert found.sentence_labels == (False, True)


def test_what_belongs_together(tmp_path: Path) -> None:
    """Records share a case by their query, their text or their question's id; or by a cluster that they name."""
    one, other = read(tmp_path, CHUNK, {**CHUNK, "id": "z", "meta": {"cluster": 7, "qid": "x"}})
    assert set(one.same) == {"query q", "text c"}
    assert other.same == ("cluster 7",)


@each_case(
    ("record", "says"),
    [
        ({**CHUNK, "task": "chunks"}, "field 'task': expected one of chunk_relevance"),
        ({**CHUNK, "label": 3}, "field 'label': expected a number from 0 to 2, got the number 3"),
        ({**CHUNK, "label": "yes"}, "expected a number from 0 to 2, got the text 'yes'"),
        ({**CHUNK, "label": True}, "expected a number from 0 to 2, got true"),
        ({**CHUNK, "query": None}, "field 'query': expected a text, got null"),
        ({**CHUNK, "context": 5}, "field 'context': expected text, got the number 5"),
        ({**CHUNK, "meta": {"label01": 2}}, "field 'meta.label01'"),
        ({**GROUNDED, "label": "banana", "meta": {"label01": 1.0}}, "field 'label'"),
        ({**GROUNDED, "label": True, "meta": {"label01": 1.0}}, "field 'label'"),
        ({**GROUNDED, "label": 0, "meta": {"label01": 1.0}}, "a label close to meta.label01 (1 of 1)"),
        ({**GROUNDED, "label": 4, "meta": {"label01": 0.0, "scale": "1-4"}}, "a label close to meta.label01 (0 of 1)"),
        ({**CHUNK, "meta": []}, "field 'meta': expected an object"),
        (
            {"task": "sentence_relevance", "query": "q", "sentences": ["a", "b"], "label": [1]},
            "a list of 2 times 0 or 1",
        ),
        ({"task": "sentence_relevance", "query": "q", "sentences": [], "label": []}, "at least one"),
        ({"task": "sentence_relevance", "query": "q", "sentences": "a", "label": [1]}, "a list of texts"),
        ({"task": "nli", "context": "c", "response": "r", "label": 1}, "field 'statement'"),
    ],
)
def test_a_bad_record_says_what_and_where(tmp_path: Path, record: dict[str, Any], says: str) -> None:
    """What is wrong is told with file, line and field."""
    with pytest.raises(DataError) as error:
        read(tmp_path, CHUNK, {"id": "bad", **record} if "id" not in record else {**record, "id": "bad"})
    assert "labels.jsonl, line 2" in str(error.value)
    assert says in str(error.value)


@each_case(
    ("wrong", "helps"),
    [
        ({"label": 3}, True),
        ({"label": "yes"}, False),
        ({"label": None}, False),
        ({"label": 9, "meta": {"scale": "1-5"}}, False),
    ],
)
def test_another_scale_is_offered_for_numbers_without_one(tmp_path: Path, wrong: dict[str, Any], helps: bool) -> None:
    """A text, nothing, or a number beyond a scale that is named is not mended by naming one."""
    with pytest.raises(DataError) as error:
        read(tmp_path, {**CHUNK, **wrong})
    assert ("Name another scale" in str(error.value)) == helps


def test_a_record_labelled_twice(tmp_path: Path) -> None:
    """An id may stand in several tasks, and only once in each."""
    read(tmp_path, CHUNK, {**GROUNDED, "id": "a"})
    with pytest.raises(DataError, match=r"'a' as in labels.jsonl, line 1"):
        read(tmp_path, CHUNK, {**CHUNK, "label": 0})
