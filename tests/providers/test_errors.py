"""What the providers document as errors, and which of ours each becomes; the page stands beside each group.

The statuses, codes and headers are those of the pages. Messages are shortened to what the pages quote.
"""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest
import server as fake
from each_case import each_case
from server import JudgeServer

from merilo.errors import Permanent, ProviderDown, ProviderError, RateLimited, Refused, Temporary
from merilo.providers.anthropic import AnthropicProvider
from merilo.providers.base import Finish, Message, Provider, Request
from merilo.providers.bedrock import BedrockProvider
from merilo.providers.google import GoogleProvider
from merilo.providers.ollama import OllamaProvider
from merilo.providers.openai import AzureProvider, OpenAIProvider

REQUEST = Request(messages=(Message("system", "You judge."), Message("user", "Judge this.")), max_tokens=10)


class Case(NamedTuple):
    """An answer, and the error that comes of it; `wait_s`: what the endpoint asks to wait."""

    name: str
    status: int
    body: object
    error: type[ProviderError]
    headers: dict[str, str] = {}  # noqa: RUF012  read only
    wait_s: float | None = None
    words: str = ""
    """What the message says, a pattern."""


def openai(message: str, kind: str | None = None, code: str | None = None, param: str | None = None) -> object:
    """A body of OpenAI's: an error with message, type, param and code."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


# OpenAI, "Error codes", https://platform.openai.com/docs/guides/error-codes (its table of API errors and its section on
# the Python library's types): statuses 401, 403, 429, 500, 503, and 400, 404, 409, 422 of the types. "Rate limits",
# https://platform.openai.com/docs/guides/rate-limits: rate_limit_exceeded. The codes of quotas that were spent stand
# on the first page: "retrying billing, spend, or quota errors will not restore API access".
QUOTA = "You exceeded your current quota, please check your plan and billing details."
OPENAI = [
    Case(
        "bad request", 400, openai("Invalid type for 'messages'.", "invalid_request_error", param="messages"), Permanent
    ),
    Case(
        "too long", 400, openai("maximum context length", "invalid_request_error", "context_length_exceeded"), Permanent
    ),
    Case("policy", 400, openai("rejected by the safety system", None, "content_policy_violation"), Refused),
    Case("wrong key", 401, openai("Incorrect API key provided: sk-a***z.", None, "invalid_api_key"), ProviderDown),
    Case("no member", 401, openai("You must be a member of an organization to use the API"), ProviderDown),
    Case("IP", 401, openai("IP not authorized"), ProviderDown),
    Case("country", 403, openai("Country, region, or territory not supported"), ProviderDown),
    Case("no such model", 404, openai("The model `m` does not exist", None, "model_not_found"), ProviderDown),
    Case("conflict", 409, openai("The resource was updated by another request"), Temporary),
    Case("body too large", 413, openai("Request too large"), Permanent),
    Case("cannot process", 422, openai("Unable to process the request"), Permanent),
    Case("rate", 429, openai("Rate limit reached for requests", "requests", "rate_limit_exceeded"), RateLimited),
    Case("rate, seconds", 429, openai("slow", "tokens", "rate_limit_exceeded"), RateLimited, {"retry-after": "7"}, 7.0),
    Case("rate, ms", 429, openai("slow", "tokens"), RateLimited, {"retry-after-ms": "250", "retry-after": "1"}, 0.25),
    Case("slow down", 429, openai("Slow down", "rate_limit_error", "slow_down"), RateLimited),
    Case("quota", 429, openai(QUOTA, "insufficient_quota", "insufficient_quota"), ProviderDown),
    Case("credit", 429, openai(QUOTA, "insufficient_quota", "credit_balance_exhausted"), ProviderDown),
    Case("spent", 429, openai(QUOTA, "insufficient_quota", "organization_spend_limit_exceeded"), ProviderDown),
    Case("spent here", 429, openai(QUOTA, "insufficient_quota", "project_spend_limit_exceeded"), ProviderDown),
    Case("used up", 429, openai(QUOTA, "insufficient_quota", "organization_usage_limit_exceeded"), ProviderDown),
    Case("only the type", 429, openai(QUOTA, "insufficient_quota"), ProviderDown, {"retry-after": "1"}),
    Case(
        "server error", 500, openai("The server had an error while processing your request", "server_error"), Temporary
    ),
    Case("bad gateway", 502, "<html>502 Bad Gateway</html>", Temporary),
    Case("overloaded", 503, openai("overloaded", "service_unavailable_error", "server_is_overloaded"), Temporary),
    Case("overloaded, when", 503, openai("overloaded"), RateLimited, {"retry-after": "2"}, 2.0),
    Case("gateway timeout", 504, "upstream request timeout", Temporary),
]


def anthropic(kind: str, message: str, **details: str) -> object:
    """A body of Anthropic's: an error with type and message, and the id of the request."""
    error = {"type": kind, "message": message} | ({"details": details} if details else {})
    return {"type": "error", "error": error, "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy"}


