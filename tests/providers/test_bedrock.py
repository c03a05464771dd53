"""Amazon Bedrock's Converse API, over a real local server that answers as its documentation says."""

import json
from dataclasses import replace
from typing import Any

import pytest
import server as fake
from each_case import each_case
from server import JudgeServer
from wire_requests import KEY, REQUEST

from merilo.errors import Temporary, UsageError
from merilo.providers.base import Finish, ReplyPath, Usage
from merilo.providers.bedrock import BedrockProvider, converse_reply_of
from merilo.providers.problems import Received

MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AWS_BEARER_TOKEN_BEDROCK")


@pytest.fixture
def provider(server: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> BedrockProvider:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", KEY)
    return BedrockProvider(MODEL, base_url=server.root_url)


async def test_a_model_id_is_one_part_of_the_path(server: JudgeServer, provider: BedrockProvider) -> None:
    """The slash of an ARN is percent-encoded, so that the server finds the whole id in its place."""
    arn = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc"
    for model in (MODEL, arn):
        async with replace(provider, model=model).connect() as connection:
            await connection.send(REQUEST)
    assert server.paths[0] == f"/model/{MODEL}/converse"
    assert server.paths[1].endswith("inference-profile%2Fabc/converse")
    assert server.paths[1].count("/") == 3


async def test_an_expired_key_is_renewed_by_its_callable(server: JudgeServer, provider: BedrockProvider) -> None:
    """If a callable returns the key, an expired one is a temporary error: the next request has another key."""
    keys = iter([KEY, f"{KEY}-renewed"])
    server.fail_next(fake.bare('{"message": "expired"}', 403, x_amzn_ErrorType="ExpiredTokenException"))
    async with replace(provider, api_key=lambda: next(keys)).connect() as connection:
        with pytest.raises(Temporary, match="a new one is requested"):
            await connection.send(REQUEST)
        await connection.send(REQUEST)
    assert [headers["Authorization"] for headers in server.headers] == [f"Bearer {KEY}", f"Bearer {KEY}-renewed"]


def read(fields: dict[str, object]) -> Any:
    """The reply in a body."""
    return converse_reply_of(Received(fields, json.dumps(fields), ReplyPath.TEXT, str, "a"))


def stopped(reason: str, text: str = "so") -> dict[str, object]:
    """A body whose reply ended for this reason."""
    return {"output": {"message": {"role": "assistant", "content": [{"text": text}]}}, "stopReason": reason}


# stopReason: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html
@each_case(
    ("reason", "finish"),
    [
        ("end_turn", Finish.STOP),
        ("stop_sequence", Finish.STOP),
        ("tool_use", Finish.STOP),
        ("max_tokens", Finish.LENGTH),
        ("content_filtered", Finish.REFUSED),
        ("guardrail_intervened", Finish.REFUSED),
    ],
)
def test_documented_reasons_become_ours(reason: str, finish: Finish) -> None:
    """Why a model stopped is a whole reply, a truncated one or a refusal."""
    reply = read(stopped(reason))
    assert (reply.finish, reply.text) == (finish, "so")


@each_case(
    ("usage", "read_as"),
    [
        ({"inputTokens": 10, "outputTokens": 2, "totalTokens": 12}, Usage(10, 2)),
        (
            {"inputTokens": 10, "outputTokens": 2, "totalTokens": 112, "cacheReadInputTokens": 100},
            Usage(110, 2, cached_tokens=100),
        ),
        (
            {"inputTokens": 110, "outputTokens": 2, "totalTokens": 112, "cacheReadInputTokens": 100},
            Usage(110, 2, cached_tokens=100),
        ),
        ({}, Usage()),
    ],
)
def test_cached_tokens_are_part_of_the_input(usage: dict[str, object], read_as: Usage) -> None:
    """The input is counted whole, whether or not the server counts cached tokens separately."""
    assert read({**stopped("end_turn"), "usage": usage}).usage == read_as


@each_case(
    ("variables", "url"),
    [
        ({"AWS_REGION": "eu-central-1"}, "https://bedrock-runtime.eu-central-1.amazonaws.com"),
        ({"AWS_DEFAULT_REGION": "us-gov-west-1"}, "https://bedrock-runtime.us-gov-west-1.amazonaws.com"),
        (
            {"AWS_REGION": "us-west-2", "AWS_DEFAULT_REGION": "us-east-1"},
            "https://bedrock-runtime.us-west-2.amazonaws.com",
        ),
        ({"AWS_REGION": "cn-north-1"}, "https://bedrock-runtime.cn-north-1.amazonaws.com.cn"),
        ({"AWS_REGION": "eusc-de-east-1"}, "https://bedrock-runtime.eusc-de-east-1.amazonaws.eu"),
        ({"AWS_ENDPOINT_URL_BEDROCK_RUNTIME": "http://localhost:4000/"}, "http://localhost:4000"),
    ],
)
def test_the_address_comes_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], url: str
) -> None:
    """The region decides the address, unless a variable has one."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert BedrockProvider("m").base_url == url


def test_a_region_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a region there is no address; a region that could name another host is refused."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UsageError, match="needs a region such as us-east-1: set AWS_REGION"):
        BedrockProvider("m")
    monkeypatch.setenv("AWS_REGION", "us-east-1.evil.example/")
    with pytest.raises(UsageError, match="AWS_REGION must be a region"):
        BedrockProvider("m")
