"""Endpoints that reject a form of request, each in its own words, and the form in which each gets its questions."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest
import server as fake
from each_case import each_case
from server import Fault, JudgeServer

from merilo.errors import Permanent, RateLimited, Temporary
from merilo.judging.reply_parsing import schema_for
from merilo.providers.base import Message, Request
from merilo.providers.openai import OpenAIProvider

Body = Mapping[str, Any]
REQUEST = Request(
    messages=(Message("system", "You judge."), Message("user", "Judge this. " * 100)),
    schema=schema_for("noncommittal"),
    schema_name="noncommittal",
    max_tokens=2_048,
    temperature=0.0,
    seed=7,
)
PROMPT = 500
"""Tokens of the prompt, as the servers with a window count them."""
FOLDED = {"system": "folded into the user message"}
PROMPTED = {"response_format": "prompted"}
JSON_MODE = {"response_format": "json_mode"}


def limit(body: Body) -> int:
    """The reply limit of a request; 0 without one."""
    return int(body.get("max_tokens") or body.get("max_completion_tokens") or 0)


def role(body: Body) -> bool:
    return any(message["role"] == "system" for message in body["messages"])


def structured(body: Body) -> bool:
    return "response_format" in body


def by_schema(body: Body) -> bool:
    return structured(body) and body["response_format"]["type"] == "json_schema"


def zero(body: Body) -> bool:
    return body.get("temperature") == 0


def heated(body: Body) -> bool:
    return "temperature" in body


def seeded(body: Body) -> bool:
    return "seed" in body


def long(most: int) -> Callable[[Body], bool]:
    return lambda body: limit(body) > most


def beyond(window: int) -> Callable[[Body], bool]:
    return lambda body: PROMPT + limit(body) > window


class Refusal(NamedTuple):
    """What a server rejects, with which body, and the adaptations under which it answers."""

    rejects: Callable[[Body], bool]
    says: Callable[[Body], object] | object
    adapted: Mapping[str, str]
    status: int = 400


def detail(*loc: object, msg: str = "Extra inputs are not permitted", **more: object) -> object:
    """One fault as FastAPI reports it."""
    return {"detail": [{"type": "extra_forbidden", "loc": ["body", *loc], "msg": msg, **more}]}


def window(text: str) -> Callable[[Body], object]:
    """A message with the numbers of a request that does not fit: the limit L, the prompt P, their sum T."""
    return lambda body: {"error": text.format(L=limit(body), P=PROMPT, T=PROMPT + limit(body))}


REFUSALS: Mapping[str, Refusal] = {
    "role as a value": Refusal(role, {"error": {"message": "Unsupported value", "param": "messages[0].role"}}, FOLDED),
    "roles must alternate": Refusal(
        role, "Conversation roles must alternate user/assistant/user/assistant/...", FOLDED
    ),
    "no developer": Refusal(role, {"error": {"message": "Developer instruction is not enabled for gemma"}}, FOLDED),
    "FastAPI, format": Refusal(structured, detail("response_format"), PROMPTED, 422),
    "FastAPI that quotes the request": Refusal(
        structured,
        lambda body: detail("response_format", "json_schema", msg="invalid", input=body),
        PROMPTED,
        422,
    ),
    "type of the format": Refusal(
        by_schema,
        {
            "error": {
                "message": "Invalid value: 'json_schema'. Supported values: 'text'",
                "param": "response_format.type",
            }
        },
        JSON_MODE,
    ),
    "grammar": Refusal(by_schema, "failed to compile the grammar", JSON_MODE),
    "failed generation": Refusal(
        structured, {"error": {"message": "Bitte den Prompt anpassen.", "code": "json_validate_failed"}}, PROMPTED
    ),
    "temperature, positive": Refusal(
        zero,
        {"error": "`temperature` must be strictly positive", "error_type": "validation"},
        {"temperature": "0.01"},
        422,
    ),
    "temperature as a value": Refusal(
        heated,
        {"error": {"message": "Only the default (1).", "param": "temperature", "code": "unsupported_value"}},
        {"temperature": "dropped"},
    ),
    "seed": Refusal(seeded, {"errors": [{"message": "property 'seed' is unsupported"}]}, {"seed": "dropped"}),
    "demanded": Refusal(
        lambda body: body.get("enable_thinking") is not False,
        "parameter.enable_thinking must be set to false for non-streaming calls",
        {"demanded parameter": "enable_thinking=false"},
    ),
    "other name": Refusal(
        lambda body: "max_tokens" in body, "use max_completion_tokens", {"max_tokens": "max_completion_tokens"}
    ),
    "no limit at all": Refusal(
        limit, {"error": {"message": "Argument not supported", "param": "max_tokens"}}, {"max_tokens": "dropped"}
    ),
    "longest reply": Refusal(
        long(1_024),
        window("max_tokens is too large: {L}. At most 1024 completion tokens."),
        {"reply length": "at most 1024 tokens"},
    ),
    "longest reply, no number": Refusal(
        long(600), "The value of max_tokens exceeds what this model can write", {"max_tokens": "dropped"}
    ),
    "window, vLLM": Refusal(
        beyond(2_048),
        window(
            "This model's maximum context length is 2048 tokens. However, you requested {T} tokens ({P} in the "
            "messages, {L} in the completion). Please reduce the length of the messages or completion."
        ),
        {"reply length": "at most 500 tokens"},
    ),
    "window, TGI": Refusal(
        beyond(2_048),
        window(
            "`inputs` tokens + `max_new_tokens` must be <= 2048. Given: {P} `inputs` tokens and {L} `max_new_tokens`"
        ),
        {"reply length": "at most 500 tokens"},
        422,
    ),
}


@each_case("case", REFUSALS.values())
async def test_each_refusal_leads_to_a_form_that_is_accepted(case: Refusal) -> None:
    """Whatever a server rejects and however it says so, the question is answered, and the form is kept and reported."""

    def rejects(body: Body) -> Fault | None:
        said = case.says(body) if callable(case.says) else case.says
        text = said if isinstance(said, str) else json.dumps(said)
        return fake.bare(text, case.status) if case.rejects(body) else None

    with JudgeServer() as server:
        server.rejects = rejects
        async with OpenAIProvider("m", base_url=server.base_url).connect() as connection:
            assert (await connection.send(REQUEST)).text
            tried = server.count
            assert tried <= 12
            assert connection.adaptations() == case.adapted
            assert len(connection.notices()) == len(case.adapted)
            known = connection.adaptations()
            await connection.send(REQUEST)
        async with OpenAIProvider("m", base_url=server.base_url).connect(known=known) as connection:
            await connection.send(REQUEST)
        assert server.count == tried + 2


async def test_an_error_that_names_nothing_changes_nothing() -> None:
    """The question fails with the endpoint's message after one request."""
    with JudgeServer() as server:
        server.fail(fake.status(400, "no way"))
        async with OpenAIProvider("m", base_url=server.base_url).connect() as connection:
            with pytest.raises(Permanent, match="no way"):
                await connection.send(REQUEST)
            assert connection.adaptations() == {}
        assert server.count == 1


