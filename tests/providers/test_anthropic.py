"""Anthropic's Messages API, over a real local server that speaks as its documentation says."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import server as fake
from conversing import converse
from server import JudgeServer
from wire_requests import KEY, REQUEST

from merilo.errors import UsageError
from merilo.judges.llm import LLMJudge
from merilo.judging.kinds.contexts import Support
from merilo.judging.kinds.responses import Completion, CompletionVerdict, Statements
from merilo.judging.questions import Pack
from merilo.judging.reply_parsing import schema_for
from merilo.judging.verdicts import Failure
from merilo.providers.anthropic import AnthropicProvider, Cached, message_of
from merilo.providers.base import Finish, Message, ReplyPath
from merilo.providers.problems import Received

MARK = {"type": "ephemeral"}


@pytest.fixture
def provider(server: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> AnthropicProvider:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    return AnthropicProvider("claude", base_url=server.root_url)


@pytest.mark.parametrize("kind", ["relevance", "support_together", "statements"])
async def test_schemas_keep_to_what_the_api_takes(kind: str) -> None:
    """Every object is closed and names all its fields as required, and no keyword stands there that it refuses."""

    def objects(schema: Any) -> Iterator[dict[str, Any]]:
        if isinstance(schema, dict):
            if schema.get("type") == "object":
                yield schema
            for inner in schema.values():
                yield from objects(inner)

    found = list(objects(schema_for(kind.removesuffix("_together"), together=kind.endswith("_together"))))
    assert found
    for schema in found:
        assert schema["additionalProperties"] is False
        assert set(schema["required"]) == set(schema["properties"])
        for inner in schema["properties"].values():
            assert set(inner) <= {"type", "enum", "items"}


async def test_a_limit_that_is_too_large_is_made_smaller(server: JudgeServer, provider: AnthropicProvider) -> None:
    """A cut list is asked for with more room, as much as the model has according to its error."""
    server.fail_next(fake.truncated(), fake.status(400, "max_tokens: 8192 > 4096, the maximum allowed number"))
    (answer,) = await converse(LLMJudge(provider), Statements(("One.", "Two.")))
    assert [asked.body["max_tokens"] for asked in server.asked] == [2_048, 8_192, 4_096]
    assert not isinstance(answer, Failure)


async def test_samples_are_asked_for_one_by_one(server: JudgeServer, provider: AnthropicProvider) -> None:
    """The API gives one text at a time; the judge asks for the rest."""
    free = Completion("en/noncommittal.v1", ("user_input", "response"), ("Who?", "Anna."), temperature=0.7)
    answers = await converse(LLMJudge(provider), Pack(tuple(free.at(draw) for draw in range(3))))
    assert answers == (CompletionVerdict("A free reply."),) * 3
    assert server.count == 3
    assert not any("n" in asked.body for asked in server.asked)


async def test_the_prompt_cache_is_counted(server: JudgeServer, provider: AnthropicProvider) -> None:
    """All input tokens are counted together, and those written to or read from the provider's cache beside them."""
    rubric = "A rubric. " * 200
    request = replace(REQUEST, messages=(Message("system", rubric), Message("user", "Judge this.")))
    async with provider.connect() as connection:
        first, second = [(await connection.send(request)).usage for _ in range(2)]
    size = len(rubric) // 4
    assert first.input_tokens == second.input_tokens == (len(rubric) + len("Judge this.")) // 4
    assert (first.cached_tokens, first.written_tokens) == (0, size)
    assert (second.cached_tokens, second.written_tokens) == (size, 0)


async def test_what_is_kept_can_be_chosen(server: JudgeServer, provider: AnthropicProvider) -> None:
    """Nothing, the rubric, or also long contexts that questions share; the text sent is the same."""
    contexts = tuple(f"Context {n}. {'It is long. ' * 200}" for n in range(2))
    question = Support("Anna.", contexts)
    for cached in Cached:
        await converse(LLMJudge(replace(provider, cached=cached)), question)
    nothing, rubric, both = (asked.body for asked in server.asked)
    assert "cache_control" not in json.dumps(nothing)
    assert json.dumps(rubric).count('"cache_control"') == 1
    assert json.dumps(both).count('"cache_control"') == 2
    shared, own = both["messages"][0]["content"]
    assert shared["cache_control"] == MARK
    assert "Context 1." in shared["text"]
    assert "Anna." not in shared["text"]
    assert "Anna." in own["text"]
    assert shared["text"] + own["text"] == rubric["messages"][0]["content"] == nothing["messages"][0]["content"]


def read(told: dict[str, object]) -> Any:
    """The reply in a body."""
    return message_of(Received(told, json.dumps(told), ReplyPath.TEXT, str, "a"))


def test_only_text_is_the_answer() -> None:
    """Texts are joined; what the model thought is left out; a refusal without text gives its explanation."""
    thinking = {"type": "thinking", "thinking": "hm"}
    blocks = [thinking, {"type": "text", "text": "x"}, {"type": "text", "text": "y"}]
    assert read({"content": blocks, "stop_reason": "end_turn"}).text == "xy"
    refused = read({"content": [], "stop_reason": "refusal", "stop_details": {"explanation": "Not this."}})
    assert (refused.finish, refused.text) == (Finish.REFUSED, "Not this.")
    assert read({"content": [thinking], "stop_reason": "max_tokens"}).finish is Finish.LENGTH


def test_the_address_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """ANTHROPIC_BASE_URL is the default, with or without its path."""
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://localhost:4000/v1/messages/")
    assert AnthropicProvider("c").base_url == "http://localhost:4000"
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "")
    assert AnthropicProvider("c").base_url == "https://api.anthropic.com"


def test_the_fingerprint_is_of_what_decides_a_reply(provider: AnthropicProvider) -> None:
    """Model, address and extra body; what the provider keeps in its cache is not part of it."""
    assert replace(provider, cached=Cached.NOTHING).fingerprint() == provider.fingerprint()
    assert replace(provider, body={"top_k": 1}).fingerprint() != provider.fingerprint()
    assert provider.fingerprint()["provider"] == "anthropic"


def test_parameters_out_of_range_are_refused() -> None:
    """A model has a name, a reply at least a token, and what was learnt earlier must be something that can be."""
    with pytest.raises(UsageError, match="anthropic:claude"):
        AnthropicProvider(" ")
    with pytest.raises(UsageError, match="max_tokens must be at least 1"):
        AnthropicProvider("c", max_tokens=0)

    async def opened() -> None:
        async with AnthropicProvider("c", base_url="http://localhost:1").connect(known={"output_config": "x"}):
            pass

    with pytest.raises(UsageError, match="known adaptation of output_config"):
        asyncio.run(opened())
