"""Pipelines of LangChain, LlamaIndex, Haystack and DSPy are called as their packages mean them to be called."""

# ruff: noqa: ARG002, ARG005  stand-ins have the signatures of the frameworks
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from grouping import grouped

import merilo
from merilo.errors import UsageError

TEXT = "The tower was completed in 1889."


def contexts_of(pipeline: object, tmp_path: Path, **options: Any) -> list[tuple[str, str | None, float | None]]:
    """Evaluate one question; return text, id and score of each retrieved context."""
    data = [{"user_input": "When was the tower completed?", "reference_context_ids": ["d1"]}]
    given: dict[str, Any] = {"metrics": ["recall@1"], "cache": False, "out": tmp_path / "run", **options}
    run = merilo.evaluate_pipeline(pipeline, data, **grouped(**given))
    return [(context.text, context.id, context.score) for context in run.sample("1").sample.contexts]


class Runnable:
    def invoke(self, given: object) -> object:
        raise AssertionError("the async method comes first")

    async def ainvoke(self, given: object) -> object:
        question = given["input"] if isinstance(given, dict) else given
        return {"input": question, "context": [{"page_content": TEXT, "id": "d1"}], "answer": "In 1889."}


class Engine:
    def query(self, question: str) -> object:
        assert question.startswith("When")
        return {"response": "In 1889.", "source_nodes": [{"node": {"text": TEXT, "id": "d1"}, "score": 0.5}]}


class Retriever:
    async def aretrieve(self, question: str) -> object:
        return [{"text": TEXT, "id": "d1"}]


@pytest.mark.parametrize(
    ("pipeline", "options", "score"),
    [
        (Runnable(), {}, None),
        (Runnable(), {"question_as": "input"}, None),
        (Engine(), {}, 0.5),
        (Retriever(), {}, None),
        (lambda question: [{"text": TEXT, "id": "d1"}], {}, None),
        (lambda *, ask: [{"text": TEXT, "id": "d1"}], {"question_as": "ask"}, None),
    ],
)
def test_methods_are_found_by_name(
    pipeline: object, options: dict[str, Any], score: float | None, tmp_path: Path
) -> None:
    """`ainvoke`, `query` and `aretrieve` are called with the question, or with a dict or keyword if one is named."""
    assert contexts_of(pipeline, tmp_path, **options) == [(TEXT, "d1", score)]


def _haystack_pipeline(edges: list[tuple[str, str, int]]) -> Any:
    """A stand-in with the methods of haystack.Pipeline 3.4 that merilo calls."""

    def run(self: Any, data: dict[str, dict[str, str]], include_outputs_from: set[str]) -> dict[str, Any]:
        self.calls.append((data, include_outputs_from))
        return {name: {"documents": [{"content": TEXT, "id": "d1"}]} for name in include_outputs_from}

    text = {"type": str, "is_mandatory": True}
    many = {"type": int, "is_mandatory": False}
    members: dict[str, Any] = {
        "__module__": "haystack.core.pipeline.pipeline",
        "calls": [],
        "graph": SimpleNamespace(edges=lambda: edges),
        "inputs": lambda _: {"retriever": {"query": text, "top_k": many}, "ranker": {"query": text}},
        "outputs": lambda _, include_components_with_connected_outputs: {
            "retriever": {"documents": {}},
            "ranker": {"documents": {}},
            "prompt": {"prompt": {}},
        },
        "run": run,
    }
    return type("Pipeline", (), members)()


def test_a_haystack_pipeline_gets_the_question_at_each_mandatory_input(tmp_path: Path) -> None:
    """The documents are those of the ranker: the retriever's go into it."""
    pipeline = _haystack_pipeline([("retriever", "ranker")])  # type: ignore[list-item]
    assert contexts_of(pipeline, tmp_path) == [(TEXT, "d1", None)]
    question = "When was the tower completed?"
    assert pipeline.calls == [({"retriever": {"query": question}, "ranker": {"query": question}}, {"ranker"})]