# Anthropic, "Errors", https://platform.claude.com/docs/en/api/errors (sections "HTTP errors", "Error shapes"): a type
# for each status. "Rate limits", https://platform.claude.com/docs/en/api/rate-limits (sections "Spend limits" and
# "Setting your own spend limit"): a 429 without retry-after whose details.error_code is enforced_spend_limit_reached
# will not pass, and neither will a 400 that begins "You have reached your specified API usage limits".
OWN_LIMIT = "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."
TIER = "You have reached your API usage limits: your organization has crossed its monthly API usage threshold."
ANTHROPIC = [
    Case("bad request", 400, anthropic("invalid_request_error", "messages: at least one message is needed"), Permanent),
    Case("too long", 400, anthropic("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"), Permanent),
    Case("own limit", 400, anthropic("invalid_request_error", OWN_LIMIT), ProviderDown),
    Case("workspace", 400, anthropic("invalid_request_error", OWN_LIMIT.replace("API", "workspace API")), ProviderDown),
    Case(
        "no credit", 400, anthropic("invalid_request_error", "Your credit balance is too low to go on."), ProviderDown
    ),
    Case("wrong key", 401, anthropic("authentication_error", "invalid x-api-key"), ProviderDown),
    Case("billing", 402, anthropic("billing_error", "There is an issue with your payment details"), ProviderDown),
    Case("not allowed", 403, anthropic("permission_error", "no permission for the resource"), ProviderDown),
    Case("no such model", 404, anthropic("not_found_error", "model: claude-none"), ProviderDown),
    Case("conflict", 409, anthropic("conflict_error", "modified concurrently"), Temporary),
    Case("too large", 413, anthropic("request_too_large", "Request exceeds the maximum size"), Permanent),
    Case("rate", 429, anthropic("rate_limit_error", "limit reached"), RateLimited, {"retry-after": "12"}, 12.0),
    Case("rate, unsaid", 429, anthropic("rate_limit_error", "limit reached"), RateLimited),
    Case("tier", 429, anthropic("rate_limit_error", TIER, error_code="enforced_spend_limit_reached"), ProviderDown),
    Case("tier, unsaid", 429, anthropic("rate_limit_error", TIER), ProviderDown),
    Case("internal", 500, anthropic("api_error", "Internal server error"), Temporary),
    Case("timeout", 504, anthropic("timeout_error", "Request timeout"), Temporary),
    Case("overloaded", 529, anthropic("overloaded_error", "Overloaded"), Temporary),
    Case("overloaded, when", 529, anthropic("overloaded_error", "Overloaded"), RateLimited, {"retry-after": "5"}, 5.0),
]

# Azure OpenAI, "Troubleshoot errors", https://learn.microsoft.com/azure/foundry/openai/how-to/troubleshoot-errors (its
# error reference: 400, 401, 403, 404, 429 with retry-after-ms, 500, 503). "Content filtering",
# https://learn.microsoft.com/azure/ai-services/openai/concepts/content-filter: a filtered prompt is a 400 with the code
# content_filter and an innererror ResponsibleAIPolicyViolation. "Quota", .../openai/how-to/quota: 429 and its causes.
# A gateway in front (API Management) gives statusCode and message without an error around them.
FILTERED = {
    "error": {
        "message": "The response was filtered",
        "type": None,
        "param": "prompt",
        "code": "content_filter",
        "status": 400,
        "innererror": {
            "code": "ResponsibleAIPolicyViolation",
            "content_filter_result": {"violence": {"filtered": True, "severity": "medium"}},
        },
    }
}
INNER = {"error": {"message": "filtered", "innererror": {"code": "ResponsibleAIPolicyViolation"}}}
NO_KEY = "Access denied due to invalid subscription key or wrong API endpoint."
NO_DEPLOYMENT = "The API deployment for this resource does not exist."
LIMITED = (
    "Requests to the ChatCompletions_Create Operation have exceeded token rate limit. Please retry after 3 seconds."
)
AZURE = [
    Case("bad request", 400, openai("Unrecognized request argument supplied: foo"), Permanent),
    Case("filtered", 400, FILTERED, Refused),
    Case("filtered, inside", 400, INNER, Refused),
    Case("wrong key", 401, openai(NO_KEY, None, "401"), ProviderDown),
    Case(
        "token", 401, {"statusCode": 401, "message": "Unauthorized. Access token is missing or invalid."}, ProviderDown
    ),
    Case("network", 403, openai("Access denied due to Virtual Network/Firewall rules.", None, "403"), ProviderDown),
    Case("blocked", 403, openai("The resource has been temporarily blocked."), ProviderDown),
    Case("no deployment", 404, openai(NO_DEPLOYMENT, None, "DeploymentNotFound"), ProviderDown),
    Case("no version", 404, openai("Resource not found", None, "404"), ProviderDown),
    Case("timeout", 408, openai("The operation was timeout.", None, "Timeout"), Temporary),
    Case("rate", 429, openai(LIMITED, None, "429"), RateLimited, {"retry-after-ms": "2500", "retry-after": "3"}, 2.5),
    Case(
        "gateway",
        429,
        {"statusCode": 429, "message": "Rate limit is exceeded."},
        RateLimited,
        {"Retry-After": "40"},
        40.0,
    ),
    Case("capacity", 429, openai("System is experiencing high demand", None, "too_many_requests"), RateLimited),
    Case(
        "internal",
        500,
        openai("The server had an error processing your request.", None, "InternalServerError"),
        Temporary,
    ),
    Case("unavailable", 503, openai("The service is temporarily unable to process your request."), Temporary),
]


