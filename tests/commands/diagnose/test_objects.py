"""Applications made of LangChain, LangGraph, LlamaIndex, Haystack and DSPy: merilo replaces their retriever."""

# ruff: noqa: ARG002, ARG003  stand-ins have the signatures of the frameworks
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import merilo
from merilo.commands.diagnose.application import parts_of
from merilo.errors import UsageError

NUMBER = 10
PASSAGES = [f"The tower number {at} on the hill was finished by builders in {1200 + 7 * at}." for at in range(NUMBER)]
QUESTIONS = [
    {
        "id": f"t{at}",
        "user_input": f"When was tower number {at} finished?",
        "reference": str(1200 + 7 * at),
        "reference_contexts": [PASSAGES[at]],
    }
    for at in range(NUMBER)
]


def retrieved(question: str) -> list[str]:
    """The evidence of even numbers, behind another passage; that of odd numbers is missing."""
    at = int("".join(filter(str.isdigit, question)) or 0)
    return [PASSAGES[at - 1], PASSAGES[at - 2 + (at % 2 == 0) * 2]]


def said(question: str, contexts: list[str]) -> str:
    """The year in the passage about the question, or the made-up fact of the canary."""
    if "access word" in question:
        return " ".join(contexts)
    name = next(word for word in question.split() if word.isdigit())
    return next((each for each in contexts if f"number {name} " in each), "Unknown.")


def right(answer: str, sample: merilo.Sample) -> bool:
    return str(sample.reference) in answer


def check(app: object, out: Path) -> None:
    """Half of the evidence is missing, and the evidence heals; the contexts are those of the retriever itself."""
    found = merilo.diagnose(app, QUESTIONS, right=right, each=5, out=out)
    assert found.failed == 0, found
    assert found.right.value == pytest.approx(0.5)
    assert found.effects["evidence always there"].run_mean == pytest.approx(1)
    assert {each.cause for each in found.causes.values()} == {"evidence missing"}
    unchanged = [each for each in found.samples if each.arm == "unchanged"]
    assert [each.metadata["contexts"] for each in unchanged[:NUMBER]] == [
        retrieved(str(each["user_input"])) for each in QUESTIONS
    ]


def _langchain() -> list[Any]:
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import RunnableLambda, RunnablePassthrough

    class Found(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: object) -> list[Document]:
            return [Document(each) for each in retrieved(query)]

    def read(given: dict[str, Any]) -> str:
        return said(given["question"], [each.page_content for each in given["context"]])

    chain = {"context": Found(), "question": RunnablePassthrough()} | RunnableLambda(read)  # returns a text only
    retriever = Found()

    def asks(question: str) -> str:
        return said(question, [each.page_content for each in retriever.invoke(question)])

    return [chain, asks]


def _langgraph() -> list[Any]:
    from langchain_core.documents import Document
    from langchain_core.messages import AIMessage
    from langchain_core.tools import create_retriever_tool, tool
    from langchain_core.vectorstores import VectorStore
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode

    class Store(VectorStore):
        def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
            return [Document(each) for each in retrieved(query)]

        @classmethod
        def from_texts(cls, texts: Any, embedding: Any, **kwargs: Any) -> Any:
            return cls()

    def graph(search: Any) -> Any:
        def model(state: Any) -> Any:
            question, last = state["messages"][0].content, state["messages"][-1]
            if last.type == "tool":
                return {"messages": [AIMessage(said(question, last.content.split("\n\n")))]}
            call = {"name": search.name, "args": {"query": question}, "id": "1"}
            return {"messages": [AIMessage("", tool_calls=[call])]}

        made = StateGraph(MessagesState)
        made.add_node("model", model)
        made.add_node("tools", ToolNode([search]))
        made.add_edge(START, "model")
        made.add_conditional_edges(
            "model", lambda state: "tools" if getattr(state["messages"][-1], "tool_calls", ()) else "__end__"
        )
        made.add_edge("tools", "model")
        return made.compile()

    store = Store()

    @tool
    def search(query: str) -> str:
        """Search."""
        return "\n\n".join(each.page_content for each in store.similarity_search(query))

    return [graph(create_retriever_tool(Store().as_retriever(), "search", "Search.")), graph(search)]


