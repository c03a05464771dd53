"""What holds for every chat wire, over a real local server that answers as each provider's documentation says."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
import server as fake
from conversing import converse
from server import JudgeServer
from wire_requests import GOOD, KEY, QUESTION, REQUEST

from merilo.errors import Temporary, UsageError
from merilo.judges.llm import LLMJudge
from merilo.judging.kinds.contexts import Support
from merilo.judging.questions import Pack
from merilo.judging.reply_parsing import schema_for
from merilo.judging.verdicts import Failure, FailureKind
from merilo.providers import AnthropicProvider, BedrockProvider, GoogleProvider, OllamaProvider, OpenAIProvider
from merilo.providers.base import Finish, Message, ReplyPath, Request

SCHEMA = schema_for("noncommittal")
FOLDED = "folded into the user message"
SAFETY = [
    {"category": f"HARM_CATEGORY_{each}", "threshold": "OFF"}
    for each in ("HARASSMENT", "HATE_SPEECH", "SEXUALLY_EXPLICIT", "DANGEROUS_CONTENT")
]
OLLAMA: Mapping[str, Any] = {
    "model": "test-model",
    "stream": False,
    "truncate": False,
    "shift": False,
    "keep_alive": "30m",
    "think": False,
}
SYSTEM_AND_USER = [{"role": "system", "content": "You judge."}, {"role": "user", "content": "Judge this."}]


class Wire(NamedTuple):
    """One wire, and what is particular to it."""

    make: Callable[..., Any]
    variable: str
    """The variable with the key."""
    header: tuple[str, str]
    """The header with the key, and the text before the key."""
    body: Mapping[str, object]
    """The body of REQUEST with seed 3."""
    free: Mapping[str, object]
    """The body of a request for free text without a system message or a parameter."""
    refused: tuple[tuple[tuple[str, ...], Mapping[str, str]], ...]
    """Parts that a model refuses, and the adaptations."""
    prompted: Mapping[str, str]
    """The adaptations of a model without structured output and without a system message, if the wire can do both."""
    no_reply: tuple[str, ...]
    """Bodies with status 200 that are no reply."""
    own: tuple[Mapping[str, Any], str]
    """Fields of the user, and the field of merilo's that stays beside them."""
    seeded: bool = True


