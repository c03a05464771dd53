"""Google's `generateContent`, over a real local server that answers as its documentation says."""

import json
from dataclasses import replace
from typing import Any

import pytest
from each_case import each_case
from server import JudgeServer
from wire_requests import KEY, REQUEST

from merilo.errors import Permanent, UsageError
from merilo.providers.base import Finish, ReplyPath, Usage
from merilo.providers.google import GOOGLE_URL, GoogleProvider, content_of
from merilo.providers.problems import Received


@pytest.fixture
def provider(server: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> GoogleProvider:
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    return GoogleProvider("gemini-2.5-flash", base_url=server.root_url)


@pytest.mark.parametrize(
    ("model", "tried"),
    [
        ("gemini-2.5-pro", [{"thinkingBudget": 0}, {"thinkingBudget": 128}, None]),
        ("gemini-3.1-pro-preview", [{"thinkingLevel": "minimal"}, {"thinkingLevel": "low"}, None]),
        ("gemma-3-27b-it", [{"thinkingBudget": 0}, {"thinkingLevel": "minimal"}, {"thinkingLevel": "low"}, None]),
    ],
)
async def test_models_think_as_little_as_they_can(
    server: JudgeServer, provider: GoogleProvider, model: str, tried: list[object]
) -> None:
    """Budgets or levels are tried by the model's generation, then none; a resumed run starts at the accepted one."""
    server.refuse("thinkingConfig")
    async with replace(provider, model=model).connect() as connection:
        await connection.send(REQUEST)
    assert [asked.body["generationConfig"].get("thinkingConfig") for asked in server.asked] == tried
    server.behave()
    last = tried[-2]
    assert isinstance(last, dict)
    known = {"thinkingConfig": " ".join(map(str, *last.items()))}
    async with replace(provider, model=model).connect(known=known) as connection:
        await connection.send(REQUEST)
    assert server.asked[-1].body["generationConfig"]["thinkingConfig"] == last


async def test_chosen_thinking_is_not_changed(server: JudgeServer, provider: GoogleProvider) -> None:
    """The user's own choice is part of the fingerprint; if the model refuses it, the request fails."""
    server.refuse("thinkingConfig")
    chosen = replace(provider, thinking="high")
    async with chosen.connect() as connection:
        with pytest.raises(Permanent, match="only works in thinking mode"):
            await connection.send(REQUEST)
    assert server.asked[0].body["generationConfig"]["thinkingConfig"] == {"thinkingLevel": "high"}
    assert chosen.fingerprint() != provider.fingerprint()
    assert "thinking" not in provider.fingerprint()
    with pytest.raises(UsageError, match="thinking must be"):
        replace(provider, thinking=-2)


def read(fields: dict[str, object], path: ReplyPath = ReplyPath.TEXT) -> Any:
    """The reply in a body."""
    return content_of(Received(fields, json.dumps(fields), path, str, "a"))


def candidate(reason: str | None, text: str | None = None) -> dict[str, object]:
    """A body with one candidate; without a text its content has no parts, as for a thinking model that is cut."""
    content: dict[str, object] = {"role": "model"}
    if text is not None:
        content["parts"] = [{"text": text}]
    return {"candidates": [{"content": content, "finishReason": reason}]}


# FinishReason and BlockedReason: google-genai 3.4, types.py; https://ai.google.dev/api/generate-content
@each_case(
    ("fields", "finish", "text"),
    [
        (candidate("STOP", "so"), Finish.STOP, "so"),
        (candidate("STOP"), Finish.STOP, ""),
        (candidate(None, "so"), Finish.STOP, "so"),
        (candidate("MAX_TOKENS", "so"), Finish.LENGTH, "so"),
        (candidate("MAX_TOKENS"), Finish.LENGTH, ""),
        (candidate("SAFETY", "so"), Finish.REFUSED, "The reply was blocked: SAFETY"),
        (candidate("RECITATION"), Finish.REFUSED, "The reply was blocked: RECITATION"),
        (candidate("OTHER", "so"), Finish.STOP, "so"),
        (candidate("OTHER"), Finish.REFUSED, "The reply was blocked: OTHER"),
        ({"candidates": [{"finishReason": "SPII", "finishMessage": "Why."}]}, Finish.REFUSED, "Why."),
        ({"promptFeedback": {"blockReason": "JAILBREAK"}}, Finish.REFUSED, "The prompt was blocked: JAILBREAK"),
    ],
)
def test_documented_reasons_become_ours(fields: dict[str, object], finish: Finish, text: str) -> None:
    """Missing content, missing parts and blocked prompts are read; a filtered text is a refusal."""
    reply = read(fields)
    assert (reply.finish, reply.text) == (finish, text)


def test_thoughts_are_billed_but_are_not_the_answer() -> None:
    """Thoughts are left out of the text and added to the output tokens; cached tokens are part of the input."""
    parts = [{"text": "hm", "thought": True}, {"text": "x"}, {"inlineData": {}}, {"text": "y"}]
    fields: dict[str, object] = {
        "candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}],
        "usageMetadata": {
            "promptTokenCount": 10,
            "cachedContentTokenCount": 4,
            "candidatesTokenCount": 3,
            "thoughtsTokenCount": 5,
            "totalTokenCount": 18,
        },
    }
    reply = read(fields)
    assert (reply.text, reply.reasoning, reply.usage) == ("xy", "hm", Usage(10, 8, cached_tokens=4))
    assert read(candidate("STOP", "so")).usage == Usage()


def test_the_address_and_the_key_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two variables may hold the key. An address may have its path."""
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    provider = GoogleProvider("m")
    assert (provider.base_url, provider.api_key_env) == (GOOGLE_URL, "GEMINI_API_KEY")
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)
    assert GoogleProvider("m").api_key_env == "GOOGLE_API_KEY"
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    assert GoogleProvider("m").api_key_env == "GEMINI_API_KEY"
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "http://localhost:4000/v1beta/openai/")
    assert GoogleProvider("m").base_url == "http://localhost:4000"


def test_only_the_own_endpoint_has_a_price(provider: GoogleProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list price is that of Google's address; a long prompt of a Pro model costs more."""
    monkeypatch.delenv("GOOGLE_GEMINI_BASE_URL", raising=False)
    assert provider.price_usd(Usage(1_000_000, 0)) is None
    assert GoogleProvider("gemini-2.5-flash").price_usd(Usage(100_000, 10_000)) == pytest.approx(0.055)
    assert GoogleProvider("gemini-2.5-pro").price_usd(Usage(1_000_000, 0)) == pytest.approx(2.5)