async def test_an_error_after_a_success_is_of_its_own_question() -> None:
    """Once a form was accepted, a prompt that is too long changes nothing."""
    with JudgeServer() as server:
        async with OpenAIProvider("m", base_url=server.base_url).connect() as connection:
            await connection.send(REQUEST)
            said = "maximum context length is 4097 tokens. However, your messages resulted in 6402 tokens."
            server.fail_next(fake.status(400, said, code="context_length_exceeded"))
            with pytest.raises(Permanent):
                await connection.send(REQUEST)
            assert server.count == 2
            assert connection.adaptations() == {}


@pytest.mark.parametrize("status", [101, 204])
async def test_a_status_without_a_reply_is_temporary(status: int) -> None:
    """A gateway that answers with nothing is asked again."""
    with JudgeServer() as server:
        server.fail_next(fake.bare("", status))
        async with OpenAIProvider("m", base_url=server.base_url, timeout_s=2).connect() as connection:
            with pytest.raises(Temporary):
                await connection.send(REQUEST)
            assert (await connection.send(REQUEST)).text


TOO_LONG = (
    (400, {"error": {"message": "maximum context length is 4097 tokens. However, your messages resulted in 6402."}}),
    (400, {"message": "The input (5000 tokens) is longer than the model's context length (4096 tokens)."}),
    (400, {"error": {"message": "Requested tokens (5000) exceed context window of 4096", "type": "server_error"}}),
    (500, {"error": {"message": "Requested tokens (5000) exceed context window of 4096"}}),
    (500, "The prompt (length 5000) is longer than the maximum model length of 4096"),
    (422, {"error": "Input validation error: `inputs` must have less than 4096 tokens. Given: 5000"}),
    (413, {"error": {"message": "The prompt is too long for this model"}}),
    (400, {"error": {"message": "Prompt length (5000) exceeds maximum input length (4096) of max_num_tokens"}}),
    (400, {"error": {"message": "Your request exceeded model token limit: 4096 (requested: 5000)"}}),
    (400, {"error": {"message": "Range of input length should be [1, 30720]"}}),
    (400, {"error": {"message": "too many tokens: total number of tokens in the prompt cannot exceed 4081"}}),
    (400, {"error": {"message": "This model's maximum prompt length is 4096 but the request contains 5000 tokens."}}),
    (503, {"error": {"message": "Please reduce the length of the messages or completion."}}),
    (400, {"error": {"message": "voll", "code": "context_length_exceeded"}}),
    (500, {"error": {"message": "voll", "type": "exceed_context_size_error", "n_prompt_tokens": 5000, "n_ctx": 4096}}),
)


