"""Agents of real frameworks, as pipelines and as data, give the question, what was retrieved, and the answer."""

import asyncio
from typing import Any

import pytest
from agent_objects import AGENTS, ANSWER, OTHER, QUESTION, TEXT

from merilo.commands.evaluate.pipeline import PipelineCaller, fields_of
from merilo.data.load import load
from merilo.data.sample import Sample

pytestmark = [
    pytest.mark.extras,
    pytest.mark.filterwarnings(  # of the packages themselves
        "ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
    ),
]
DOCUMENTS = [{"text": TEXT, "id": "d1"}, {"text": OTHER, "id": "d2"}]


def fields(name: str, value: Any) -> dict[str, Any]:
    """Return the fields of a result, or of what an agent or an engine returns for the question."""
    if name.startswith(("agent", "engine")):

        async def ask() -> Any:
            return await PipelineCaller(value, None).ask(QUESTION)

        return dict(fields_of(asyncio.run(ask())))
    if isinstance(value, list):  # a stream
        return dict(fields_of(iter(value)))
    (sample,) = load([value])
    assert isinstance(sample, Sample), sample
    assert sample.user_input in {QUESTION, None}
    return dict(sample.to_record())


@pytest.mark.parametrize("module", AGENTS)
def test_agents_of_real_packages(module: str) -> None:
    """Results, streams and agents give one answer and the same contexts, with their ids."""
    pytest.importorskip(module, reason=f"{module} is not installed here")
    for name, value in AGENTS[module]().items():
        found = fields(name, value)
        contexts = [{key: each[key] for key in ("text", "id")} for each in found["retrieved_contexts"]]
        is_index = module == "llama_index.core"  # its index has one document, and its mock model says "text text text"
        assert contexts == DOCUMENTS[: 1 if is_index else 2], name
        assert found["response"] in ({ANSWER, "text text text"} if is_index else {ANSWER}), name
