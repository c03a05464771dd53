"""Google's `generateContent`, over a real local server that answers as its documentation says."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import server as fake
from conversing import converse
from each_case import each_case
from server import JudgeServer

from merilo.errors import Permanent, ProviderDown, ProviderError, RateLimited, Temporary, UsageError
from merilo.judges.llm import LLMJudge
from merilo.judging.kinds.relevance import Relevance, RelevanceVerdict
from merilo.judging.kinds.support import Support
from merilo.judging.questions import Pack
from merilo.judging.reply_parsing import schema_for
from merilo.judging.verdicts import Failure, FailureKind
from merilo.providers.base import Finish, Message, ReplyPath, Request, Usage
from merilo.providers.google import GOOGLE_URL, GoogleProvider, content_of
from merilo.providers.problems import Received

KEY = "key-for-tests-0123456789"
REQUEST = Request(
    messages=(Message("system", "You judge."), Message("user", "Judge this.")),
    schema=schema_for("noncommittal"),
    schema_name="noncommittal",
    max_tokens=100,
    temperature=0.0,
    seed=3,
)
QUESTION = Relevance("Who?", ("One.", "Two."))
GOOD = RelevanceVerdict(1, evidence=(0,), reason="As the test wants it.")


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer() as running:
        yield running


@pytest.fixture
def provider(server: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> GoogleProvider:
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    return GoogleProvider("gemini-2.5-flash", base_url=server.root_url)


async def test_a_request_becomes_content(server: JudgeServer, provider: GoogleProvider) -> None:
    """All parts are sent as the API wants them, with the key as a header; text, usage and model are read."""
    async with provider.connect() as connection:
        reply = await connection.send(REQUEST)
    assert server.paths == ["/v1beta/models/gemini-2.5-flash:generateContent"]
    categories = ("HARASSMENT", "HATE_SPEECH", "SEXUALLY_EXPLICIT", "DANGEROUS_CONTENT")
    assert server.asked[0].body == {
        "systemInstruction": {"parts": [{"text": "You judge."}]},
        "contents": [{"role": "user", "parts": [{"text": "Judge this."}]}],
        "generationConfig": {
            "temperature": 0.0,
            "seed": 3,
            "maxOutputTokens": 100,
            "responseMimeType": "application/json",
            "responseJsonSchema": schema_for("noncommittal"),
            "thinkingConfig": {"thinkingBudget": 0},
        },
        "safetySettings": [{"category": f"HARM_CATEGORY_{each}", "threshold": "OFF"} for each in categories],
    }
    assert server.headers[0]["x-goog-api-key"] == KEY
    assert "Authorization" not in server.headers[0]
    assert json.loads(reply.text)["noncommittal"] is False
    assert (reply.path, reply.model, reply.finish) == (ReplyPath.JSON_SCHEMA, "test-model", Finish.STOP)
    assert reply.reasoning == "I think."


async def test_every_kind_of_judgement_is_answered(server: JudgeServer, provider: GoogleProvider) -> None:
    """Single questions and packs use the JSON Schema; an unreadable reply is re-asked in the same conversation."""
    server.fail_next(fake.contradiction())
    assert await converse(LLMJudge(provider), QUESTION) == (GOOD,)
    assert [each["role"] for each in server.asked[1].body["contents"]] == ["user", "model", "user"]
    pack = Pack(tuple(Support(f"Statement {n}.", ("A.", "B.")) for n in range(3)))
    assert not any(isinstance(answer, Failure) for answer in await converse(LLMJudge(provider), pack))
    assert {asked.structured for asked in server.asked} == {"json_schema"}


async def test_free_text_without_a_system_message(server: JudgeServer, provider: GoogleProvider) -> None:
    """A request for free text has no format, no system instruction, and no parameter that is not set."""
    async with provider.connect() as connection:
        reply = await connection.send(Request(messages=(Message("user", "Hello."),)))
    body = server.asked[0].body
    assert body["contents"] == [{"role": "user", "parts": [{"text": "Hello."}]}]
    assert body["generationConfig"] == {"thinkingConfig": {"thinkingBudget": 0}}
    assert "systemInstruction" not in body
    assert reply.path is ReplyPath.TEXT


@pytest.mark.parametrize(
    ("refused", "adaptations"),
    [
        (("responseJsonSchema",), {"responseJsonSchema": "json_mode"}),
        (("responseJsonSchema", "responseMimeType"), {"responseJsonSchema": "prompted"}),
        (("safetySettings",), {"safetySettings": "dropped"}),
        (("thinkingConfig",), {"thinkingConfig": "dropped"}),
        (("seed",), {"seed": "dropped"}),
        (("temperature",), {"temperature": "dropped"}),
        (("system",), {"system": "folded into the user message"}),
    ],
)
async def test_rejected_parameters_are_omitted(
    server: JudgeServer, provider: GoogleProvider, refused: tuple[str, ...], adaptations: dict[str, str]
) -> None:
    """A rejected parameter is reported and sent no more; a later connection knows it from the start."""
    server.refuse(*refused)
    async with provider.connect() as connection:
        replies = await asyncio.gather(*(connection.send(REQUEST) for _ in range(5)))
        assert connection.adaptations() == adaptations
        assert len(connection.notices()) == len(set(connection.notices()))
    assert {json.loads(reply.text)["noncommittal"] for reply in replies} == {False}
    before = server.count
    async with provider.connect(known=adaptations) as connection:
        await connection.send(REQUEST)
        assert connection.notices() == ()
    assert server.count == before + 1
    assert server.asked[-1].user.endswith("Judge this.")


async def test_without_a_schema_the_prompt_contains_it(server: JudgeServer, provider: GoogleProvider) -> None:
    """JSON mode and the prompt alone have the schema in words, also if the system message is folded."""
    known = {"responseJsonSchema": "prompted", "system": "folded into the user message"}
    async with provider.connect(known=known) as connection:
        reply = await connection.send(REQUEST)
    assert reply.path is ReplyPath.PROMPTED
    (message,) = server.asked[0].messages
    assert message["content"].startswith("You judge.\n\nThe reply is one JSON object")
    assert message["content"].endswith("Judge this.")
    assert "responseMimeType" not in server.asked[0].body["generationConfig"]


async def test_a_schema_that_is_too_large_goes_into_the_prompt(server: JudgeServer, provider: GoogleProvider) -> None:
    """A schema that the API cannot serve is left out, although the message is about a size."""
    says = "The specified schema produces a constraint that has too many states for serving."
    server.fail_next(fake.bare(json.dumps({"error": {"code": 400, "message": says}}), 400))
    async with provider.connect() as connection:
        reply = await connection.send(REQUEST)
    assert reply.path is ReplyPath.JSON_MODE


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


def details(kind: str, **fields: object) -> dict[str, object]:
    """A detail of an error, as https://cloud.google.com/apis/design/errors has it."""
    return {"@type": f"type.googleapis.com/google.rpc.{kind}", **fields}


