"""Traces become samples."""

import json
from pathlib import Path
from typing import Any

import pytest
from each_case import each_case

import merilo
from merilo.adapters import traces
from merilo.adapters.base import Item
from merilo.adapters.exports import export_of
from merilo.adapters.spans import answer_in, documents_in, find, question_in, tree_of, unfolded
from merilo.data.load import load
from merilo.data.sample import Sample
from merilo.errors import DataError
from merilo.judging.kinds.contexts import RelevanceVerdict
from merilo.metrics.base import Score

FILES = Path(__file__).parent / "files"
QUESTION = "When was the tower completed?"
DONE = "The tower was completed in 1889."


def items(path: Path) -> list[Item]:
    """Return the items of a file that merilo must recognise."""
    found = export_of(path)
    assert found is not None
    return list(found.items())


def texts(item: Item) -> list[str]:
    """Return the texts of a sample's contexts."""
    assert item.record is not None
    return [each["text"] for each in item.record["retrieved_contexts"]]


def span(name: str, parent: str = "", trace: str = "t1", **attributes: Any) -> dict[str, Any]:
    """Return a Phoenix span; `__` in a keyword stands for a dot."""
    return {
        "context": {"trace_id": trace, "span_id": name},
        "parent_id": parent or None,
        "span_kind": attributes.pop("kind", "CHAIN"),
        "start_time": attributes.pop("start", None),
        "attributes": {key.replace("__", "."): value for key, value in attributes.items()},
    }


def written(tmp_path: Path, *lines: object, name: str = "spans.jsonl") -> Path:
    """Return a file of JSON Lines; a string is written as it is."""
    path = tmp_path / name
    path.write_text("".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in lines))
    return path


def test_spans_of_openinference() -> None:
    """A reranker replaces its input, a later retrieval adds what is new, and the root states question and answer."""
    first, bare, indexing = items(FILES / "openinference.otlp.jsonl")
    assert first.record is not None
    assert first.record["user_input"] == QUESTION
    assert texts(first) == [DONE, "The tower was built by Eiffel's company."]
    assert first.record["retrieved_contexts"][0] == {"text": DONE, "id": "d2", "score": 0.9}
    assert first.record["response"] == "In 1889."
    assert first.record["metadata"]["session"] == "visit-1"
    assert bare.record is not None
    assert (bare.record["user_input"], bare.record["response"]) == ("Who built it?", "Eiffel.")
    assert bare.missing == ("contexts",)
    assert bare.record["metadata"]["question_from"] == "llm"
    assert indexing.record is None
    assert indexing.reason == "no span states the question"


def test_spans_of_the_genai_conventions() -> None:
    """Messages in attributes and in events are read, and an LLM within a retrieval is not the answer."""
    agent, events, of_ids = items(FILES / "gen_ai.otlp.jsonl")
    assert agent.record is not None
    assert (agent.record["user_input"], agent.record["response"]) == (QUESTION, "In 1889.")
    assert texts(agent) == [DONE, "Rome has seven hills."]
    assert agent.record["metadata"]["response_id"] == "chatcmpl-7"
    assert agent.record["metadata"]["span_id"] == "b7ad6b7169200004"  # the LLM that answered
    assert events.record is not None
    assert (events.record["user_input"], events.record["response"]) == ("Who built it?", "Eiffel.")
    assert of_ids.record is not None
    assert of_ids.record["retrieved_context_ids"] == ["d2", "d1"]
    assert of_ids.missing == ("response", "texts of the contexts")


@each_case("name", ["mlflow.json", "langfuse.jsonl", "langsmith.jsonl", "phoenix.jsonl", "phoenix_frame.jsonl"])
def test_other_systems_spans(name: str) -> None:
    """The same trace, as four systems export it, gives the same question, contexts and response."""
    (item,) = items(FILES / name)
    assert item.record is not None
    assert (item.record["user_input"], item.record["response"]) == (QUESTION, "In 1889.")
    assert texts(item) == [DONE]
    assert dict(item.kinds) == {"chain": 1, "llm": 1, "retriever": 1}


