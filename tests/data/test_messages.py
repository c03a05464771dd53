"""Conversations of all dialects give the same question, answer and contexts; other values give one sentence."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st

from merilo.data.load import load
from merilo.data.messages import answer_in, messages_in
from merilo.data.sample import BadRecord, Sample

OLD, TALL = "The tower is old.", "The tower is tall."
QUESTION, SAID, ANSWER = "How old is it?", "Let me look.", "It is old."
PASSAGES = [{"text": OLD, "id": "d1"}, {"text": TALL, "id": "d2"}]
FOUND = json.dumps(PASSAGES)
GIVEN = {"query": "tower"}
ARGUMENTS = json.dumps(GIVEN)


def says(role: str, content: object, **more: object) -> dict[str, object]:
    return {"role": role, "content": content, **more}


DIALECTS: dict[str, dict[str, Any]] = {
    "openai chat": {
        "messages": [
            says("user", QUESTION),
            says("assistant", SAID, tool_calls=[{"id": "1", "function": {"name": "search", "arguments": ARGUMENTS}}]),
            says("tool", FOUND, tool_call_id="1"),
            says("assistant", ANSWER),
        ]
    },
    "openai responses": {
        "messages": [
            says("user", QUESTION),
            {"type": "reasoning", "summary": []},
            {"type": "function_call", "call_id": "1", "name": "search", "arguments": ARGUMENTS},
            {"type": "function_call_output", "call_id": "1", "output": FOUND},
            {"type": "message", **says("assistant", [{"type": "output_text", "text": ANSWER}])},
        ]
    },
    "anthropic": {
        "messages": [
            says("user", QUESTION),
            says(
                "assistant",
                [{"type": "text", "text": SAID}, {"type": "tool_use", "id": "1", "name": "search", "input": GIVEN}],
            ),
            says("user", [{"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": FOUND}]}]),
            says("assistant", [{"type": "text", "text": "It is"}, {"type": "text", "text": " old."}]),
        ]
    },
    "gemini": {
        "contents": [
            {"role": "user", "parts": [{"text": QUESTION}]},
            {"role": "model", "parts": [{"functionCall": {"name": "search", "args": GIVEN}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "search", "response": {"result": PASSAGES}}}]},
            {"role": "model", "parts": [{"text": ANSWER}]},
        ]
    },
    "langchain, stored": {
        "messages": [
            {"type": "human", "data": {"content": QUESTION}},
            {"type": "ai", "data": {"content": SAID, "tool_calls": [{"id": "1", "name": "search", "args": GIVEN}]}},
            {"type": "tool", "data": {"content": OLD, "artifact": PASSAGES, "tool_call_id": "1"}},
            {"type": "ai", "data": {"content": ANSWER}},
        ]
    },
    "langchain, serialised": {
        "messages": [
            {"lc": 1, "id": ["langchain", "schema", "messages", name], "kwargs": kwargs}
            for name, kwargs in (
                ("HumanMessage", {"content": QUESTION}),
                ("AIMessage", {"content": "", "tool_calls": [{"id": "1", "name": "search", "args": GIVEN}]}),
                ("ToolMessage", {"content": FOUND, "tool_call_id": "1"}),
                ("AIMessage", {"content": ANSWER}),
            )
        ]
    },
    "haystack": {
        "messages": [
            says("user", [{"text": QUESTION}]),
            says("assistant", [{"tool_call": {"id": "1", "tool_name": "search", "arguments": GIVEN}}]),
            says("tool", [{"tool_call_result": {"result": FOUND, "origin": {"id": "1", "arguments": GIVEN}}}]),
            says("assistant", [{"text": ANSWER}]),
        ]
    },
    "pydantic ai": {
        "messages": [
            {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": QUESTION}]},
            {
                "kind": "response",
                "parts": [{"part_kind": "tool-call", "tool_name": "search", "args": ARGUMENTS, "tool_call_id": "1"}],
            },
            {
                "kind": "request",
                "parts": [
                    {"part_kind": "tool-return", "tool_name": "search", "content": PASSAGES, "tool_call_id": "1"}
                ],
            },
            {"kind": "response", "parts": [{"part_kind": "text", "content": ANSWER}]},
        ]
    },
    "smolagents": {
        "messages": [
            {"task": QUESTION},
            {"tool_calls": [{"id": "1", "function": {"name": "search", "arguments": GIVEN}}], "observations": FOUND},
            {"is_final_answer": True, "observations": ANSWER},
            says("assistant", ANSWER),
        ]
    },
    "deepeval": {"turns": [says("user", QUESTION), says("assistant", ANSWER, retrieval_context=PASSAGES)]},
    "bedrock": {
        "conversationTurns": [
            {
                "prompt": {"content": [{"text": QUESTION}]},
                "output": {"text": ANSWER, "retrievedPassages": {"retrievalResults": PASSAGES}},
            }
        ]
    },
    "sharegpt": {
        "conversations": [{"from": "human", "value": QUESTION}, {"from": "gpt", "value": ANSWER}],
        "contexts": PASSAGES,
    },
    "inside an object": {
        "conversation": {"messages": [says("user", QUESTION), says("assistant", ANSWER, contexts=PASSAGES)]}
    },
}


@each_case("dialect", DIALECTS)
def test_all_dialects_are_read_alike(dialect: str) -> None:
    """Each gives the answer after the last call, and what the tool returned as contexts with their ids."""
    (sample,) = load([DIALECTS[dialect]])
    assert isinstance(sample, Sample), sample
    assert (sample.user_input, sample.response) == (QUESTION, ANSWER)
    assert [(each.id, each.text) for each in sample.contexts] == [("d1", OLD), ("d2", TALL)]


def called(*results: str) -> list[dict[str, Any]]:
    """Return a conversation in which tools `0`, `1` ... returned these texts."""
    calls = [{"id": str(at), "function": {"name": str(at), "arguments": "{}"}} for at in range(len(results))]
    returned = [says("tool", text, tool_call_id=str(at)) for at, text in enumerate(results)]
    return [says("user", QUESTION), says("assistant", None, tool_calls=calls), *returned, says("assistant", ANSWER)]


@each_case(
    ("tools", "contexts", "others"),
    [
        (None, [OLD, "Sunny all day."], {"1": '{"temperature": 21}', "3": "42"}),
        (["0"], [OLD], {"1": '{"temperature": 21}', "2": "Sunny all day.", "3": "42"}),
        (["3"], ["42"], {"0": OLD, "1": '{"temperature": 21}', "2": "Sunny all day."}),
    ],
)
def test_tools_that_retrieve(tools: list[str] | None, contexts: list[str], others: dict[str, str]) -> None:
    """Tools that return passages retrieve, unless the user names those that do; what others return is metadata."""
    (sample,) = load([{"messages": called(OLD, '{"temperature": 21}', "Sunny all day.", "42")}], tools=tools)
    assert isinstance(sample, Sample)
    assert [each.text for each in sample.contexts] == contexts
    assert sample.metadata["tools"] == others


@each_case(
    ("returned", "tool", "tools", "contexts"),
    [
        ("[]", "search_kb", None, []),
        ('{"results": []}', "search_kb", None, []),
        ("No results found.", "lookup", None, []),
        ("[]", "book_table", None, None),
        ("[]", "book_table", ["book_table"], []),
        ("[]", "search_kb", ["other"], None),
        (FOUND, "search_kb", ["other"], None),
        ("Error: timeout", "search_kb", None, None),
        ("Error codes of the pump begin with an E.", "search_kb", None, ["Error codes of the pump begin with an E."]),
    ],
)
def test_results_that_are_no_contexts(returned: str, tool: str, tools: list[str] | None, contexts: object) -> None:
    """A search that found nothing retrieved none; errors, and what other tools returned, are not contexts."""
    call = {"id": "1", "function": {"name": tool, "arguments": ARGUMENTS}}
    messages = [
        says("user", QUESTION),
        says("assistant", "", tool_calls=[call]),
        says("tool", returned, tool_call_id="1"),
        says("assistant", ANSWER),
    ]
    (sample,) = load([{"messages": messages}], tools=tools)
    assert isinstance(sample, Sample)
    found = sample.retrieved_contexts
    assert (None if found is None else [context.text for context in found]) == contexts


def test_a_turn_ends_when_the_user_speaks() -> None:
    """Texts of the assistant in a row are one answer; without a last text, what was said with the call is."""
    messages = [
        says("user", "One?"), says("assistant", "A."), says("assistant", "B."),
        says("user", "Two?"), says("assistant", SAID, tool_calls=[{"id": "1"}]),
    ]  # fmt: skip
    first, second = load([{"messages": messages}])
    assert isinstance(first, Sample)
    assert isinstance(second, Sample)
    assert (first.response, second.response) == ("A.\nB.", SAID)


def test_many_messages_take_linear_time() -> None:
    """A list of 20,000 messages is refused in one sentence as data, and read in seconds as a result."""
    many = [says("user", "One?"), says("assistant", "A.")] * 10_000
    (bad,) = load([{"messages": many}])
    assert isinstance(bad, BadRecord)
    assert "at most 1,000 turns, got more" in bad.problems[0].message
    began = time.process_time()
    assert answer_in(many)["response"] == "A."
    assert time.process_time() - began < 4


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda each: (
            st.lists(each)
            | st.dictionaries(
                st.sampled_from(
                    ["role", "type", "content", "parts", "tool_calls", "kwargs", "task", "output", "prompt", "x"]
                ),
                each | st.sampled_from(["user", "assistant", "tool", "function_call"]),
            )
        ),
        max_leaves=12,
    )
)
def test_any_json_is_messages_or_none(value: Any) -> None:
    """No value raises an error."""
    messages_in([value])
    messages_in(value)


@pytest.mark.parametrize("levels", [10, 5_000])
def test_nested_parts_have_a_limit(levels: int) -> None:
    """Messages within messages are read down to a depth."""
    message: object = "A."
    for _ in range(levels):
        message = [says("user", message)]
    assert messages_in(message) is None or isinstance(messages_in(message), list)


def test_each_call_of_a_tool_is_a_hop(tmp_path: Path) -> None:
    """After `#hops`, each retrieval is a sample with its own query and contexts, as in traces."""
    path = tmp_path / "chats.jsonl"
    path.write_text(json.dumps({"id": "c", **DIALECTS["openai chat"]}) + "\n")
    data = load(f"{path}#hops")
    (hop,) = data
    assert isinstance(hop, Sample)
    assert (hop.id, hop.user_input, [each.text for each in hop.contexts]) == ("c/1#hop1", "tower", [OLD, TALL])
    assert (hop.metadata["hop"], hop.metadata["of"], data.columns.cluster) == (1, 1, "conversation_id")