# https://ai.google.dev/gemini-api/docs/troubleshooting (statuses and reasons), google.rpc.ErrorInfo, RetryInfo and
# QuotaFailure; the messages as users report them.
@pytest.mark.parametrize(
    ("status", "code", "message", "detail", "error", "wait_s"),
    [
        (
            400,
            "INVALID_ARGUMENT",
            "API key not valid. Please pass a valid API key.",
            [details("ErrorInfo", reason="API_KEY_INVALID")],
            ProviderDown,
            None,
        ),
        (
            400,
            "INVALID_ARGUMENT",
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            [],
            Permanent,
            None,
        ),
        (400, "INVALID_ARGUMENT", "Request contains an invalid argument.", [], Permanent, None),
        (
            400,
            "FAILED_PRECONDITION",
            "User location is not supported for the API use.",
            [],
            ProviderDown,
            None,
        ),
        (403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers", [], ProviderDown, None),
        (
            404,
            "NOT_FOUND",
            "models/gemini-2.0-flash-thinking-exp is not found for API version v1beta, or is not supported.",
            [],
            ProviderDown,
            None,
        ),
        (
            429,
            "RESOURCE_EXHAUSTED",
            "You exceeded your current quota.",
            [
                details("QuotaFailure", violations=[{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel"}]),
                details("RetryInfo", retryDelay="34s"),
            ],
            RateLimited,
            34.0,
        ),
        (
            429,
            "RESOURCE_EXHAUSTED",
            "You exceeded your current quota.",
            [details("QuotaFailure", violations=[{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}])],
            ProviderDown,
            None,
        ),
        (500, "INTERNAL", "An internal error has occurred.", [], Temporary, None),
        (503, "UNAVAILABLE", "The model is overloaded. Please try again later.", [], Temporary, None),
        (504, "DEADLINE_EXCEEDED", "The service is unable to finish within the deadline.", [], Temporary, None),
    ],
)
async def test_documented_errors_become_ours(
    server: JudgeServer,
    provider: GoogleProvider,
    status: int,
    code: str,
    message: str,
    detail: list[object],
    error: type[ProviderError],
    wait_s: float | None,
) -> None:
    """Each documented error is retried, fails the question or ends the run, and drops no parameter."""
    body = {"error": {"code": status, "message": message, "status": code, "details": detail}}
    server.fail(fake.bare(json.dumps(body), status))
    async with provider.connect() as connection:
        with pytest.raises(ProviderError) as caught:
            await connection.send(REQUEST)
        assert connection.adaptations() == {}
    assert type(caught.value) is error
    assert caught.value.status == status
    assert getattr(caught.value, "retry_after_s", None) == wait_s


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


@pytest.mark.parametrize(
    "body",
    ["<html>hello</html>", "{}", json.dumps(candidate("MALFORMED_RESPONSE", "so")), json.dumps(candidate("STOP"))],
)
async def test_bodies_without_an_answer_are_retried(server: JudgeServer, provider: GoogleProvider, body: str) -> None:
    """A page of a gateway, a malformed response and an empty verdict are temporary errors."""
    server.fail_next(fake.bare(body))
    async with provider.connect() as connection:
        with pytest.raises(Temporary):
            await connection.send(REQUEST)


async def test_a_refusal_is_a_failure_at_once(server: JudgeServer, provider: GoogleProvider) -> None:
    """A blocked reply fails its question with the reason, and is not re-asked."""
    server.fail_next(fake.refusal("I will not judge this."))
    (answer,) = await converse(LLMJudge(provider), QUESTION)
    assert server.count == 1
    assert isinstance(answer, Failure)
    assert (answer.kind, "I will not judge this." in answer.message) == (FailureKind.REFUSED, True)


async def test_own_fields_are_merged(server: JudgeServer, provider: GoogleProvider) -> None:
    """One setting of the user's does not remove the schema; other fields replace merilo's."""
    own = replace(provider, body={"generationConfig": {"topK": 3}, "safetySettings": []})
    async with own.connect() as connection:
        await connection.send(REQUEST)
    body = server.asked[0].body
    assert body["generationConfig"]["topK"] == 3
    assert "responseJsonSchema" in body["generationConfig"]
    assert body["safetySettings"] == []


def test_the_address_and_the_key_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two variables may hold the key; Google's own endpoint needs one. An address may have its path."""
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    provider = GoogleProvider("m")
    assert (provider.base_url, provider.api_key_env) == (GOOGLE_URL, "GEMINI_API_KEY")

    async def opened() -> None:
        async with provider.connect():
            pass

    with pytest.raises(UsageError, match="environment variable GEMINI_API_KEY has no key"):
        asyncio.run(opened())
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


async def test_a_key_is_never_shown(server: JudgeServer, provider: GoogleProvider) -> None:
    """The key is in no address, message, adaptation or repr, even if the server repeats it."""
    error = {"error": {"code": 400, "message": f"thinking {KEY}", "status": "INVALID_ARGUMENT"}}
    server.fail_next(*[fake.bare(json.dumps(error), 400)] * 2)
    async with provider.connect() as connection:
        await connection.send(REQUEST)
        server.fail_next(fake.bare(json.dumps(error), 500))
        with pytest.raises(Temporary) as caught:
            await connection.send(REQUEST)
        shown = [str(caught.value), repr(provider), *connection.adaptations().values(), *connection.notices()]
    assert connection.notices()
    assert not any(KEY in text for text in (*shown, *server.paths, json.dumps(provider.fingerprint())))
