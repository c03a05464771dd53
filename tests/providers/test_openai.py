"""The OpenAI-compatible provider, over a real local server that misbehaves."""

import json
import socket
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from unittest.mock import patch

import pytest
import server as fake
import wire_requests
from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st
from server import JudgeServer
from wire_requests import KEY

from merilo.errors import (
    Permanent,
    ProviderDown,
    ProviderError,
    Temporary,
    UsageError,
)
from merilo.judging.json_types import Json
from merilo.providers import openai
from merilo.providers.base import Finish, Reply, ReplyPath, Request
from merilo.providers.openai import OpenAIProvider, reply_of
from merilo.providers.problems import (
    EndpointAddress,
    EndpointProblem,
    Received,
    error_of,
    message_in,
    problem_in,
    retry_after_s,
)

GATEWAY = "gateway-word-42"
REQUEST = replace(wire_requests.REQUEST, seed=7)
ADDRESS = EndpointAddress("a", "check the key", "Check the place.")


@pytest.fixture
def provider(server: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> OpenAIProvider:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return OpenAIProvider("test-model", base_url=server.base_url, headers=(("X-Gateway", GATEWAY),))


def read(told: Json, path: ReplyPath = ReplyPath.TEXT) -> Reply:
    """The reply in a body."""
    return reply_of(Received(told, json.dumps(told), path, str, "a"))


async def error_from(provider: OpenAIProvider, request: Request = REQUEST) -> ProviderError:
    async with provider.connect() as connection:
        with pytest.raises(ProviderError) as caught:
            await connection.send(request)
    return caught.value


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 8192 tokens, but max_tokens asks for 9000.",
        "'max_tokens' is too large: 32768.",
        "Invalid 'temperature': must be at most 2.",
        "The messages and the response_format exceed the maximum context length.",
    ],
)
async def test_a_bad_value_is_not_a_refused_parameter(
    server: JudgeServer, provider: OpenAIProvider, message: str
) -> None:
    """An error that merely mentions a parameter drops nothing once the endpoint has accepted it."""
    async with provider.connect() as connection:
        await connection.send(REQUEST)
        server.fail(fake.status(400, message))
        with pytest.raises(Permanent):
            await connection.send(REQUEST)
        assert connection.adaptations() == {}


async def test_a_slow_endpoint_times_out(server: JudgeServer, provider: OpenAIProvider) -> None:
    """A request that takes too long fails as temporary, and says how long it waited."""
    server.fail_next(fake.hang())
    error = await error_from(replace(provider, timeout_s=0.2))
    assert isinstance(error, Temporary)
    assert "within 0.2 s" in str(error)


async def test_nobody_at_the_address_stops_the_run(provider: OpenAIProvider) -> None:
    """An address at which nothing was ever reached is a wrong one: no request can work."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    error = await error_from(replace(provider, base_url=f"http://127.0.0.1:{port}/v1"))
    assert isinstance(error, ProviderDown)
    assert "Check the base URL and the network" in str(error)


async def test_a_server_that_goes_away_is_temporary(provider: OpenAIProvider) -> None:
    """A server that was reached before and is gone now may come back."""
    with JudgeServer() as short:
        gone = replace(provider, base_url=short.base_url)
        connecting = gone.connect()
        connection = await connecting.__aenter__()
        await connection.send(REQUEST)
    with pytest.raises(Temporary):
        await connection.send(REQUEST)
    await connecting.__aexit__(None, None, None)


async def test_an_endless_reply_is_cut(
    server: JudgeServer, provider: OpenAIProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reply larger than the cap is not read to its end."""
    monkeypatch.setattr("merilo.providers.endpoint._LARGEST_REPLY_BYTES", 100_000)
    server.fail_next(fake.says("x" * 200_000))
    assert isinstance(await error_from(provider), Permanent)


def test_the_address_is_read_at_construction(monkeypatch: pytest.MonkeyPatch) -> None:
    """OPENAI_BASE_URL is the default, and what was read is recorded."""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:8000/v1/chat/completions/")
    provider = OpenAIProvider("m")
    monkeypatch.delenv("OPENAI_BASE_URL")
    assert provider.base_url == "http://localhost:8000/v1"
    assert OpenAIProvider("m").base_url == "https://api.openai.com/v1"
    assert hash(provider) != hash(OpenAIProvider("m"))


