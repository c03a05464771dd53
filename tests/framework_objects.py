"""The objects of each framework that the tests read, made by the package itself.

`python tests/recorded_objects.py FRAMEWORK` runs this in an environment of the framework and records them.
"""

from collections.abc import Callable
from typing import Any

TEXT = "The tower was completed in 1889."
OTHER = "Rome has seven hills."


def langchain() -> dict[str, Any]:
    from langchain_core.documents import Document
    from langchain_core.load import dumpd
    from langchain_core.messages import AIMessage

    first = Document(TEXT, id="d1", metadata={"source": "tower.md", "relevance_score": 0.5})
    second = Document(OTHER, metadata={"source": "rome.md"})
    return {
        "retrieval chain": {"input": "When?", "context": [first, second], "answer": "In 1889."},
        "chain with a message": {"question": "When?", "context": [first, second], "answer": AIMessage("In 1889.")},
        "question-answering chain": {"query": "When?", "result": "In 1889.", "source_documents": [first, second]},
        "search with scores": {"question": "When?", "found": [(first, 0.5), (second, 0.25)], "answer": "In 1889."},
        "serialised": {"input": "When?", "context": [dumpd(first), dumpd(second)], "answer": "In 1889."},
        "message in parts": {"question": "When?", "answer": AIMessage([{"type": "text", "text": "In 1889."}])},
        "document": first,
    }


def llamaindex() -> dict[str, Any]:
    from llama_index.core.base.response.schema import Response
    from llama_index.core.schema import MediaResource, Node, NodeWithScore, TextNode

    first = NodeWithScore(node=TextNode(id_="n1", text=TEXT, metadata={"file": "tower.md"}), score=0.8)
    second = NodeWithScore(node=Node(id_="n2", text_resource=MediaResource(text=OTHER)))
    return {
        "response": Response(response="In 1889.", source_nodes=[first, second]),
        "response in a record": {
            "question": "When?",
            "response": Response(response="In 1889.", source_nodes=[first, second]),
            "reference": "1889",
        },
        "nodes": {"question": "When?", "nodes": [first, second], "answer": "In 1889."},
        "serialised": {"question": "When?", "source_nodes": [first.to_dict(), second.to_dict()], "answer": "In 1889."},
    }


def haystack() -> dict[str, Any]:
    from haystack import Document, GeneratedAnswer
    from haystack.dataclasses import ChatMessage

    first = Document(id="d1", content=TEXT, meta={"source": "tower.md"}, score=0.7)
    second = Document(id="d2", content=OTHER)
    answer = GeneratedAnswer(data="In 1889.", query="When?", documents=[first, second], meta={})
    return {
        "answer": answer,
        "output of an answer builder": {"answer_builder": {"answers": [answer]}},
        "output of two components": {
            "retriever": {"documents": [first, second]},
            "llm": {"replies": [ChatMessage.from_assistant("In 1889.")]},
        },
        "output of two retrievers": {"bm25": {"documents": [first]}, "vectors": {"documents": [second]}},
        "serialised answer": answer.to_dict(),
        "serialised documents": {"question": "When?", "contexts": [first.to_dict(), second.to_dict(flatten=False)]},
    }


def dspy() -> dict[str, Any]:
    import dspy as package

    prediction = package.Prediction(context=[TEXT, OTHER], answer="In 1889.", reasoning="It is written there.")
    return {
        "prediction": prediction,
        "prediction in a record": {"question": "When?", "prediction": prediction},
        "example": package.Example(question="When?", answer="In 1889.").with_inputs("question"),
    }


def datasets() -> dict[str, Any]:
    import datasets as package

    rows = [{"question": "When?", "contexts": [TEXT, OTHER], "answer": "In 1889."}]
    table = package.Dataset.from_list(rows)
    return {"dataset": table, "iterable": table.to_iterable_dataset()}


MAKERS: dict[str, tuple[str, Callable[[], dict[str, Any]]]] = {
    "langchain": ("langchain-core", langchain),
    "llamaindex": ("llama-index-core", llamaindex),
    "haystack": ("haystack-ai", haystack),
    "dspy": ("dspy", dspy),
    "datasets": ("datasets", datasets),
}
"""Framework → its distribution and the function that makes its objects."""