# Google, "Gemini API troubleshooting", https://ai.google.dev/gemini-api/docs/troubleshooting, and google.rpc.ErrorInfo,
# RetryInfo and QuotaFailure of https://cloud.google.com/apis/design/errors. The endpoint that is compatible with OpenAI
# wraps them in a list.
# llama.cpp, tools/server/README.md: exceed_context_size_error with n_prompt_tokens and n_ctx; also with status 500.
def google(code: int, message: str, status: str, *details: object) -> list[object]:
    """A body of Google's: an error with code, message, status and details, in a list."""
    return [{"error": {"code": code, "message": message, "status": status, "details": list(details)}}]


def overlong(status: int) -> object:
    """A body of llama.cpp about a prompt that is too long."""
    error = {"code": status, "message": "the request exceeds the available context size"}
    return {"error": {**error, "type": "exceed_context_size_error", "n_prompt_tokens": 9_000, "n_ctx": 4_096}}


INFO = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}
PER_DAY = {
    "@type": "type.googleapis.com/google.rpc.QuotaFailure",
    "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}],
}
PER_MINUTE = {
    "@type": "type.googleapis.com/google.rpc.QuotaFailure",
    "violations": [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel"}],
}
COMPATIBLE = [
    Case("wrong key", 400, google(400, "API key not valid.", "INVALID_ARGUMENT", INFO), ProviderDown),
    Case("bad request", 400, google(400, "Invalid value.", "INVALID_ARGUMENT"), Permanent),
    Case("rate", 429, google(429, "Quota exceeded.", "RESOURCE_EXHAUSTED", PER_MINUTE, RETRY), RateLimited, {}, 34.0),
    Case("daily quota", 429, google(429, "Quota exceeded.", "RESOURCE_EXHAUSTED", PER_DAY, RETRY), ProviderDown),
    Case("unavailable", 503, google(503, "The model is overloaded.", "UNAVAILABLE"), Temporary),
    Case("too long", 400, overlong(400), Permanent),
    Case("too long", 500, overlong(500), Permanent),
]

ILLEGAL = "INVALID_ARGUMENT"
OVER = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
EXHAUSTED = "RESOURCE_EXHAUSTED"
NATIVE = [
    Case("wrong key", 400, google(400, "API key not valid.", ILLEGAL, INFO)[0], ProviderDown),
    Case("too long", 400, google(400, OVER, ILLEGAL)[0], Permanent),
    Case("bad request", 400, google(400, "Request contains an invalid argument.", ILLEGAL)[0], Permanent),
    Case("country", 400, google(400, "Location is not supported.", "FAILED_PRECONDITION")[0], ProviderDown),
    Case("no key", 403, google(403, "Method doesn't allow unregistered callers", "PERMISSION_DENIED")[0], ProviderDown),
    Case("no model", 404, google(404, "models/m is not found for API version v1beta", "NOT_FOUND")[0], ProviderDown),
    Case("rate", 429, google(429, "Quota exceeded.", EXHAUSTED, PER_MINUTE, RETRY)[0], RateLimited, {}, 34.0),
    Case("daily quota", 429, google(429, "Quota exceeded.", EXHAUSTED, PER_DAY)[0], ProviderDown),
    Case("internal", 500, google(500, "An internal error has occurred.", "INTERNAL")[0], Temporary),
    Case("unavailable", 503, google(503, "The model is overloaded.", "UNAVAILABLE")[0], Temporary),
    Case("deadline", 504, google(504, "The service is unable to finish.", "DEADLINE_EXCEEDED")[0], Temporary),
]


# https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html (section "Errors"),
# https://docs.aws.amazon.com/bedrock/latest/userguide/troubleshooting-api-error-codes.html; the messages as users
# report them.
def bedrock(status: int, kind: str, message: str, error: type[ProviderError], words: str, key: str = "message") -> Case:
    """A case of Bedrock's, whose type of error is in a header."""
    return Case(message, status, {key: message}, error, {"x-amzn-ErrorType": kind}, words=words)


VALIDATION = "ValidationException"
DENIED = "AccessDeniedException"
THROTTLED = "ThrottlingException"
ON_DEMAND = "Invocation of model ID m with on-demand throughput isn\u2019t supported."
NO_KEY_HERE = "Authentication failed: Please make sure your API Key is valid."
EXPIRED = "The security token included in the request is expired"
PER_DAY_TOKENS = "Too many tokens per day, please wait before trying again."
BEDROCK = [
    bedrock(400, VALIDATION, "Input is too long for requested model.", Permanent, "too long"),
    bedrock(400, VALIDATION, "The system encountered an unexpected error.", Permanent, "unexpected"),
    bedrock(400, VALIDATION, "The provided model identifier is invalid.", ProviderDown, "Check the region"),
    bedrock(400, VALIDATION, ON_DEMAND, ProviderDown, "most models need an inference profile"),
    bedrock(400, "ServiceQuotaExceededException", "Your request exceeds the quota.", RateLimited, "quota"),
    bedrock(400, DENIED, "You lack access.", ProviderDown, "check the variable AWS_BEARER"),
    bedrock(403, DENIED, NO_KEY_HERE, ProviderDown, "403: Authen.*a key is valid in one region", "Message"),
    bedrock(403, "ExpiredTokenException:http://internal.amazon.com/coral/", EXPIRED, ProviderDown, "Create a new one"),
    bedrock(403, "", "Bearer Token has expired", ProviderDown, "the key has expired", "Message"),
    bedrock(404, "ResourceNotFoundException", "Model use case details missing.", ProviderDown, "use case"),
    bedrock(408, "ModelTimeoutException", "The model took too long.", Temporary, "too long"),
    bedrock(424, "ModelErrorException", "The model failed.", Temporary, "failed"),
    bedrock(429, THROTTLED, "Too many requests, please wait.", RateLimited, "please wait"),
    bedrock(429, THROTTLED, PER_DAY_TOKENS, ProviderDown, "daily quota"),
    bedrock(429, "ModelNotReadyException", "The model is not ready.", RateLimited, "not ready"),
    bedrock(500, "InternalServerException", "An internal error.", Temporary, "internal"),
    bedrock(503, "ServiceUnavailableException", "Bedrock is unable.", Temporary, "unable"),
]


# Ollama: server/routes.go and server/sched.go (missing model, full queue), llm/server.go and runner/ollamarunner
# (prompt over the context length; 400, before 0.12 also 500, 413 on a newer server), docs/api/errors.mdx (429, 502).
def ollama(status: int, error: type[ProviderError], words: str, message: object) -> Case:
    """A case of Ollama's."""
    return Case(words, status, message if isinstance(message, dict) else {"error": message}, error, words=words)


OVER_CONTEXT = "the input length exceeds the context length"
BUSY = "server busy, please try again.  maximum pending requests exceeded"
OLLAMA = [
    ollama(400, Permanent, "OLLAMA_CONTEXT_LENGTH=32768", OVER_CONTEXT),
    ollama(413, Permanent, "exceeds 16,384 tokens", OVER_CONTEXT),
    ollama(500, Permanent, "exceeds 16,384 tokens", OVER_CONTEXT),
    ollama(400, Permanent, "9000 tokens", overlong(400)),
    ollama(400, Permanent, "invalid options", "invalid options: temperature"),
    ollama(401, ProviderDown, "check the variable OLLAMA_API_KEY", "unauthorized"),
    ollama(404, ProviderDown, "ollama pull test-model", "model 'test-model' not found"),
    Case("no API", 404, "404 page not found", ProviderDown, words="Check that an Ollama server runs on 127.0.0.1"),
    ollama(429, RateLimited, "too many requests", "too many requests"),
    ollama(500, Temporary, "terminated", "llama runner process has terminated: exit status 2"),
    ollama(502, Temporary, "upstream", "upstream error"),
    ollama(503, Temporary, "maximum pending requests", BUSY),
]

CASES = [
    *(("google", case) for case in NATIVE),
    *(("bedrock", case) for case in BEDROCK),
    *(("ollama", case) for case in OLLAMA),
    *(("openai", case) for case in COMPATIBLE),
    *(("openai", case) for case in OPENAI),
    *(("anthropic", case) for case in ANTHROPIC),
    *(("azure", case) for case in AZURE),
]


@pytest.fixture(scope="module")
def server() -> Iterator[JudgeServer]:
    with JudgeServer() as running:
        yield running


def provider_of(kind: str, server: JudgeServer) -> Provider:
    """A provider of the kind at the server."""
    at_root = {"google": GoogleProvider, "bedrock": BedrockProvider, "ollama": OllamaProvider}
    if kind in at_root:
        provider: Provider = at_root[kind]("test-model", base_url=server.root_url)
        return provider
    if kind == "anthropic":
        return AnthropicProvider("claude", base_url=server.root_url)
    if kind == "azure":
        return AzureProvider("my-deployment", base_url=server.root_url, api_version="2024-10-21")
    return OpenAIProvider("m", base_url=server.base_url)


@each_case(("kind", "case"), CASES)
async def test_documented_errors_become_ours(server: JudgeServer, kind: str, case: Case) -> None:
    """Each documented error is asked again, given up or ends the run, as its page says, with the wait it asks for."""
    body = case.body if isinstance(case.body, str) else json.dumps(case.body)
    server.behave()
    server.fail(fake.bare(body, case.status, **{name.replace("-", "_"): text for name, text in case.headers.items()}))
    async with provider_of(kind, server).connect() as connection:
        with pytest.raises(ProviderError) as caught:
            await connection.send(REQUEST)
        assert connection.adaptations().keys() <= {"digest", "num_ctx"}  # those of Ollama's model
    assert re.search(case.words, str(caught.value))
    assert type(caught.value) is case.error
    assert caught.value.status == case.status
    assert getattr(caught.value, "retry_after_s", None) == case.wait_s
    assert str(caught.value).startswith(provider_of(kind, server).fingerprint()["base_url"])  # type: ignore[arg-type]  # text


# OpenAI and Azure, "Chat completions", finish_reason: length, content_filter. Anthropic, "Stop reasons and fallback",
# https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons.
@each_case(
    ("kind", "reason", "finish"),
    [
        ("openai", "stop", Finish.STOP),
        ("openai", "length", Finish.LENGTH),
        ("azure", "content_filter", Finish.REFUSED),
        ("anthropic", "end_turn", Finish.STOP),
        ("anthropic", "stop_sequence", Finish.STOP),
        ("anthropic", "tool_use", Finish.STOP),
        ("anthropic", "pause_turn", Finish.STOP),
        ("anthropic", "max_tokens", Finish.LENGTH),
        ("anthropic", "model_context_window_exceeded", Finish.LENGTH),
        ("anthropic", "refusal", Finish.REFUSED),
    ],
)
async def test_documented_ends_become_ours(server: JudgeServer, kind: str, reason: str, finish: Finish) -> None:
    """Why a model stopped is a whole reply, a cut one or a refusal."""
    chat = {"choices": [{"message": {"content": "so"}, "finish_reason": reason}]}
    message = {"type": "message", "content": [{"type": "text", "text": "so"}], "stop_reason": reason}
    server.behave()
    server.fail_next(fake.bare(json.dumps(message if kind == "anthropic" else chat)))
    async with provider_of(kind, server).connect() as connection:
        reply = await connection.send(REQUEST)
    assert (reply.finish, reply.text) == (finish, "so")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("openai", ["check the variable OPENAI_API_KEY", "model name 'm'"]),
        ("anthropic", ["check the variable ANTHROPIC_API_KEY", "model name 'claude'"]),
        (
            "azure",
            ["check the variable AZURE_OPENAI_API_KEY", "deployment 'my-deployment' and the API version 2024-10-21"],
        ),
    ],
)
async def test_an_error_that_ends_a_run_says_what_to_check(server: JudgeServer, kind: str, words: list[str]) -> None:
    """A refused key names its variable, an unknown model or deployment its name."""
    server.behave()
    server.fail_next(fake.status(401), fake.status(404))
    async with provider_of(kind, server).connect() as connection:
        for expected in words:
            with pytest.raises(ProviderDown, match=expected):
                await connection.send(REQUEST)
