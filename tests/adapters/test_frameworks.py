"""Objects of LangChain, LlamaIndex, Haystack, DSPy and `datasets` are read as samples, without their packages."""

import json
from pathlib import Path
from typing import Any

import pytest
from each_case import each_case
from recorded_objects import MAKERS, recorded_objects

from merilo.data.load import load
from merilo.data.sample import BadRecord

TEXT = "The tower was completed in 1889."
OTHER = "Rome has seven hills."
ASKED = {"id": "1", "user_input": "When?", "response": "In 1889."}
DOCUMENTS: list[Any] = [
    {"text": TEXT, "id": "d1", "score": 0.5, "metadata": {"source": "tower.md", "relevance_score": 0.5}},
    {"text": OTHER, "metadata": {"source": "rome.md"}},
]
NODES: list[Any] = [
    {"text": TEXT, "id": "n1", "score": 0.8, "metadata": {"file": "tower.md"}},
    {"text": OTHER, "id": "n2"},
]
FOUND: list[Any] = [
    {"text": TEXT, "id": "d1", "score": 0.7, "metadata": {"source": "tower.md"}},
    {"text": OTHER, "id": "d2"},
]
EXPECTED: dict[str, dict[str, Any]] = {
    "langchain": {
        "retrieval chain": {**ASKED, "retrieved_contexts": DOCUMENTS},
        "chain with a message": {**ASKED, "retrieved_contexts": DOCUMENTS},
        "question-answering chain": {**ASKED, "retrieved_contexts": DOCUMENTS},
        "search with scores": {**ASKED, "retrieved_contexts": [DOCUMENTS[0], {**DOCUMENTS[1], "score": 0.25}]},
        "serialised": {
            **ASKED,
            "retrieved_contexts": [{k: v for k, v in DOCUMENTS[0].items() if k != "score"}, DOCUMENTS[1]],
        },
        "message in parts": ASKED,
        "document": "expected a record with a question or an answer, got a document",
    },
    "llamaindex": {
        "response": {"id": "1", "response": "In 1889.", "retrieved_contexts": NODES},
        "response in a record": {**ASKED, "retrieved_contexts": NODES, "reference": "1889"},
        "nodes": {**ASKED, "retrieved_contexts": NODES},
        "serialised": {**ASKED, "retrieved_contexts": NODES},
    },
    "haystack": {
        "answer": {**ASKED, "retrieved_contexts": FOUND},
        "output of an answer builder": {**ASKED, "retrieved_contexts": FOUND},
        "output of two components": {"id": "1", "response": "In 1889.", "retrieved_contexts": FOUND},
        "output of two retrievers": "expected at least one of the fields",
        "serialised answer": {**ASKED, "retrieved_contexts": FOUND, "metadata": {"meta": {}}},
        "serialised documents": {"id": "1", "user_input": "When?", "retrieved_contexts": FOUND},
    },
    "dspy": {
        "prediction": {
            "id": "1",
            "response": "In 1889.",
            "retrieved_contexts": [TEXT, OTHER],
            "metadata": {"reasoning": "It is written there."},
        },
        "prediction in a record": {
            **ASKED,
            "retrieved_contexts": [TEXT, OTHER],
            "metadata": {"reasoning": "It is written there."},
        },
        "example": ASKED,
    },
}
CASES = [(framework, name) for framework, found in EXPECTED.items() for name in found]


def check(framework: str, name: str, made: Any) -> None:
    """Compare what `load` reads in a record with what is expected, or the problem with the expected words."""
    (found,) = load([made])
    expected = EXPECTED[framework][name]
    if isinstance(expected, str):
        assert isinstance(found, BadRecord)
        assert expected in found.problems[0].message
    else:
        assert not isinstance(found, BadRecord), found
        assert found.to_record() == expected


@each_case(("framework", "name"), CASES)
def test_recorded_objects_are_read(framework: str, name: str) -> None:
    """Texts, ids, scores and metadata of recorded objects reach the sample; an ambiguous object is a problem."""
    check(framework, name, recorded_objects(framework)[name])


@pytest.mark.extras
@pytest.mark.parametrize(("framework", "name"), CASES)
def test_real_objects_are_read(framework: str, name: str) -> None:
    """The same holds for objects that the installed package makes."""
    pytest.importorskip(MODULES[framework], reason=f"{framework} is not installed here")
    check(framework, name, MAKERS[framework][1]()[name])


MODULES = {
    "langchain": "langchain_core",
    "llamaindex": "llama_index.core",
    "haystack": "haystack",
    "dspy": "dspy",
    "datasets": "datasets",
}


@each_case("framework", MAKERS)
def test_a_recording_names_its_version(framework: str) -> None:
    """A recording names the distribution and the version that made it, and holds every object of the tests."""
    recorded = json.loads((Path(__file__).parent / "recorded" / f"{framework}.json").read_text())
    assert recorded["package"] == MAKERS[framework][0]
    assert recorded["version"][0].isdecimal()
    assert recorded["objects"].keys() >= set(EXPECTED.get(framework, {}))


def test_serialised_results_are_read_from_a_file(tmp_path: Path) -> None:
    """The JSON of a LangChain chain, of LlamaIndex nodes and of a Haystack answer is read from JSON Lines too."""
    path = tmp_path / "results.jsonl"
    names = [("langchain", "serialised"), ("llamaindex", "serialised"), ("haystack", "serialised answer")]
    path.write_text("".join(json.dumps(recorded_objects(framework)[name]) + "\n" for framework, name in names))
    found = [sample.to_record() for sample in load(path) if not isinstance(sample, BadRecord)]
    assert [{**each, "id": "1"} for each in found] == [EXPECTED[framework][name] for framework, name in names]


@pytest.mark.parametrize("name", ["response", "prediction"])
def test_one_result_alone_is_a_data_set(name: str) -> None:
    """A response or a prediction needs no list around it, and can be read twice."""
    framework = {"response": "llamaindex", "prediction": "dspy"}[name]
    data = load(recorded_objects(framework)[name])
    for _ in range(2):
        (sample,) = data
        assert not isinstance(sample, BadRecord)
        assert sample.to_record() == EXPECTED[framework][name]


def test_the_columns_of_documents_are_reported() -> None:
    """The notice of columns says from which one the contexts were read."""
    data = load([recorded_objects("llamaindex")["nodes"]])
    list(data)
    assert data.columns.sentence() == "Read question as user_input, nodes as retrieved_contexts, answer as response."


def test_documents_do_not_replace_named_contexts() -> None:
    """A column of documents beside one for the retrieved contexts stays what its name says: metadata."""
    document = recorded_objects("langchain")["document"]
    (sample,) = load([{"question": "When?", "contexts": ["A text."], "seen": [document]}])
    assert not isinstance(sample, BadRecord)
    assert [context.text for context in sample.contexts] == ["A text."]
    assert "seen" in sample.metadata