def test_inputs_of_a_haystack_pipeline_can_be_named(tmp_path: Path) -> None:
    """`question_as` names them; an unknown one is refused with the list."""
    pipeline = _haystack_pipeline([("retriever", "ranker")])  # type: ignore[list-item]
    contexts_of(pipeline, tmp_path, question_as="retriever.query")
    assert pipeline.calls[0][0] == {"retriever": {"query": "When was the tower completed?"}}
    with pytest.raises(UsageError, match=r"The pipeline has retriever\.query, retriever\.top_k, ranker\.query"):
        contexts_of(pipeline, tmp_path, question_as="retriever.text")


def _langchain() -> list[tuple[Any, dict[str, Any]]]:
    from langchain_core.documents import Document
    from langchain_core.messages import AIMessage
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import RunnableLambda, RunnablePassthrough

    document = Document(TEXT, id="d1")

    class Found(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: object) -> list[Document]:
            return [document]

    chain = RunnablePassthrough.assign(context=lambda _: [document], answer=lambda _: AIMessage("In 1889."))
    return [(Found(), {}), (chain, {"question_as": "input"}), (RunnableLambda(lambda _: [document]), {})]


def _llamaindex() -> list[tuple[Any, dict[str, Any]]]:
    from llama_index.core.base.response.schema import Response
    from llama_index.core.query_engine import CustomQueryEngine
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, TextNode

    node = NodeWithScore(node=TextNode(id_="d1", text=TEXT))

    class Engine(CustomQueryEngine):
        def custom_query(self, query_str: str) -> Response:
            return Response(response="In 1889.", source_nodes=[node])

    class Found(BaseRetriever):
        def _retrieve(self, query_bundle: object) -> list[NodeWithScore]:
            return [node]

    return [(Engine(), {}), (Found(), {})]


def _haystack() -> list[tuple[Any, dict[str, Any]]]:
    from haystack import Document, Pipeline, component
    from haystack.components.builders import PromptBuilder
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    @component
    class Generator:
        @component.output_types(replies=list[str])
        def run(self, prompt: str) -> dict[str, list[str]]:
            return {"replies": ["In 1889."]}

    store = InMemoryDocumentStore()
    store.write_documents([Document(id="d1", content=TEXT), Document(id="d2", content="Rome has seven hills.")])
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(store, top_k=1))
    template = "{{question}} {{documents[0].content}}"
    pipeline.add_component("prompt", PromptBuilder(template, required_variables=["question"]))
    pipeline.add_component("generator", Generator())
    pipeline.connect("retriever.documents", "prompt.documents")
    pipeline.connect("prompt", "generator")
    return [(pipeline, {})]


def _dspy() -> list[tuple[Any, dict[str, Any]]]:
    import dspy

    class Blocking(dspy.Module):
        def forward(self, question: str) -> Any:
            return dspy.Prediction(context=[TEXT], answer="In 1889.", retrieved_context_ids=["d1"])

    class Asynchronous(dspy.Module):
        async def aforward(self, ask: str) -> Any:
            return dspy.Prediction(context=[TEXT], answer="In 1889.", retrieved_context_ids=["d1"])

    return [(Blocking(), {}), (Asynchronous(), {"question_as": "ask"})]


@pytest.mark.extras
@pytest.mark.parametrize(
    ("module", "make"),
    [
        ("langchain_core", _langchain),
        ("llama_index.core", _llamaindex),
        ("haystack", _haystack),
        ("dspy", _dspy),
    ],
)
def test_real_pipelines_are_asked(
    module: str, make: Callable[[], list[tuple[Any, dict[str, Any]]]], tmp_path: Path
) -> None:
    """A retriever, a chain, a query engine, a pipeline and a module of the installed package answer the question."""
    pytest.importorskip(module, reason=f"{module} is not installed here")
    for number, (pipeline, options) in enumerate(make()):
        found = contexts_of(pipeline, tmp_path, **options, out=tmp_path / str(number))
        assert [text for text, _, _ in found] == [TEXT]
