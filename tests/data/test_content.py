"""What retrievers, stores and tools return is read as passages; what is ambiguous or too large is none."""

import json
import time
from typing import Any

import pytest
from each_case import each_case

from merilo.data.content import at_path, is_unreadable, passage_of, passages_in
from merilo.data.load import load
from merilo.data.sample import FIELDS, BadRecord, Sample

OLD, TALL = "The tower is old.", "The tower is tall."
HITS = [
    {"_id": "a", "_score": 1.5, "_source": {"content": OLD}, "highlight": {"content": ["x y"]}},
    {"_id": "b", "_source": {"content": TALL}},
]


@each_case(
    ("value", "ids"),
    [
        ({"matches": [{"id": "a", "metadata": {"text": OLD}}, {"id": "b", "metadata": {"text": TALL}}]}, ["a", "b"]),
        ({"hits": {"total": {"value": 2}, "hits": HITS}}, ["a", "b"]),
        ({"points": [{"id": 1, "payload": {"text": OLD}}, {"id": 2, "payload": {"text": TALL}}]}, ["1", "2"]),
        ({"ids": [["a", "b"]], "distances": [[0.1, 0.2]], "documents": [[OLD, TALL]], "embeddings": None}, ["a", "b"]),
        ({"retrievalResults": [{"content": {"text": OLD}, "score": 0.5}, {"content": {"text": TALL}}]}, [None, None]),
        ({"search_results": [{"text": OLD, "score": 0.1}, {"text": TALL}], "response_language": "eng"}, [None, None]),
        ({"results": [{"document": {"id": "a", "text": OLD}}, {"document": {"id": "b", "text": TALL}}]}, ["a", "b"]),
        ([{"node": {"id_": "a", "text": OLD}, "score": 0.5}, {"node": {"id_": "b", "text": TALL}}], ["a", "b"]),
        ([[{"page_content": OLD, "id": "a"}, 0.5], [{"page_content": TALL, "id": "b"}, 0.4]], ["a", "b"]),
        ([{"type": "found", "content": [{"text": OLD}]}, {"content": [{"text": TALL}]}], [None, None]),
        ({"answer": "x", "documents": [OLD, TALL], "highlights": ["one two", "three four"]}, [None, None]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_text", [False, True])
def test_envelopes(value: Any, ids: list[str | None], is_text: bool) -> None:
    """The list in an envelope, and the text in a nested object, are contexts with their ids, also as JSON."""
    (sample,) = load([{"question": "q", "contexts": json.dumps(value) if is_text else value}])
    assert isinstance(sample, Sample), sample
    assert [each.text for each in sample.contexts] == [OLD, TALL]
    assert [each.id for each in sample.contexts] == ids


@each_case(
    "value",
    [
        {"first": [OLD, TALL], "second": [TALL, OLD]},
        {"temperature": 21, "city": "Rome"},
        {},
        [],
        "[Note] The tower is old.",
        {"a": {"b": {"c": {"d": {"e": {"f": {"g": [OLD]}}}}}}},
    ],
)
def test_what_is_no_list_of_passages(value: Any) -> None:
    """Several lists without a known name, other objects and texts are none."""
    assert passages_in(value) is None


def test_what_is_around_a_passage_is_metadata() -> None:
    """Keys of the object with the text and of those around it are kept; names that collide get a prefix."""
    item = {"id": "a", "score": 1, "rank": 3, "payload": {"text": OLD, "page": 2, "metadata": {"page": 1}}}
    assert passage_of(item) == {
        "text": OLD, "id": "a", "score": 1, "metadata": {"rank": 3, "page": 1, "field page": 2},
    }  # fmt: skip


@each_case(
    ("text", "is_it"),
    [
        ('{"a": 1}', True),
        ("{'a': 1}", True),
        ("[1, 2]", True),
        ("AIMessage(content=<x>)", True),
        ("content='x' additional_kwargs=<y>", True),
        ("<app.Answer object at 0x7f00>", True),
        ("In 1889 [1].", False),
        ("{x} is a set of one.", False),
        ("Eiffel (1889)", False),
    ],
)
def test_a_dump_is_never_judged_in_silence(text: str, is_it: bool) -> None:
    """The sample notes the field, and the columns' sentence names the column, unless it is mapped."""
    assert is_unreadable(text) is is_it
    data = load([{"question": "q", "answer": text}])
    (sample,) = data
    assert isinstance(sample, Sample)
    assert ("merilo:unreadable" in sample.metadata) is is_it
    assert ("--map answer=response" in " ".join(data.columns.doubts(FIELDS))) is is_it
    (mapped,) = load([{"question": "q", "answer": text}], mapping={"answer": "response"})
    assert isinstance(mapped, Sample)
    assert "merilo:unreadable" not in mapped.metadata


@each_case(
    ("record", "field", "text"),
    [
        ({"question": '{"query": "q?"}'}, "user_input", "q?"),
        ({"question": "q", "answer": {"output": {"text": "A."}}}, "response", "A."),
        ({"answer": {"choices": [{"message": {"role": "assistant", "content": "A."}}]}}, "response", "A."),
        ({"inputs": {"question": "q?"}, "outputs": {"answer": "A."}}, "user_input", "q?"),
        ({"inputs": {"question": "q?"}, "reference_outputs": {"answer": "A."}}, "reference", "A."),
    ],
)  # fmt: skip
def test_the_text_in_an_object(record: dict[str, Any], field: str, text: str) -> None:
    """A text field takes the text in an object or in JSON."""
    (sample,) = load([record])
    assert isinstance(sample, Sample), sample
    assert sample.require(field) == text


def test_paths_reach_into_objects() -> None:
    """`--map` takes paths, and advice names those that fill a field in the first records."""
    record = {
        "asked": {"the_question": "How old?"},
        "made": {"answer_text": "It is old."},
        "top": [{"meta": {"t": OLD}}],
    }
    data = load([record])
    (bad,) = data
    assert isinstance(bad, BadRecord)
    assert "--map asked.the_question=user_input" in bad.problems[0].message
    assert "--map made.answer_text=response" in bad.problems[0].message
    mapping = {"asked.the_question": "user_input", "made.answer_text": "response", "top[].meta.t": "retrieved_contexts"}
    (sample,) = load([record], mapping=mapping)
    assert isinstance(sample, Sample)
    assert (sample.user_input, sample.response, sample.contexts[0].text) == ("How old?", "It is old.", OLD)
    assert at_path(record, "top[0].meta.t") == OLD
    assert at_path(record, "top[7].meta") is None


def test_a_record_that_fills_its_fields_is_the_record() -> None:
    """A nested list does not replace it; what stands beside a list of records belongs to each of them."""
    one = {"question": "q", "answer": "a", "contexts": [OLD], "follow_up": [{"question": "r"}]}
    (sample,) = load(one)
    assert isinstance(sample, Sample)
    assert sample.response == "a"
    shared = {"query": "q", "results": [{"answer": "a", "contexts": [OLD]}, {"answer": "b", "contexts": [TALL]}]}
    assert [each.user_input for each in load(shared) if isinstance(each, Sample)] == ["q", "q"]


def _deep(levels: int) -> object:
    value: object = OLD
    for _ in range(levels):
        value = {"a": value}
    return value


def _wide(keys: int, levels: int) -> object:
    return {str(each): _wide(keys, levels - 1) for each in range(keys)} if levels else {}


@each_case(
    "value",
    [
        {str(at): {"a": {"b": at}} for at in range(100_000)},
        _deep(50_000),
        [_wide(8, 5)] * 1000,
        {"content": "[" * 900_000 + "]" * 900_000},
        {str(at): "{" + "'a': 1, " * 1000 + "}" for at in range(2000)},
    ],
)
def test_large_values_take_little_time(value: Any) -> None:
    """Each value is looked at once, and only so many of them."""
    began = time.process_time()
    passages_in(value)
    assert time.process_time() - began < 3