WIRES = {
    "openai": Wire(
        lambda url, **more: OpenAIProvider("test-model", base_url=f"{url}/v1", **more),
        "OPENAI_API_KEY",
        ("Authorization", "Bearer "),
        {
            "model": "test-model",
            "messages": SYSTEM_AND_USER,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "noncommittal", "strict": True, "schema": SCHEMA},
            },
            "temperature": 0.0,
            "seed": 3,
            "max_tokens": 100,
        },
        {"model": "test-model", "messages": [{"role": "user", "content": "Hello."}]},
        (
            (("temperature",), {"temperature": "dropped"}),
            (("seed", "temperature"), {"seed": "dropped", "temperature": "dropped"}),
            (("max_tokens",), {"max_tokens": "max_completion_tokens"}),
            (("max_tokens", "max_completion_tokens"), {"max_tokens": "dropped"}),
            (("system",), {"system": FOLDED}),
            (("json_schema",), {"response_format": "json_mode"}),
            (("response_format",), {"response_format": "prompted"}),
        ),
        {"response_format": "prompted", "system": FOLDED},
        ("<html>hello</html>", "[]", '{"choices": []}'),
        ({"temperature": 0.5, "top_k": 3}, "response_format"),
    ),
    "anthropic": Wire(
        lambda url, **more: AnthropicProvider("claude", base_url=url, **more),
        "ANTHROPIC_API_KEY",
        ("x-api-key", ""),
        {
            "model": "claude",
            "max_tokens": 100,
            "system": [{"type": "text", "text": "You judge.", "cache_control": {"type": "ephemeral"}}],
            "messages": [{"role": "user", "content": "Judge this."}],
            "temperature": 0.0,
            "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
        },
        {"model": "claude", "max_tokens": 4_096, "messages": [{"role": "user", "content": "Hello."}]},
        (
            (("temperature",), {"temperature": "dropped"}),
            (("cache_control",), {"cache_control": "dropped"}),
            (("output_config",), {"output_config": "prompted"}),
        ),
        {"output_config": "prompted"},
        ("<html>hello</html>", "[]", '{"type": "message"}'),
        ({"temperature": 0.5, "top_k": 3}, "output_config"),
        seeded=False,
    ),
    "bedrock": Wire(
        lambda url, **more: BedrockProvider("us.anthropic.claude-v1:0", base_url=url, **more),
        "AWS_BEARER_TOKEN_BEDROCK",
        ("Authorization", "Bearer "),
        {
            "system": [{"text": "You judge."}],
            "messages": [{"role": "user", "content": [{"text": "Judge this."}]}],
            "inferenceConfig": {"maxTokens": 100, "temperature": 0.0},
            "outputConfig": {
                "textFormat": {
                    "type": "json_schema",
                    "structure": {"jsonSchema": {"name": "noncommittal", "schema": json.dumps(SCHEMA)}},
                }
            },
        },
        {"messages": [{"role": "user", "content": [{"text": "Hello."}]}]},
        (
            (("outputConfig",), {"outputConfig": "prompted"}),
            (("temperature",), {"temperature": "dropped"}),
            (("system",), {"system": FOLDED}),
        ),
        {"outputConfig": "prompted", "system": FOLDED},
        (
            "<html>hello</html>",
            '{"output": {}}',
            '{"output": {"message": {"content": [{"text": "so"}]}}, "stopReason": "malformed_model_output"}',
        ),
        ({"inferenceConfig": {"topP": 0.5}, "additionalModelRequestFields": {"top_k": 3}}, "outputConfig"),
        seeded=False,
    ),
    "google": Wire(
        lambda url, **more: GoogleProvider("gemini-2.5-flash", base_url=url, **more),
        "GEMINI_API_KEY",
        ("x-goog-api-key", ""),
        {
            "systemInstruction": {"parts": [{"text": "You judge."}]},
            "contents": [{"role": "user", "parts": [{"text": "Judge this."}]}],
            "generationConfig": {
                "temperature": 0.0,
                "seed": 3,
                "maxOutputTokens": 100,
                "responseMimeType": "application/json",
                "responseJsonSchema": SCHEMA,
                "thinkingConfig": {"thinkingBudget": 0},
            },
            "safetySettings": SAFETY,
        },
        {
            "contents": [{"role": "user", "parts": [{"text": "Hello."}]}],
            "generationConfig": {"thinkingConfig": {"thinkingBudget": 0}},
            "safetySettings": SAFETY,
        },
        (
            (("responseJsonSchema",), {"responseJsonSchema": "json_mode"}),
            (("responseJsonSchema", "responseMimeType"), {"responseJsonSchema": "prompted"}),
            (("safetySettings",), {"safetySettings": "dropped"}),
            (("thinkingConfig",), {"thinkingConfig": "dropped"}),
            (("seed",), {"seed": "dropped"}),
            (("temperature",), {"temperature": "dropped"}),
            (("system",), {"system": FOLDED}),
        ),
        {"responseJsonSchema": "prompted", "system": FOLDED},
        (
            "<html>hello</html>",
            "{}",
            '{"candidates": [{"content": {"role": "model"}, "finishReason": "STOP"}]}',
            '{"candidates": [{"content": {"parts": [{"text": "so"}]}, "finishReason": "MALFORMED_RESPONSE"}]}',
        ),
        ({"generationConfig": {"topK": 3}, "safetySettings": []}, "systemInstruction"),
    ),
    "ollama": Wire(
        lambda url, **more: OllamaProvider("test-model", base_url=url, **more),
        "OLLAMA_API_KEY",
        ("Authorization", "Bearer "),
        {
            **OLLAMA,
            "messages": SYSTEM_AND_USER,
            "format": SCHEMA,
            "options": {"num_ctx": 16_384, "num_predict": 100, "temperature": 0.0, "seed": 3},
        },
        {**OLLAMA, "messages": [{"role": "user", "content": "Hello."}], "options": {"num_ctx": 16_384}},
        ((("think",), {"think": "dropped"}), (("format",), {"format": "prompted"})),
        {"format": "prompted"},
        ("<html>hello</html>", "[]", '{"done": true}', '{"message": {"content": ""}}'),
        ({"options": {"top_k": 3, "temperature": 0.5}, "keep_alive": "1h"}, "format"),
    ),
}
EACH = pytest.mark.parametrize("name", WIRES)
LEARNT = {"digest", "num_ctx"}
"""Adaptations of Ollama that follow from the description of the model."""