@each_case(("status", "said"), TOO_LONG)
async def test_a_prompt_that_is_too_long_costs_two_requests(status: int, said: object) -> None:
    """However a server says so, before and after other replies; other questions keep their whole reply limit."""
    text = said if isinstance(said, str) else json.dumps(said)
    long = Request((Message("user", "Judge this. " * 300),), max_tokens=2_048)
    with JudgeServer() as server:
        server.rejects = lambda body: fake.bare(text, status) if len(str(body)) > 3_000 else None
        async with OpenAIProvider("m", base_url=server.base_url).connect() as connection:
            for asked in ([long], [long], [REQUEST], [long], [long, long]):
                before = server.count
                found = await asyncio.gather(*map(connection.send, asked), return_exceptions=True)
                assert [isinstance(each, Permanent) for each in found] == [each is long for each in asked]
                assert server.count - before <= (1 if asked == [REQUEST] else 2 * len(asked))
            assert {limit(each.body) for each in server.asked if len(each.user) < 3_000} == {2_048}
            assert connection.adaptations() == {}


async def test_a_reply_that_does_not_fit_is_tried_with_another_limit() -> None:
    """Words of size at any status, without a usable number: a quarter of the limit is tried, and kept."""
    with JudgeServer() as server:
        server.rejects = lambda body: (
            fake.bare("prompt and max_tokens exceed context window", 500) if limit(body) > 700 else None
        )
        async with OpenAIProvider("m", base_url=server.base_url).connect() as connection:
            await connection.send(REQUEST)
            assert connection.adaptations() == {"reply length": "at most 512 tokens"}
        assert server.count == 2


