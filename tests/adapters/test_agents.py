"""Agents of real frameworks, as pipelines and as data, give the question, what was retrieved, and the answer."""

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_objects import AGENTS, ANSWER, DOCUMENTS, FEW, QUESTION, TOKENS

import merilo

pytestmark = [
    pytest.mark.extras,
    pytest.mark.filterwarnings("ignore"),  # of the packages themselves
]
NO_TOKENS = {"llama_index.core", "crewai"}
"""Frameworks whose results state no tokens, or those of all runs so far."""


@pytest.fixture(autouse=True)
def _collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Collect what the packages leave open while their warnings are ignored."""
    monkeypatch.chdir(tmp_path)
    yield
    gc.collect()


def sample_of(name: str, value: Any) -> dict[str, Any]:
    """Return the sample that a result is, or that an agent or an engine returns for the question."""
    if name.startswith(("agent", "engine")):
        calls = merilo.Calls(question_as="question" if "crew" in name else None)
        run = merilo.evaluate_pipeline(value, [QUESTION], metrics=["faithfulness"], calls=calls)
    elif isinstance(value, Iterator):  # a stream is what a function returns
        run = merilo.evaluate_pipeline(lambda _: value, [QUESTION], metrics=["faithfulness"])
    else:
        (read,) = merilo.load([value])
        assert isinstance(read, merilo.Sample), name
        assert read.user_input in {QUESTION, None}
        record = value if read.user_input else {"user_input": QUESTION, "response": value}
        run = merilo.evaluate([record], metrics=["faithfulness"])
    assert run["faithfulness"].mean is not None, name
    return dict(run.samples[0].sample.to_record())


@pytest.mark.parametrize("module", AGENTS)
def test_agents_of_real_packages(module: str) -> None:
    """Results, streams and agents give one answer, the same contexts, and the tokens if they state any."""
    pytest.importorskip(module, reason=f"{module} is not installed here")
    for name, value in AGENTS[module]().items():
        found = sample_of(name, value)
        contexts = [{key: each[key] for key in ("text", "id")} for each in found["retrieved_contexts"]]
        is_mock = any(word in name for word in ("chat", "stream", "engine")) and module == "llama_index.core"
        assert contexts == DOCUMENTS[: 1 if module in FEW else 2], name
        assert found["response"] == ("text text text" if is_mock else ANSWER), name
        if module not in NO_TOKENS:
            assert {key: found["metadata"][key] for key in TOKENS} == TOKENS, name


def test_the_answer_of_a_managed_agent_is_no_context() -> None:
    """What a managed agent of smolagents reports is neither a passage nor the answer."""
    pytest.importorskip("smolagents", reason="smolagents is not installed here")
    agent = AGENTS["smolagents"]()["agent"]
    agent.name, agent.return_full_result = "search", False
    report = agent(QUESTION)
    assert ANSWER in report
    step = {"tool_calls": [{"id": "1", "function": {"name": "search", "arguments": "{}"}}], "observations": report}
    asked, answered = {"task": QUESTION}, {"role": "assistant", "content": ANSWER}
    (found,) = merilo.load([{"messages": [asked, step, answered]}])
    assert isinstance(found, merilo.Sample)
    assert (found.retrieved_contexts, found.response) == (None, ANSWER)
    assert found.metadata["tools"] == {"search": report}