@each_case("url", ["localhost:8000", "ftp://h/v1", "http://u:secret-9@h/v1", "http://h/v1?key=secret-9", ""])
def test_unusable_addresses_are_refused(url: str) -> None:
    """An address without a scheme, or with a secret in it, is an error that does not repeat the secret."""
    with pytest.raises(UsageError) as caught:
        OpenAIProvider("m", base_url=url)
    assert "secret-9" not in str(caught.value)


NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


@each_case(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "2.5"}, 2.5),
        ({"Retry-After": "-1"}, 0.0),
        ({"Retry-After": format_datetime(NOW + timedelta(seconds=30), usegmt=True)}, 30.0),
        ({"Retry-After": format_datetime(NOW - timedelta(seconds=30), usegmt=True)}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
        ({"retry-after-ms": "1500", "Retry-After": "2"}, 1.5),
    ],
)
def test_retry_after_is_read(headers: Mapping[str, str], seconds: float | None) -> None:
    """Milliseconds, seconds and dates are understood; anything else is no advice."""
    assert retry_after_s(headers, now=NOW) == seconds


@each_case(
    ("choice", "text", "finish"),
    [
        ({"message": {"content": "x"}, "finish_reason": "stop"}, "x", Finish.STOP),
        ({"message": {"content": "x"}, "finish_reason": None}, "x", Finish.STOP),
        ({"message": {"content": "x"}, "finish_reason": "length"}, "x", Finish.LENGTH),
        ({"message": {"content": None, "reasoning_content": "hm"}, "finish_reason": "length"}, "", Finish.LENGTH),
        ({"message": {"content": "x", "reasoning_content": "hm"}, "finish_reason": "stop"}, "x", Finish.STOP),
        ({"message": {"content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]}}, "xy", Finish.STOP),
        ({"message": {"content": "x"}, "finish_reason": "content_filter"}, "x", Finish.REFUSED),
        ({"message": {"content": None}, "finish_reason": "content_filter: RECITATION"}, "", Finish.REFUSED),
        ({"message": {"content": ""}, "finish_reason": "SAFETY"}, "", Finish.REFUSED),
        ({"message": {"content": "x"}, "finish_reason": "safety"}, "x", Finish.STOP),
        ({"message": {"content": "", "tool_calls": []}, "finish_reason": "tool_calls"}, "", Finish.STOP),
        ({"message": {"content": None, "refusal": "no"}, "finish_reason": "stop"}, "no", Finish.REFUSED),
        ({}, "", Finish.STOP),
    ],
)
def test_choices_are_read(choice: dict[str, object], text: str, finish: Finish) -> None:
    """Text, length, refusals and filters; what the model thought is not its answer."""
    reply = read({"choices": [choice]})
    assert (reply.text, reply.finish) == (text, finish)


_VALUES = st.sampled_from(["", " \n", "x", '{"grade": 2}', None, 1, ["x"], "stop", "length", "error"])
_KEYS = st.sampled_from(["content", "refusal", "reasoning_content", "reasoning", "role"])
_CHOICES = st.fixed_dictionaries(
    {"message": st.dictionaries(_KEYS, _VALUES) | _VALUES}, optional={"finish_reason": st.just("stop") | _VALUES}
)


@given(st.lists(_CHOICES | _VALUES, max_size=2) | _VALUES, st.sampled_from([ReplyPath.TEXT, ReplyPath.JSON_SCHEMA]))
def test_the_short_path_reads_what_the_long_one_reads(choices: object, path: ReplyPath) -> None:
    """A reply with one whole text is read in a shorter way, with the result that any other reply gets."""

    def outcome() -> object:
        try:
            return read({"choices": choices, "usage": {"completion_tokens": 0}}, path)
        except Temporary as error:
            return str(error)

    found = outcome()
    with patch.object(openai, "_plain_text", lambda _: ""):
        assert outcome() == found


def test_a_rating_that_is_only_in_the_reasoning_is_read() -> None:
    """A free text without content is its reasoning; one with content never is, and JSON needs an object."""
    message: Json = {"content": "", "reasoning_content": "Rating: 7"}
    body: Json = {"choices": [{"message": message, "finish_reason": "stop"}]}
    assert read(body, ReplyPath.TEXT).text == "Rating: 7"
    assert not read(body, ReplyPath.JSON_SCHEMA).text
    message["content"] = "8"
    assert read(body, ReplyPath.TEXT).text == "8"


@each_case(
    "called",
    [
        {"tool_calls": [{"type": "function", "function": {"name": "reply", "arguments": '{"grade": 2}'}}]},
        {"tool_calls": [{"function": {"arguments": {"grade": 2}}}]},
        {"function_call": {"name": "reply", "arguments": '{"grade": 2}'}},
    ],
)
def test_arguments_of_a_tool_call_are_a_reply(called: Json) -> None:
    """A gateway that asks for JSON by a tool returns the reply there; damaged calls are no reply."""
    body: Json = {"choices": [{"message": {"content": None, **called}, "finish_reason": "tool_calls"}]}
    assert read(body, ReplyPath.JSON_SCHEMA).text == '{"grade": 2}'
    body["choices"][0]["message"] = {"tool_calls": [7], "function_call": "x"}
    assert not read(body, ReplyPath.JSON_SCHEMA).text


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_json_that_the_server_took_for_reasoning_is_read(field: str) -> None:
    """VLLM with a reasoning parser may put the whole reply there; a truncated one stays truncated."""
    message = {"content": None, field: '{"grade": 2}'}
    body: Json = {"choices": [{"message": message, "finish_reason": "stop"}]}
    assert read(body, ReplyPath.JSON_SCHEMA).text == '{"grade": 2}'
    assert read(body, ReplyPath.TEXT).text == '{"grade": 2}'
    cut: Json = {"choices": [{"message": message, "finish_reason": "length"}]}
    assert read(cut, ReplyPath.JSON_SCHEMA).finish is Finish.LENGTH


@pytest.mark.parametrize(
    ("reason", "output", "words"),
    [("stop", 0, "may exceed the model's context length"), ("error", 5, "reported that the completion failed")],
)
def test_an_empty_reply_may_work_later(reason: str, output: int, words: str) -> None:
    """LM Studio sends no token for a prompt that is too long; routers report a broken completion with status 200."""
    choice = {"message": {"content": ""}, "finish_reason": reason}
    with pytest.raises(Temporary, match=words):
        read({"choices": [choice], "usage": {"prompt_tokens": 0, "completion_tokens": output}}, ReplyPath.JSON_SCHEMA)


def test_an_empty_free_text_is_a_reply() -> None:
    """A model may have nothing to write, and definitions that read free text score that."""
    choice = {"message": {"content": ""}, "finish_reason": "stop"}
    reply = read({"choices": [choice] * 2, "usage": {"prompt_tokens": 90, "completion_tokens": 0}}, ReplyPath.TEXT)
    assert (reply.texts, reply.finish) == (("", ""), Finish.STOP)


def test_a_refused_sample_does_not_spoil_the_others() -> None:
    """Of several completions those that were not refused are kept."""
    choices = [{"message": {"refusal": "no"}}, {"message": {"content": "x"}}]
    reply = read({"choices": choices})
    assert (reply.texts, reply.finish) == (("x",), Finish.STOP)


NAMES = ["choices", "message", "content", "error", "detail", "loc", "msg", "code", "usage", "param"]
BODIES = st.text() | st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(NAMES), inner),
).map(json.dumps)


@given(BODIES, st.sampled_from([200, 400, 422, 500]))
def test_any_body_is_a_reply_or_one_of_our_errors(text: str, status: int) -> None:
    """Whatever an endpoint sends, nothing but our errors comes of it."""
    problem = problem_in(status, message_in(text), text)
    if problem is None:
        try:
            assert read(message_in(text)).texts
        except Temporary:
            return
    else:
        assert isinstance(error_of(problem, {}, ADDRESS), ProviderError)
        assert isinstance(problem, EndpointProblem)
