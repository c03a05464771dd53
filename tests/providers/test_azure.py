"""Azure OpenAI, over a real local server that speaks as its documentation says."""

import asyncio
import json
from dataclasses import replace

import pytest
import server as fake
from conversing import converse
from each_case import each_case
from server import JudgeServer
from wire_requests import KEY, QUESTION

from merilo.errors import UsageError
from merilo.judges.llm import LLMJudge
from merilo.judging.verdicts import Failure, FailureKind
from merilo.providers.base import Message, ReplyPath, Request
from merilo.providers.openai import AzureProvider

REQUEST = Request(messages=(Message("system", "You judge."), Message("user", "Judge this.")), max_tokens=100)
DATED = "2024-10-21"


@pytest.fixture
def provider(server: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> AzureProvider:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    monkeypatch.delenv("AZURE_OPENAI_API_VERSION", raising=False)
    return AzureProvider("my deployment", base_url=server.root_url)


@pytest.mark.parametrize(
    ("version", "path"),
    [
        ("", "/openai/v1/chat/completions"),
        ("v1", "/openai/v1/chat/completions"),
        ("preview", "/openai/v1/chat/completions?api-version=preview"),
        (DATED, f"/openai/deployments/my%20deployment/chat/completions?api-version={DATED}"),
        ("2025-04-01-preview", "/openai/deployments/my%20deployment/chat/completions?api-version=2025-04-01-preview"),
    ],
)
async def test_the_version_decides_the_address(
    server: JudgeServer, provider: AzureProvider, version: str, path: str
) -> None:
    """A dated version has an address for each deployment; the newer one names the deployment as the model."""
    async with replace(provider, api_version=version).connect() as connection:
        await connection.send(REQUEST)
    assert server.paths == [path]
    assert server.asked[0].body["model"] == "my deployment"
    assert server.asked[0].body["max_completion_tokens"] == 100
    assert server.headers[0]["api-key"] == KEY
    assert "Authorization" not in server.headers[0]


async def test_an_older_version_learns_the_older_names(server: JudgeServer, provider: AzureProvider) -> None:
    """What an API version does not take yet is written otherwise, once."""
    server.refuse("max_completion_tokens", "json_schema")
    async with replace(provider, api_version=DATED).connect() as connection:
        request = replace(REQUEST, schema={"type": "object"}, schema_name="noncommittal")
        reply = await connection.send(request)
        assert connection.adaptations() == {"max_tokens": "max_tokens", "response_format": "json_mode"}
    assert reply.path is ReplyPath.JSON_MODE


@pytest.mark.parametrize("by", ["the prompt", "the reply"])
async def test_what_is_filtered_is_a_refusal(server: JudgeServer, provider: AzureProvider, by: str) -> None:
    """A content filter's refusal of the prompt or of the reply fails the question at once, with that reason."""
    told = {"error": {"message": "The response was filtered", "code": "content_filter", "param": "prompt"}}
    server.fail_next(fake.bare(json.dumps(told), 400) if by == "the prompt" else fake.filtered())
    (answer,) = await converse(LLMJudge(provider), QUESTION)
    assert server.count == 1
    assert isinstance(answer, Failure)
    assert answer.kind is FailureKind.REFUSED


async def test_a_token_is_a_bearer_that_may_change(server: JudgeServer, provider: AzureProvider) -> None:
    """A token of Entra ID comes from a callable, asked before each request; no key is sent beside it."""
    tokens = iter(["token-one-0123456789", "token-two-0123456789"])
    async with replace(provider, token=lambda: next(tokens)).connect() as connection:
        await connection.send(REQUEST)
        await connection.send(REQUEST)
    assert [headers["Authorization"] for headers in server.headers] == [
        "Bearer token-one-0123456789",
        "Bearer token-two-0123456789",
    ]
    assert not any("api-key" in headers for headers in server.headers)


@each_case(
    "given",
    [
        "https://name.openai.azure.com",
        "https://name.openai.azure.com/",
        "https://name.openai.azure.com/openai/v1/",
        "https://name.openai.azure.com/openai/v1/chat/completions",
        "https://name.openai.azure.com/openai/deployments/mine/chat/completions",
    ],
)
def test_the_endpoint_is_found_in_what_is_copied(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    """AZURE_OPENAI_ENDPOINT may be the resource's address or one that was copied with its path."""
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", given)
    assert AzureProvider("m").base_url == "https://name.openai.azure.com"


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an address, a usable version, or a key for Azure's own hosts, the error names the variable."""
    for name in ("AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_API_VERSION"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UsageError, match="set AZURE_OPENAI_ENDPOINT or --base-url"):
        AzureProvider("m")
    with pytest.raises(UsageError, match=r"AZURE_OPENAI_API_VERSION must be a date such as 2024-10-21.*got 'newest'"):
        AzureProvider("m", base_url="http://localhost:1", api_version="newest")

    async def opened(provider: AzureProvider) -> None:
        async with provider.connect():
            pass

    with pytest.raises(UsageError, match="environment variable AZURE_OPENAI_API_KEY has no key"):
        asyncio.run(opened(AzureProvider("m", base_url="https://name.openai.azure.com")))
    asyncio.run(opened(AzureProvider("m", base_url="https://name.openai.azure.com", token=lambda: "t")))


def test_the_fingerprint_holds_the_version(provider: AzureProvider) -> None:
    """Deployment, address and version, without the key."""
    assert provider.fingerprint() != replace(provider, api_version=DATED).fingerprint()
    assert KEY not in f"{provider!r} {provider.fingerprint()}"