@pytest.fixture
def provider(name: str, server: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> Any:
    for variable in ("OLLAMA_CONTEXT_LENGTH", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv(WIRES[name].variable, KEY)
    return WIRES[name].make(server.root_url)


@EACH
async def test_a_request_has_the_form_of_its_api(server: JudgeServer, provider: Any, name: str) -> None:
    """All parts are sent as the API wants them, and the key in its header; text, usage and path are read."""
    wire = WIRES[name]
    async with provider.connect() as connection:
        reply = await connection.send(replace(REQUEST, seed=3))
    assert server.asked[0].body == wire.body
    header, prefix = wire.header
    assert server.headers[0][header] == f"{prefix}{KEY}"
    assert header == "Authorization" or "Authorization" not in server.headers[0]
    assert json.loads(reply.text)["noncommittal"] is False
    assert (reply.path, reply.finish) == (ReplyPath.JSON_SCHEMA, Finish.STOP)
    assert reply.usage.input_tokens == 5
    assert reply.usage.output_tokens
    assert reply.seconds > 0


@EACH
async def test_what_is_not_set_is_not_sent(server: JudgeServer, provider: Any, name: str) -> None:
    """A request for free text has no format, no system part, and no parameter that is not set."""
    async with provider.connect() as connection:
        reply = await connection.send(Request(messages=(Message("user", "Hello."),)))
    assert server.asked[0].body == WIRES[name].free
    assert reply.path is ReplyPath.TEXT


@EACH
async def test_every_kind_of_judgement_is_answered(server: JudgeServer, provider: Any, name: str) -> None:
    """Single questions and packs use the JSON Schema; an unreadable reply is re-asked in the same conversation."""
    del name
    server.fail_next(fake.contradiction())
    assert await converse(LLMJudge(provider), QUESTION) == (GOOD,)
    assert [each["role"] for each in server.asked[1].messages] == ["system", "user", "assistant", "user"]
    pack = Pack(tuple(Support(f"Statement {n}.", ("A.", "B.")) for n in range(3)))
    assert not any(isinstance(answer, Failure) for answer in await converse(LLMJudge(provider), pack))
    assert {asked.structured for asked in server.asked} == {"json_schema"}


@pytest.mark.parametrize(
    ("name", "refused", "adaptations"),
    [(name, *each) for name, wire in WIRES.items() for each in wire.refused],
    ids=lambda value: "+".join(value) if isinstance(value, tuple) else str(value) if isinstance(value, str) else "",
)
async def test_rejected_parameters_are_omitted(
    server: JudgeServer, provider: Any, name: str, refused: tuple[str, ...], adaptations: Mapping[str, str]
) -> None:
    """A rejected part is reported once and sent no more; a later connection knows it from the start."""
    request = replace(REQUEST, seed=3) if WIRES[name].seeded else REQUEST
    server.refuse(*refused)
    async with provider.connect() as connection:
        replies = await asyncio.gather(*(connection.send(request) for _ in range(5)))
        learnt = connection.adaptations()
        assert {part: learnt[part] for part in learnt.keys() - LEARNT} == adaptations
        assert len(connection.notices()) == len(set(connection.notices())) >= 1
    assert {json.loads(reply.text)["noncommittal"] for reply in replies} == {False}
    before = server.count
    async with provider.connect(known=learnt) as connection:
        await connection.send(request)
        assert connection.adaptations() == learnt
        assert connection.notices() == ()
    assert server.count == before + 1
    assert server.asked[-1].user.endswith("Judge this.")
    assert "You judge." in server.asked[-1].messages[0]["content"]


@EACH
async def test_without_a_schema_the_prompt_contains_it(server: JudgeServer, provider: Any, name: str) -> None:
    """A model without structured output gets the schema in words, also if it takes no system message."""
    async with provider.connect(known=WIRES[name].prompted) as connection:
        reply = await connection.send(REQUEST)
    assert reply.path is ReplyPath.PROMPTED
    first = server.asked[0].messages[0]["content"]
    assert first.startswith("You judge.\n\nThe reply is one JSON object")
    assert json.dumps(SCHEMA) in first
    assert server.asked[0].messages[-1]["content"].endswith("Judge this.")
    assert server.asked[0].structured == "prompted"


@EACH
async def test_a_refusal_is_a_failure_at_once(server: JudgeServer, provider: Any, name: str) -> None:
    """A blocked reply fails its question with the model's words, and is not re-asked."""
    if name == "ollama":
        pytest.skip("its API has no refusals")
    server.fail_next(fake.refusal("I will not judge this."))
    (answer,) = await converse(LLMJudge(provider), QUESTION)
    assert server.count == 1
    assert isinstance(answer, Failure)
    assert (answer.kind, "I will not judge this." in answer.message) == (FailureKind.REFUSED, True)


@pytest.mark.parametrize(("name", "body"), [(name, body) for name, wire in WIRES.items() for body in wire.no_reply])
async def test_a_body_that_is_no_reply_is_temporary(server: JudgeServer, provider: Any, name: str, body: str) -> None:
    """A page of a gateway with status 200, or a reply without a text, is retried."""
    del name
    server.fail_next(fake.bare(body))
    async with provider.connect() as connection:
        with pytest.raises(Temporary):
            await connection.send(REQUEST)


@EACH
async def test_own_fields_are_sent_with_every_request(server: JudgeServer, provider: Any, name: str) -> None:
    """The user's fields replace merilo's, or are merged into an object of it; the others stay."""
    own, stays = WIRES[name].own
    async with replace(provider, body=own).connect() as connection:
        await connection.send(REQUEST)
    body = server.asked[0].body
    for field, value in own.items():
        assert body[field] == ({**body[field], **value} if isinstance(value, dict) else value)
    assert stays in body


@pytest.mark.parametrize("name", [name for name, wire in WIRES.items() if not wire.seeded])
async def test_a_seed_that_the_api_lacks_is_reported_once(server: JudgeServer, provider: Any, name: str) -> None:
    """None is sent, which is recorded."""
    del name
    async with provider.connect() as connection:
        await connection.send(replace(REQUEST, seed=7))
        await connection.send(replace(REQUEST, seed=8))
        assert connection.adaptations() == {"seed": "dropped"}
        assert len(connection.notices()) == 1
    assert not any("seed" in json.dumps(asked.body) for asked in server.asked)


@pytest.mark.parametrize(
    ("make", "variable"),
    [
        (OpenAIProvider, "OPENAI_API_KEY"),
        (AnthropicProvider, "ANTHROPIC_API_KEY"),
        (BedrockProvider, "AWS_BEARER_TOKEN_BEDROCK"),
        (GoogleProvider, "GEMINI_API_KEY"),
    ],
)
async def test_the_own_endpoint_needs_a_key(
    make: Callable[..., Any], variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the variable, connecting to the provider's own host says which one to set; other endpoints do without."""
    for name in (variable, "GOOGLE_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    with pytest.raises(UsageError, match=f"environment variable {variable} has no key"):
        async with make("m").connect():
            pass
    async with make("m", base_url="http://localhost:1/v1").connect():
        pass