@each_case(
    ("status", "said", "wait_s"),
    [
        (424, {"error": "Model is warming up"}, None),
        (503, {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}, None),
        (503, {"error": "Model m is currently loading", "estimated_time": 20.5}, 20.5),
    ],
)
async def test_a_model_that_is_being_loaded_is_waited_for(status: int, said: object, wait_s: float | None) -> None:
    """As after "too many requests", for minutes, and as long as the server says; the message names the cause."""
    with JudgeServer() as server:
        server.fail_next(fake.bare(json.dumps(said), status))
        async with OpenAIProvider("m", base_url=server.base_url).connect() as connection:
            with pytest.raises(RateLimited, match="being loaded") as caught:
                await connection.send(REQUEST)
            assert caught.value.retry_after_s == wait_s
            server.fail_next(fake.rate_limited("1"))
            with pytest.raises(RateLimited, match=r"slow down\.$"):
                await connection.send(REQUEST)
            assert (await connection.send(REQUEST)).text


def events(*pieces: object, end: str = "data: [DONE]\n\n") -> str:
    """A stream of server-sent events, with a comment as gateways send it while they wait."""
    return ": PROCESSING\n\n" + "".join(f"data: {json.dumps(each, ensure_ascii=False)}\n\n" for each in pieces) + end


def piece(finish: str | None = None, **delta: object) -> object:
    return {"model": "m-1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


STREAM = (
    piece(role="assistant", content=""),
    piece(content='{"reason": "so\u2028",'),
    piece(content=' "noncommittal":'),
)
USED = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 7}}


async def test_a_gateway_that_always_streams_is_read() -> None:
    """The pieces are one reply with its usage; arguments of a tool call and errors are read too."""
    arguments = [piece(tool_calls=[{"index": 0, "function": {"arguments": text}}]) for text in ('{"a":', " 1}")]
    with JudgeServer() as server:
        server.fail_next(
            fake.bare(events(*STREAM, piece(content=" false}"), piece("stop"), USED)),
            fake.bare(events(*arguments, piece("tool_calls"), end="")),
            fake.bare(events(STREAM[0], {"error": {"message": "slow down", "code": 429}})),
            fake.bare(events(*STREAM, end="")),
            fake.bare("data: {" + "\n\ndata: 7\n\ndata: [DONE]"),
            fake.bare(events({"choices": [7, {"index": [1], "delta": {"tool_calls": "x", "content": {}}}]})),
        )
        async with OpenAIProvider("m", base_url=server.base_url).connect() as connection:
            reply = await connection.send(REQUEST)
            assert reply.text == '{"reason": "so\u2028", "noncommittal": false}'
            assert (reply.model, reply.usage.input_tokens, reply.usage.output_tokens) == ("m-1", 9, 7)
            assert (await connection.send(REQUEST)).text == '{"a": 1}'
            with pytest.raises(RateLimited, match="slow down"):
                await connection.send(REQUEST)
            for _ in range(2):  # cut off; damaged
                with pytest.raises(Temporary, match="sent no chat completion"):
                    await connection.send(REQUEST)
            assert not (await connection.send(REQUEST)).text
        assert server.count == 6


@each_case(
    ("said", "usage"),
    [
        ("This model only support stream mode, please enable the stream parameter to access the model.", True),
        ("`stream` must be set to true", True),
        ("Only streaming requests are supported", False),
        ("Non-streaming mode is disabled: stream is required", True),
    ],
)
async def test_a_server_that_only_streams_is_asked_for_a_stream(said: str, usage: bool) -> None:
    """After one rejected request (two if it does not know `stream_options`), and from then on at once."""

    def answers(body: Body) -> Fault:
        if not body.get("stream"):
            return fake.status(400, said)
        if "stream_options" in body and not usage:
            return fake.status(400, "Unknown parameter: stream_options", param="stream_options")
        return fake.bare(events(*STREAM, piece("stop", content=" true}")))

    with JudgeServer() as server:
        server.rejects = answers
        async with OpenAIProvider("m", base_url=server.base_url).connect() as connection:
            for sent in (2, 3) if usage else (3, 4):
                assert (await connection.send(REQUEST)).text.endswith("true}")
                assert server.count == sent
            assert connection.adaptations() == {"stream": "with usage" if usage else "without usage"}
            assert len(connection.notices()) == 1
