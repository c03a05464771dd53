"""Makes objects of a framework, records them as JSON, and builds stand-ins from it: same classes, same attributes.

A recording holds what a reader without the package can see: the names of the class and its bases, the attributes, and
the results of the methods in `_CALLS`. `python tests/recorded_objects.py langchain` writes it with the version.
"""

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "adapters" / "recorded"
_CALLS = {"llama_index": ("get_content",), "dspy": ("items",), "datasets": ("__iter__",)}
"""Package → the methods that merilo calls."""
_MAX_DEPTH = 8
_PLAIN = (str, int, float, bool, type(None))


def record(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON; an attribute that is too deep or cannot be read is left out."""
    if isinstance(value, _PLAIN) and type(value) in _PLAIN:
        return value
    if type(value) in (list, tuple):
        return {"tuple" if type(value) is tuple else "list": [record(item, depth + 1) for item in value]}
    if type(value) is dict:
        return {"dict": {str(name): record(item, depth + 1) for name, item in value.items()}}
    classes = [[each.__module__, each.__name__] for each in type(value).__mro__[:-1]]
    return {"classes": classes, "attributes": _attributes(value, depth), "calls": _calls(value, depth)}


def _attributes(value: Any, depth: int) -> dict[str, Any]:
    if _package(value) == "datasets" or depth > _MAX_DEPTH:  # a data set is read by iterating only
        return {}
    names = set(getattr(value, "__dict__", ()))
    names |= {name for each in type(value).__mro__ for name, kind in vars(each).items() if isinstance(kind, property)}
    found: dict[str, Any] = {}
    for name in sorted(names):
        if not name.startswith(("_", "model_")):
            with suppress(Exception):  # a property may raise anything
                found[name] = record(getattr(value, name), depth + 1)
    return found


def _calls(value: Any, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in _CALLS.get(_package(value), ()):
        if callable(getattr(type(value), name, None)):
            result = getattr(value, name)()
            found[name] = record(result if isinstance(result, str) else list(result), depth + 1)
    return found


def _package(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def restore(recorded: Any) -> Any:
    """Return the value, with a stand-in for each object."""
    if not isinstance(recorded, dict):
        return recorded
    if "list" in recorded:
        return [restore(item) for item in recorded["list"]]
    if "tuple" in recorded:
        return tuple(restore(item) for item in recorded["tuple"])
    if "dict" in recorded:
        return {name: restore(item) for name, item in recorded["dict"].items()}
    return _stand_in(recorded)


def _stand_in(recorded: dict[str, Any]) -> Any:
    base: type = object
    for module, name in reversed(recorded["classes"]):
        base = type(name, (base,), {"__module__": module})
    calls = {name: restore(result) for name, result in recorded["calls"].items()}
    methods: dict[str, Any] = {name: _returning(result) for name, result in calls.items()}
    module, name = recorded["classes"][0]
    if name.endswith("Dataset"):
        methods["with_format"] = lambda self, _: self  # a data set without a format is itself
    made = type(name, (base,), {"__module__": module, **methods})()
    for attribute, value in recorded["attributes"].items():
        setattr(made, attribute, restore(value))
    return made


def _returning(result: Any) -> Any:
    """Return a method with this result; a list is iterated anew each time."""
    return lambda _: iter(result) if isinstance(result, list) else result


def recorded_objects(framework: str) -> dict[str, Any]:
    """Return the stand-ins of a framework by name."""
    objects = json.loads((FOLDER / f"{framework}.json").read_text(encoding="utf-8"))["objects"]
    return {name: restore(each) for name, each in objects.items()}


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


def main(framework: str) -> None:
    """Record the objects of an installed framework."""
    package, make = MAKERS[framework]
    found = {"package": package, "version": version(package), "objects": {n: record(v) for n, v in make().items()}}
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{framework}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
