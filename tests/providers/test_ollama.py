"""Ollama's own API, over a real local server that answers as its documentation says."""

import json
from typing import Any

import pytest
import server as fake
from each_case import each_case
from server import JudgeServer
from wire_requests import REQUEST

from merilo.errors import Permanent, ProviderDown, UsageError
from merilo.providers.base import Finish, Message, ReplyPath, Request, Usage
from merilo.providers.ollama import ContextLimit, OllamaProvider, chat_reply_of
from merilo.providers.problems import Received


@pytest.fixture
def provider(server: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> OllamaProvider:
    for name in ("OLLAMA_API_KEY", "OLLAMA_CONTEXT_LENGTH"):
        monkeypatch.delenv(name, raising=False)
    return OllamaProvider("test-model", base_url=server.root_url)


async def test_the_context_length_is_at_most_the_models(server: JudgeServer, provider: OllamaProvider) -> None:
    """All requests have the smaller of the two lengths, which the error about a longer prompt explains."""
    server.described["model_info"] = {"general.architecture": "bert", "bert.context_length": 512}
    async with provider.connect() as connection:
        await connection.send(REQUEST)
        server.fail_next(fake.bare('{"error": "the input length exceeds the context length"}', 400))
        with pytest.raises(Permanent, match=r"exceeds 512 tokens\. That is the limit of the model") as caught:
            await connection.send(REQUEST)
        await connection.send(REQUEST)
        assert connection.adaptations()["num_ctx"] == "512"
    assert "OLLAMA_CONTEXT_LENGTH" not in str(caught.value)
    assert [asked.body["options"]["num_ctx"] for asked in server.asked] == [512] * 3


@pytest.mark.parametrize(
    ("described", "sent"),
    [
        ({"capabilities": ["completion"]}, None),
        ({"capabilities": ["completion", "thinking"]}, False),
        ({"capabilities": None}, False),
        ({"thinking": {"values": [False, True], "default": True}}, False),
        ({"thinking": {"values": ["low", "medium", "high"], "default": "medium"}}, "low"),
        ({"thinking": {"values": ["deep"], "default": "deep"}}, None),
    ],
)
async def test_models_think_as_little_as_they_can(
    server: JudgeServer, provider: OllamaProvider, described: dict[str, Any], sent: object
) -> None:
    """`think` is false, the lowest level of a model with levels, and omitted for a model that cannot think."""
    server.described.update(described)
    async with provider.connect() as connection:
        await connection.send(REQUEST)
    assert server.asked[0].body.get("think") == sent
    assert ("think" in server.asked[0].body) == (sent is not None)


async def test_a_truncated_prompt_is_noticed(server: JudgeServer, provider: OllamaProvider) -> None:
    """A version that ignores `truncate` is noticed by its token counts; the advice is to update it."""
    message = {"role": "assistant", "content": "so"}
    fields = {"message": message, "done_reason": "stop", "prompt_eval_count": 300, "eval_count": 2}
    server.fail_next(fake.bare(json.dumps(fields)))
    long = Request(messages=(Message("user", "A word. " * 2_000),))
    async with provider.connect() as connection:
        with pytest.raises(Permanent, match=r"read only 300 of about [\d,]+ tokens .* Update Ollama"):
            await connection.send(long)


async def test_a_missing_model_is_reported_before_the_first_question(server: JudgeServer) -> None:
    """A model that was not pulled ends the run with the command that pulls it; nothing was asked."""
    async with OllamaProvider("missing", base_url=server.root_url).connect() as connection:
        with pytest.raises(
            ProviderDown, match=r"has no model 'missing'\. Download it with: ollama pull missing"
        ) as caught:
            await connection.send(REQUEST)
    assert server.count == 0
    assert not caught.value.sent


async def test_a_changed_model_stops_the_run(server: JudgeServer, provider: OllamaProvider) -> None:
    """A run that resumes with another digest of the model stops before it asks anything."""
    async with provider.connect(known={"digest": "0" * 64}) as connection:
        with pytest.raises(ProviderDown, match=r"has changed since this run began \(digest 6488c96fa5fa, before 0{12}"):
            await connection.send(REQUEST)
    assert server.count == 0
    async with provider.connect(known={"digest": server.digest}) as connection:
        await connection.send(REQUEST)


def read(fields: dict[str, object], *, path: ReplyPath = ReplyPath.JSON_SCHEMA, num_ctx: int = 100) -> Any:
    """The reply in a body."""
    return chat_reply_of(Received(fields, json.dumps(fields), path, str, "a"), limit=ContextLimit(num_ctx))


# Shapes of ChatResponse: https://docs.ollama.com/openapi.yaml
def test_reasons_and_usage() -> None:
    """`done_reason` length is a truncated reply; counts that are missing are unknown; thinking is not the answer."""
    message = {"role": "assistant", "content": '{"a": 1}', "thinking": "hm"}
    whole = read({"message": message, "done_reason": "stop", "prompt_eval_count": 7, "eval_count": 3})
    assert (whole.text, whole.finish, whole.usage, whole.reasoning) == ('{"a": 1}', Finish.STOP, Usage(7, 3), "hm")
    cut = read({"message": message, "done_reason": "length", "prompt_eval_count": 7, "eval_count": 3})
    assert cut.finish is Finish.LENGTH
    assert read({"message": message}).usage == Usage()


def test_json_that_was_written_while_thinking() -> None:
    """The requested JSON is read from the thinking if the content is empty, but not for free text."""
    fields: dict[str, object] = {"message": {"content": "", "thinking": '{"a": 1}'}, "eval_count": 5}
    assert read(fields).text == '{"a": 1}'
    assert read(fields, path=ReplyPath.TEXT).text == ""


def test_a_full_context_is_not_asked_again() -> None:
    """If prompt and reply fill the context, more room for the reply would not help: the message says how to get it."""
    fields: dict[str, object] = {
        "message": {"content": "so"},
        "done_reason": "length",
        "prompt_eval_count": 90,
        "eval_count": 10,
    }
    with pytest.raises(Permanent, match=r"fill the context length of 100 tokens\. To increase it, set OLLAMA"):
        read(fields)
    assert read(fields, num_ctx=101).finish is Finish.LENGTH


@each_case(
    ("variable", "url"),
    [
        ("", "http://localhost:11434"),
        ("127.0.0.1", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),  # noqa: S104  read from a variable, not bound
        ("0.0.0.0:8000", "http://127.0.0.1:8000"),
        (":8000", "http://localhost:8000"),
        ("gpu.example", "http://gpu.example:11434"),
        ("::1", "http://[::1]:11434"),
        ("[::]:8000", "http://[::1]:8000"),
        ("https://gpu.example/", "https://gpu.example"),
        ("http://gpu.example:80/ollama/api", "http://gpu.example:80/ollama"),
        ('"gpu.example:1"', "http://gpu.example:1"),
    ],
)
def test_the_address_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch, variable: str, url: str) -> None:
    """OLLAMA_HOST may lack a scheme or a port, and may be the address that the server listens on."""
    monkeypatch.setenv("OLLAMA_HOST", variable)
    assert OllamaProvider("m").base_url == url


def test_the_context_length_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """OLLAMA_CONTEXT_LENGTH is the default; a value that is not a number of tokens is an error."""
    monkeypatch.setenv("OLLAMA_CONTEXT_LENGTH", "32768")
    assert OllamaProvider("m").num_ctx == 32_768
    monkeypatch.setenv("OLLAMA_CONTEXT_LENGTH", "0")  # the server's own word for "automatic"
    assert OllamaProvider("m").num_ctx == 16_384
    monkeypatch.setenv("OLLAMA_CONTEXT_LENGTH", "32k")
    with pytest.raises(UsageError, match="must be a number of tokens, got '32k'"):
        OllamaProvider("m")
    with pytest.raises(UsageError, match="at least 512"):
        OllamaProvider("m", num_ctx=10)