def _llamaindex() -> list[Any]:
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.response_synthesizers import BaseSynthesizer
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, TextNode

    class Found(BaseRetriever):
        def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
            return [NodeWithScore(node=TextNode(text=each), score=0.5) for each in retrieved(query_bundle.query_str)]

    class Reads(BaseSynthesizer):
        def _get_prompts(self) -> Any:
            return {}

        def _update_prompts(self, prompts: Any) -> None:
            pass

        def get_response(self, query_str: str, text_chunks: Any, **kwargs: Any) -> str:
            return said(query_str, [*text_chunks])

        async def aget_response(self, query_str: str, text_chunks: Any, **kwargs: Any) -> str:
            return said(query_str, [*text_chunks])

    class Keeps(BaseNodePostprocessor):
        """Keeps the two best passages: given contexts are not cut."""

        def _postprocess_nodes(self, nodes: Any, query_bundle: Any = None) -> Any:
            return nodes[:2]

    from llama_index.core.llms import MockLLM

    reads = Reads(llm=MockLLM())
    return [RetrieverQueryEngine(Found(), response_synthesizer=reads, node_postprocessors=[Keeps()])]


def _haystack() -> list[Any]:
    from haystack import Document, Pipeline, component

    @component
    class Found:
        @component.output_types(documents=list[Document])
        def run(self, query: str) -> dict[str, Any]:
            return {"documents": [Document(content=each) for each in retrieved(query)]}

    @component
    class First:
        @component.output_types(documents=list[Document])
        def run(self, documents: list[Document]) -> dict[str, Any]:
            return {"documents": documents[:2]}

    @component
    class Generator:
        @component.output_types(replies=list[str])
        def run(self, query: str, documents: list[Document]) -> dict[str, Any]:
            return {"replies": [said(query, [str(each.content) for each in documents])]}

    pipeline = Pipeline()
    for name, part in {"retriever": Found(), "ranker": First(), "generator": Generator()}.items():
        pipeline.add_component(name, part)
    pipeline.connect("retriever.documents", "ranker.documents")
    pipeline.connect("ranker.documents", "generator.documents")
    return [pipeline]


def _dspy() -> list[Any]:
    import dspy

    class Retrieve(dspy.Retrieve):
        def forward(self, query: str, k: int | None = None, **kwargs: Any) -> Any:
            return dspy.Prediction(passages=retrieved(query))

    class Answer(dspy.Module):
        def __init__(self) -> None:
            super().__init__()
            self.retrieve = Retrieve(k=2)

        def forward(self, question: str) -> Any:
            return dspy.Prediction(answer=said(question, self.retrieve(question).passages))

    return [Answer()]


@pytest.mark.extras
@pytest.mark.parametrize(
    ("module", "make"),
    [
        ("langchain_core", _langchain),
        ("langgraph", _langgraph),
        ("llama_index.core", _llamaindex),
        ("haystack", _haystack),
        ("dspy", _dspy),
    ],
)
def test_retrievers_of_real_packages_are_replaced(module: str, make: Callable[[], list[Any]], tmp_path: Path) -> None:
    """Chains, graphs, query engines, pipelines and modules of the installed package answer from given contexts."""
    pytest.importorskip(module, reason=f"{module} is not installed here")
    for number, app in enumerate(make()):
        check(app, tmp_path / str(number))


def test_a_function_without_contexts_is_searched_for_retrievers(tmp_path: Path) -> None:
    """What its code, closures and helper functions use is found; without a retriever the message says what to write."""
    own = type(
        "BaseRetriever", (), {"__module__": "llama_index.core", "_retrieve": lambda _, query: retrieved(query)}
    )()
    with pytest.raises(UsageError, match="function takes no contexts, and has no retriever that merilo can replace"):
        merilo.diagnose(lambda question: said(question, retrieved(question)), QUESTIONS, right=right, out=tmp_path)
    found = [*parts_of({"app": lambda question: [said(each, []) for each in own._retrieve(question)]})]
    assert own in found
    assert said in found