def test_scores_of_traces() -> None:
    """Assessments of MLflow and feedback of LangSmith are scores of the sample."""
    (assessed,) = items(FILES / "mlflow.json")
    (rated,) = items(FILES / "langsmith.jsonl")
    assert dict(assessed.scores) == {"relevance": 1.0}
    assert dict(rated.scores) == {"correctness": 0.5}


def test_a_trace_of_langfuse_with_its_scores(tmp_path: Path) -> None:
    """A downloaded trace is the root of its observations, and has scores."""
    lines = [json.loads(line) for line in (FILES / "langfuse.jsonl").read_text().splitlines()]
    trace = {"id": lines[0]["traceId"], "timestamp": "2026-11-20T09:00:00Z", "input": {"query": "Q"}, "output": "A"}
    scores = [{"name": "helpful", "value": 0.25}, {"name": "tone", "stringValue": "warm"}]
    path = tmp_path / "trace.json"
    for content in (
        {**trace, "observations": lines, "scores": scores},
        {"trace": trace, "observations": lines, "scores": scores},
    ):
        path.write_text(json.dumps(content))
        (item,) = items(path)
        assert item.record is not None
        assert (item.record["user_input"], item.record["response"], texts(item)) == ("Q", "A", [DONE])
        assert dict(item.scores) == {"helpful": 0.25}


def test_a_collector_writes_spans_in_any_order(tmp_path: Path) -> None:
    """The order and the lines of the spans do not matter, and the name may end in .json."""
    lines = (FILES / "openinference.otlp.jsonl").read_text().splitlines()
    path = written(tmp_path, *reversed(lines), name="traces.json")
    records = {item.id: item.record for item in items(path)}
    assert records == {item.id: item.record for item in items(FILES / "openinference.otlp.jsonl")}


def test_a_table_of_spans(tmp_path: Path) -> None:
    """Phoenix's data frame, saved as JSON, has dotted columns."""
    row = {"context.trace_id": "t1", "context.span_id": "a", "parent_id": None, "span_kind": "RETRIEVER"}
    documents = [{"document.content": DONE, "document.score": 0.5}]
    more = {"attributes.input.value": QUESTION, "attributes.retrieval.documents": documents}
    (item,) = items(written(tmp_path, {**row, **more}))
    assert item.record is not None
    assert item.record["retrieved_contexts"] == [{"text": DONE, "score": 0.5}]
    assert item.record["metadata"]["question_from"] == "retriever"


def test_a_retriever_within_a_retriever_is_replaced(tmp_path: Path) -> None:
    """The documents of the outer retriever count."""
    path = written(
        tmp_path,
        span("outer", kind="RETRIEVER", input__value=QUESTION, retrieval__documents__0__document__content=DONE),
        span("inner", "outer", kind="RETRIEVER", retrieval__documents__0__document__content="Rome."),
    )
    (item,) = items(path)
    assert texts(item) == [DONE]


def test_an_empty_retrieval_is_not_a_missing_one(tmp_path: Path) -> None:
    """A retriever that returned an empty list gives a sample without contexts."""
    (item,) = items(written(tmp_path, span("a", kind="RETRIEVER", input__value=QUESTION, output__value="[]")))
    assert texts(item) == []


@each_case("change", [{"start": -1e308}, {"start": 1e308}, {"trace": "x\ud800"}])
def test_a_hostile_span_does_not_end_the_file(change: dict[str, Any], tmp_path: Path) -> None:
    """Ids and times that cannot be stored are a problem of one record at most."""
    bad = span("a", input__value="Q", output__value="A", **change)
    path = written(tmp_path, bad, span("b", trace="t2", input__value="Q", output__value="B"))
    found = [each.response for each in load(path) if isinstance(each, Sample)]
    assert "B" in found


def test_what_was_left_out_is_stated() -> None:
    """After reading, the data set states which traces are not samples and which parts are missing."""
    dataset = load(FILES / "openinference.otlp.jsonl")
    assert len(list(dataset)) == 2
    sentence = dataset.columns.sentence()
    assert "1 not a sample: no span states the question." in sentence
    assert "1 without contexts." in sentence


