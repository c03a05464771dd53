"""Amazon Bedrock's Converse API, over a real local server that answers as its documentation says."""

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
from merilo.providers.bedrock import BedrockProvider, converse_reply_of
from merilo.providers.problems import Received

KEY = "bedrock-api-key-for-tests-0123456789"
MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
REQUEST = Request(
    messages=(Message("system", "You judge."), Message("user", "Judge this.")),
    schema=schema_for("noncommittal"),
    schema_name="noncommittal",
    max_tokens=100,
    temperature=0.0,
)
QUESTION = Relevance("Who?", ("One.", "Two."))
GOOD = RelevanceVerdict(1, evidence=(0,), reason="As the test wants it.")
VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AWS_BEARER_TOKEN_BEDROCK")


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer() as running:
        yield running


@pytest.fixture
def provider(server: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> BedrockProvider:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", KEY)
    return BedrockProvider(MODEL, base_url=server.root_url)


async def test_a_request_becomes_a_conversation(server: JudgeServer, provider: BedrockProvider) -> None:
    """All parts are sent as the API wants them, the schema as a text; text and usage are read, reasoning is not."""
    async with provider.connect() as connection:
        reply = await connection.send(REQUEST)
    body = dict(server.asked[0].body)
    schema = body.pop("outputConfig")["textFormat"]["structure"]["jsonSchema"]
    assert body == {
        "system": [{"text": "You judge."}],
        "messages": [{"role": "user", "content": [{"text": "Judge this."}]}],
        "inferenceConfig": {"maxTokens": 100, "temperature": 0.0},
    }
    assert (schema["name"], json.loads(schema["schema"])) == ("noncommittal", schema_for("noncommittal"))
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert json.loads(reply.text)["noncommittal"] is False
    assert (reply.path, reply.finish, reply.reasoning) == (ReplyPath.JSON_SCHEMA, Finish.STOP, "I think.")
    assert reply.usage.input_tokens
    assert reply.usage.output_tokens


async def test_a_model_id_is_one_part_of_the_path(server: JudgeServer, provider: BedrockProvider) -> None:
    """The slash of an ARN is percent-encoded, so that the server finds the whole id in its place."""
    arn = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc"
    for model in (MODEL, arn):
        async with replace(provider, model=model).connect() as connection:
            await connection.send(REQUEST)
    assert server.paths[0] == f"/model/{MODEL}/converse"
    assert server.paths[1].endswith("inference-profile%2Fabc/converse")
    assert server.paths[1].count("/") == 3


async def test_every_kind_of_judgement_is_answered(server: JudgeServer, provider: BedrockProvider) -> None:
    """Single questions and packs use the JSON Schema; an unreadable reply is re-asked in the same conversation."""
    server.fail_next(fake.contradiction())
    assert await converse(LLMJudge(provider), QUESTION) == (GOOD,)
    assert [each["role"] for each in server.asked[1].body["messages"]] == ["user", "assistant", "user"]
    pack = Pack(tuple(Support(f"Statement {n}.", ("A.", "B.")) for n in range(3)))
    assert not any(isinstance(answer, Failure) for answer in await converse(LLMJudge(provider), pack))
    assert {asked.structured for asked in server.asked} == {"json_schema"}


async def test_free_text_without_a_system_message(server: JudgeServer, provider: BedrockProvider) -> None:
    """A request for free text has no format, no system part, and no parameter that is not set."""
    async with provider.connect() as connection:
        reply = await connection.send(Request(messages=(Message("user", "Hello."),)))
    assert server.asked[0].body == {"messages": [{"role": "user", "content": [{"text": "Hello."}]}]}
    assert reply.path is ReplyPath.TEXT


async def test_a_seed_is_reported_as_unknown(server: JudgeServer, provider: BedrockProvider) -> None:
    """The API has no seed: none is sent, which is reported once and recorded."""
    async with provider.connect() as connection:
        await connection.send(replace(REQUEST, seed=7))
        await connection.send(replace(REQUEST, seed=8))
        assert connection.adaptations() == {"seed": "dropped"}
        assert len(connection.notices()) == 1
    assert "seed" not in json.dumps(server.asked[0].body)


@pytest.mark.parametrize(
    ("refused", "adaptations"),
    [
        ("outputConfig", {"outputConfig": "prompted"}),
        ("temperature", {"temperature": "dropped"}),
        ("system", {"system": "folded into the user message"}),
    ],
)
async def test_rejected_parameters_are_omitted(
    server: JudgeServer, provider: BedrockProvider, refused: str, adaptations: dict[str, str]
) -> None:
    """A rejected parameter is reported once and sent no more; a later connection knows it from the start."""
    server.refuse(refused)
    async with provider.connect() as connection:
        replies = await asyncio.gather(*(connection.send(REQUEST) for _ in range(5)))
        assert connection.adaptations() == adaptations
        assert len(connection.notices()) == 1
    assert {json.loads(reply.text)["noncommittal"] for reply in replies} == {False}
    before = server.count
    async with provider.connect(known=adaptations) as connection:
        await connection.send(REQUEST)
        assert connection.notices() == ()
    assert server.count == before + 1
    assert server.asked[-1].user.endswith("Judge this.")


async def test_without_a_schema_the_prompt_contains_it(server: JudgeServer, provider: BedrockProvider) -> None:
    """A model without structured output gets the schema in words, also if it takes no system message."""
    known = {"outputConfig": "prompted", "system": "folded into the user message"}
    async with provider.connect(known=known) as connection:
        reply = await connection.send(REQUEST)
    assert reply.path is ReplyPath.PROMPTED
    (message,) = server.asked[0].messages
    assert message["content"].startswith("You judge.\n\nThe reply is one JSON object")
    assert message["content"].endswith("Judge this.")


# https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html (section "Errors"),
# https://docs.aws.amazon.com/bedrock/latest/userguide/troubleshooting-api-error-codes.html; the messages as users
# report them.
@pytest.mark.parametrize(
    ("status", "kind", "body", "error", "words"),
    [
        (400, "ValidationException", {"message": "Input is too long for requested model."}, Permanent, "too long"),
        (
            400,
            "ValidationException",
            {"message": "The system encountered an unexpected error during processing."},
            Permanent,
            "unexpected",
        ),
        (
            400,
            "ValidationException",
            {"message": "The provided model identifier is invalid."},
            ProviderDown,
            "Check the region",
        ),
        (
            400,
            "ValidationException",
            {"message": "Invocation of model ID m with on-demand throughput isn\u2019t supported."},
            ProviderDown,
            "most models need an inference profile",
        ),
        (400, "ServiceQuotaExceededException", {"message": "Your request exceeds the quota."}, RateLimited, "quota"),
        (400, "AccessDeniedException", {"message": "You lack access."}, ProviderDown, "check the variable AWS_BEARER"),
        (
            403,
            "AccessDeniedException",
            {"Message": "Authentication failed: Please make sure your API Key is valid."},
            ProviderDown,
            "403: Authentication failed.*a key is valid in one region",
        ),
        (
            403,
            "ExpiredTokenException:http://internal.amazon.com/coral/",
            {"message": "The security token included in the request is expired"},
            ProviderDown,
            "the key has expired. Create a new one",
        ),
        (403, "", {"Message": "Bearer Token has expired"}, ProviderDown, "the key has expired"),
        (404, "ResourceNotFoundException", {"message": "Model use case details missing."}, ProviderDown, "use case"),
        (408, "ModelTimeoutException", {"message": "The model took too long."}, Temporary, "too long"),
        (424, "ModelErrorException", {"message": "The model failed."}, Temporary, "failed"),
        (429, "ThrottlingException", {"message": "Too many requests, please wait."}, RateLimited, "please wait"),
        (
            429,
            "ThrottlingException",
            {"message": "Too many tokens per day, please wait before trying again."},
            ProviderDown,
            "daily quota",
        ),
        (429, "ModelNotReadyException", {"message": "The model is not ready."}, RateLimited, "not ready"),
        (500, "InternalServerException", {"message": "An internal error."}, Temporary, "internal"),
        (503, "ServiceUnavailableException", {"message": "Bedrock is unable."}, Temporary, "unable"),
    ],
)
async def test_documented_errors_become_ours(
    server: JudgeServer,
    provider: BedrockProvider,
    status: int,
    kind: str,
    body: object,
    error: type[ProviderError],
    words: str,
) -> None:
    """Each documented error is retried, fails the question or ends the run, with advice; it drops no parameter."""
    server.fail(fake.bare(json.dumps(body), status, x_amzn_ErrorType=kind))
    async with provider.connect() as connection:
        with pytest.raises(ProviderError, match=words) as caught:
            await connection.send(REQUEST)
        assert connection.adaptations() == {}
    assert type(caught.value) is error
    assert caught.value.status == status


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


def test_a_full_context_window_is_not_retried() -> None:
    """A prompt that exceeds the context window always will."""
    with pytest.raises(Permanent, match="exceed the context window"):
        read(stopped("model_context_window_exceeded"))


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


@pytest.mark.parametrize(
    "body", ["<html>hello</html>", "{}", '{"output": {}}', json.dumps(stopped("malformed_model_output"))]
)
async def test_bodies_without_an_answer_are_retried(server: JudgeServer, provider: BedrockProvider, body: str) -> None:
    """A page of a gateway and a malformed output are temporary errors."""
    server.fail_next(fake.bare(body))
    async with provider.connect() as connection:
        with pytest.raises(Temporary):
            await connection.send(REQUEST)


async def test_a_refusal_is_a_failure_at_once(server: JudgeServer, provider: BedrockProvider) -> None:
    """A blocked reply fails its question with the text of the guardrail, and is not re-asked."""
    server.fail_next(fake.refusal("Sorry, the guardrail blocked this."))
    (answer,) = await converse(LLMJudge(provider), QUESTION)
    assert server.count == 1
    assert isinstance(answer, Failure)
    assert (answer.kind, "guardrail blocked" in answer.message) == (FailureKind.REFUSED, True)


async def test_own_fields_are_merged(server: JudgeServer, provider: BedrockProvider) -> None:
    """One setting of the user's does not remove merilo's."""
    own = replace(provider, body={"inferenceConfig": {"topP": 0.5}, "additionalModelRequestFields": {"top_k": 3}})
    async with own.connect() as connection:
        await connection.send(REQUEST)
    assert server.asked[0].body["inferenceConfig"] == {"maxTokens": 100, "temperature": 0.0, "topP": 0.5}
    assert server.asked[0].body["additionalModelRequestFields"] == {"top_k": 3}


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


def test_a_region_and_a_key_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a region there is no address; a region that could name another host is refused; Amazon needs a key."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UsageError, match="needs a region such as us-east-1: set AWS_REGION"):
        BedrockProvider("m")
    monkeypatch.setenv("AWS_REGION", "us-east-1.evil.example/")
    with pytest.raises(UsageError, match="AWS_REGION must be a region"):
        BedrockProvider("m")
    monkeypatch.setenv("AWS_REGION", "us-east-1")

    async def opened() -> None:
        async with BedrockProvider("m").connect():
            pass

    with pytest.raises(UsageError, match="environment variable AWS_BEARER_TOKEN_BEDROCK has no key"):
        asyncio.run(opened())


async def test_a_key_is_never_shown(server: JudgeServer, provider: BedrockProvider) -> None:
    """The key is in no message, adaptation or repr, even if the server repeats it."""
    says = json.dumps({"message": f"outputConfig of {KEY}: Extra inputs are not permitted"})
    server.fail_next(fake.bare(says, 400))
    async with provider.connect() as connection:
        await connection.send(REQUEST)
        server.fail_next(fake.bare(says, 403, x_amzn_ErrorType=f"Type{KEY}"))
        with pytest.raises(ProviderDown) as caught:
            await connection.send(REQUEST)
        shown = [str(caught.value), repr(provider), *connection.adaptations().values(), *connection.notices()]
    assert connection.notices()
    assert not any(KEY in text for text in (*shown, json.dumps(provider.fingerprint())))