def test_a_span_that_names_itself_as_its_parent_is_read(tmp_path: Path) -> None:
    """A retriever that is its own parent is not left out as one within another."""
    found = {"documents": [{"document": {"content": DONE}}]}
    path = written(
        tmp_path, span("1", input__value="Q"), span("2", "2", kind="RETRIEVER", retrieval__documents=found["documents"])
    )
    assert texts(items(path)[0]) == [DONE]


def test_a_trace_that_is_too_long_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace may not fill the memory."""
    monkeypatch.setattr(traces, "MAX_SPANS", 2)
    path = written(
        tmp_path, *(span(str(n), trace="t1" if n < 3 else "t2", input__value="Q", output__value="A") for n in range(5))
    )
    long, good = items(path)
    assert long.record is None
    assert long.reason == "it has more than 2 spans"
    assert long.kinds == {"chain": 2, "not read": 1}
    assert good.record is not None


@each_case(
    "attributes",
    [
        {"input.value": {"a": [1, {"b": None}]}},
        {".".join("a" * 5000): 1, "input..value": "x", "": 2},
        {"retrieval.documents.0": 3, "retrieval.documents": "[[[[", "input": "text", "input.value": "Q"},
        {"gen_ai.output.messages": json.dumps([None, 1, ["user"], {"role": {}, "parts": [{"type": 1}]}])},
        {"session.id": {"a": 1}, "retrieval.documents": [{"content": "T", "score": 10**400, "id": True}]},
        [{"key": 1}, {"key": "a", "value": {"arrayValue": {"values": 3}}}, None],
    ],
)
def test_malformed_attributes_raise_nothing(tmp_path: Path, attributes: Any) -> None:
    """Any JSON in a span's place is read without an error."""
    raw = span("a", kind="RETRIEVER")
    raw["attributes"] = attributes
    raw |= {"start_time": float("inf"), "end_time": 10**400}
    raw["events"] = [None, {"name": "gen_ai.choice", "attributes": 3}]
    assert len(items(written(tmp_path, raw))) == 1


@each_case(
    ("given", "question"),
    [
        ("plain", "plain"),
        ('["a", "list"]', "a"),
        ("{not json", "{not json"),
        ({"query": "Q", "k": 3}, "Q"),
        ({"messages": [["system", "S"], ["human", "Q"]]}, "Q"),
        ([{"role": "user", "content": [{"type": "text", "text": "Q"}, {"type": "image_url"}]}], "Q"),
        ([{"type": "human", "content": "old"}, {"type": "ai", "content": "A"}, {"type": "human", "content": "Q"}], "Q"),
        ([{"role": "system", "content": "S"}], None),
        ({"kwargs": {"unrelated": 1}, "other": 2}, None),
    ],
)
def test_questions(given: object, question: str | None) -> None:
    """The text of the user is found in the common forms of inputs."""
    assert question_in(unfolded(given)) == question


@each_case(
    ("made", "answer"),
    [
        ({"choices": [{"message": {"role": "assistant", "content": "A"}}]}, "A"),
        ({"answer": "A", "context": []}, "A"),
        ({"messages": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "A"}]}, "A"),
        ({"generations": [[{"text": "A"}]]}, "A"),
        ([{"role": "assistant", "parts": [{"type": "text", "content": "A"}]}], "A"),
        ({"x": 1, "y": 2}, None),
    ],
)
def test_answers(made: object, answer: str | None) -> None:
    """The text of the assistant is found in the common forms of outputs."""
    assert answer_in(unfolded(made)) == answer


@each_case(
    ("value", "found"),
    [
        ([{"node": {"id_": "n", "text": "T"}, "score": 0.5}], {"text": "T", "id": "n", "score": 0.5}),
        ([[{"page_content": "T"}, 0.5]], {"text": "T", "score": 0.5}),
        (
            {"documents": [{"content": "T", "meta": {"p": 1}, "score": float("nan")}]},
            {"text": "T", "metadata": {"p": 1}},
        ),
        (["T"], {"text": "T"}),
        ('[{"id": 7}]', {"id": 7}),
    ],
)
def test_documents(value: object, found: dict[str, object]) -> None:
    """Documents of LlamaIndex, LangChain and Haystack, plain texts and bare ids are read with ids and scores."""
    assert documents_in(unfolded(value)) == [found]


def test_dotted_names_and_objects_give_the_same_tree() -> None:
    """Flattened and nested attributes are equal once read."""
    assert find(tree_of({"a.b.0.c": 1}), "a.b") == find(tree_of({"a": {"b": {"0": {"c": 1}}}}), "a.b")
    assert find(tree_of({"a": 1, "a.b": 2}), "a.b") == 2


def hops(name: str | Path) -> Path:
    """Return the source with which each retrieval of a file is a sample."""
    return FILES / f"{name}#hops"


def test_each_retrieval_is_a_sample() -> None:
    """After `#hops`, a retrieval has its own query, documents and span; a trace with one retrieval has one hop."""
    first, second, only = (item.record for item in items(hops("two_hops.otlp.jsonl")))
    assert first is not None
    assert second is not None
    assert only is not None
    trace = first["metadata"]["trace_id"]
    assert (first["id"], second["id"]) == (f"{trace}#hop1", f"{trace}#hop2")
    assert (first["user_input"], second["user_input"]) == (
        "Which company built the tower?",
        "Where did Gustave Eiffel study?",
    )
    assert [each["id"] for each in first["retrieved_contexts"]] == ["d3", "d1"]
    assert [each["id"] for each in second["retrieved_contexts"]] == ["d4", "d3"]  # d3 again: it was returned again
    assert (second["metadata"]["hop"], second["metadata"]["of"]) == (2, 2)
    assert second["metadata"]["span_id"] == "b7ad6b7169200003"
    assert (only["user_input"], only["metadata"]["of"]) == (QUESTION, 1)
    assert not any("response" in each for each in (first, second, only))


@each_case(
    ("name", "queries"),
    [
        ("gen_ai.otlp.jsonl", ["tower", None]),  # the second agent's retrieval states ids and no query
        ("mlflow.json", ["tower"]),
        ("langfuse.jsonl", ["tower"]),
        ("langsmith.jsonl", ["tower"]),
        ("phoenix.jsonl", ["tower"]),
    ],
)
def test_queries_of_retrievals(name: str, queries: list[str | None]) -> None:
    """The query of a retrieval is read in each convention; without one it is no sample, and the reason is stated."""
    found = [item for item in items(hops(name)) if item.reason != "no span states what a retrieval returned"]
    assert [item.record and item.record["user_input"] for item in found] == queries
    assert [item.reason for item in found if item.record is None] == ["the retrieval does not state its query"] * (
        queries.count(None)
    )


def test_a_reranker_belongs_to_what_it_was_given(tmp_path: Path) -> None:
    """A reranker and the retrievals that it orders are one hop; without stated input that is the one before it."""
    first, second, *others = items(hops("openinference.otlp.jsonl"))
    assert (texts(first), texts(second)) == ([DONE], [DONE, "The tower was built by Eiffel's company."])
    assert (first.record or {})["user_input"] == QUESTION  # the reranker's own query
    assert {each.reason for each in others} == {"no span states what a retrieval returned"}

    def retrieval(name: str, kind: str = "RETRIEVER", **attributes: Any) -> dict[str, Any]:
        return span(name, "root", kind=kind, start=f"2026-01-01T00:00:0{name}Z", **attributes)

    def returned(*found: str) -> list[dict[str, str]]:
        return [{"document.content": each} for each in found]

    path = written(
        tmp_path,
        span("root", input__value="Q", output__value="A"),
        retrieval("1", input__value="one", retrieval__documents=returned("a", "b")),
        retrieval("2", input__value="two", retrieval__documents=returned("c", "b")),
        retrieval("3", "RERANKER", reranker__output_documents=returned("b")),
        retrieval("4", input__value="four", retrieval__documents=returned("d")),
        retrieval("5", input__value="five", retrieval__documents=returned("e")),
        retrieval(
            "6",
            "RERANKER",
            reranker__query="both",
            reranker__input_documents=returned("d", "e"),
            reranker__output_documents=returned("e", "d"),
        ),
    )
    found = [(item.record["user_input"], texts(item)) for item in items(Path(f"{path}#hops")) if item.record]
    assert found == [("one", ["a", "b"]), ("two", ["b"]), ("both", ["e", "d"])]


def test_a_passage_is_judged_by_the_query_that_found_it(tmp_path: Path) -> None:
    """The second hop's passage is irrelevant to the whole question, and relevant to its own; hops share a cluster."""

    def relevance(run: merilo.Run, sample: str) -> float:
        found = run.sample(sample)
        (place,) = [at for at, each in enumerate(found.sample.contexts) if each.text.startswith("Gustave Eiffel")]
        score = found.outcomes["context_relevance"]
        assert isinstance(score, Score)
        verdict = score.evidence[place].verdict
        assert isinstance(verdict, RelevanceVerdict)
        return verdict.probability or 0.0

    whole, parts = (
        merilo.evaluate(source, metrics=["context_relevance"], out=tmp_path / name, storage={"cache": False})
        for name, source in (("whole", FILES / "two_hops.otlp.jsonl"), ("hops", hops("two_hops.otlp.jsonl")))
    )
    trace = next(iter(load(FILES / "two_hops.otlp.jsonl"))).id
    assert relevance(whole, trace) < 0.2
    assert relevance(parts, f"{trace}#hop2") > 0.9
    assert (whole.manifest.cluster, parts.manifest.cluster) == (None, "trace_id")


def test_the_tools_that_retrieve(tmp_path: Path) -> None:
    """What other tools returned is metadata, also if it has a text, and nothing within them was retrieved."""
    asked, found = {"input__value": QUESTION, "output__value": "In 1889."}, [{"text": DONE, "id": "d2"}]
    path = written(
        tmp_path,
        span("agent", kind="AGENT", llm__token_count__prompt=7, **asked),
        span("a", "agent", kind="TOOL", tool__name="search", input__value='{"query": "tower"}', output__value=found),
        span("b", "agent", kind="TOOL", tool__name="weather", output__value="It will be sunny."),
        span("c", "b", kind="RETRIEVER", input__value="sun", retrieval__documents__0__document__content="The sun."),
        span("d", "agent", kind="TOOL", tool__name="final_answer", output__value="It was in 1889."),
    )
    every, named = (next(iter(load(path, tools=tools))) for tools in (None, ["search"]))
    assert isinstance(every, Sample)
    assert isinstance(named, Sample)
    assert [each.text for each in every.contexts] == [DONE, "The sun."]
    assert [each.text for each in named.contexts] == [DONE]
    assert named.metadata["tools"] == {"weather": "It will be sunny."}
    assert named.metadata["input_tokens"] == 7
    (hop,) = load(Path(f"{path}#hops"), tools=["search"])
    assert isinstance(hop, Sample)
    assert (hop.user_input, hop.metadata["of"]) == ("tower", 1)
    run = merilo.evaluate(
        path, metrics=["faithfulness"], reading=merilo.Reading(tools=["search"]), out=tmp_path / "run"
    )
    assert [each.text for each in run.samples[0].sample.contexts] == [DONE]


def test_only_traces_have_hops(tmp_path: Path) -> None:
    """`#hops` after the name of another file, or of none, is an error that names the file."""
    path = written(tmp_path, {"id": "a", "user_input": "Q"}, name="rows.jsonl")
    for source, message in (
        (f"{path}#hops", "not a file of traces or of conversations"),
        (tmp_path / "none.jsonl#hops", r"No such file.*none\.jsonl"),
    ):
        with pytest.raises(DataError, match=message):
            list(load(source))
