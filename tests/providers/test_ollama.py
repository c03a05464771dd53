"""Ollama's own API, over a real local server that answers as its documentation says."""

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
from merilo.judging.verdicts import Failure
from merilo.providers.base import Finish, Message, ReplyPath, Request, Usage
from merilo.providers.ollama import ContextLimit, OllamaProvider, chat_reply_of
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
def provider(server: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> OllamaProvider:
    for name in ("OLLAMA_API_KEY", "OLLAMA_CONTEXT_LENGTH"):
        monkeypatch.delenv(name, raising=False)
    return OllamaProvider("test-model", base_url=server.root_url)


async def test_a_request_forbids_truncation(server: JudgeServer, provider: OllamaProvider) -> None:
    """The body sets the context length and refuses truncation; text, usage and model are read from the reply."""
    async with provider.connect() as connection:
        reply = await connection.send(REQUEST)
        assert connection.adaptations() == {"digest": server.digest, "num_ctx": "16384"}
        assert connection.notices() == ()
    assert server.asked[0].body == {
        "model": "test-model",
        "messages": [{"role": "system", "content": "You judge."}, {"role": "user", "content": "Judge this."}],
        "stream": False,
        "format": schema_for("noncommittal"),
        "truncate": False,
        "shift": False,
        "keep_alive": "30m",
        "think": False,
        "options": {"num_ctx": 16_384, "num_predict": 100, "temperature": 0.0, "seed": 3},
    }
    assert "Authorization" not in server.headers[0]
    assert json.loads(reply.text)["noncommittal"] is False
    assert (reply.path, reply.model, reply.finish) == (ReplyPath.JSON_SCHEMA, "test-model", Finish.STOP)
    assert reply.usage.input_tokens
    assert reply.usage.output_tokens


async def test_a_request_without_a_system_message(server: JudgeServer, provider: OllamaProvider) -> None:
    """A free-text request has no format, and no option that is not set."""
    async with provider.connect() as connection:
        reply = await connection.send(Request(messages=(Message("user", "Hello."),)))
    body = server.asked[0].body
    assert body["messages"] == [{"role": "user", "content": "Hello."}]
    assert body["options"] == {"num_ctx": 16_384}
    assert "format" not in body
    assert reply.path is ReplyPath.TEXT


async def test_every_kind_of_judgement_is_answered(server: JudgeServer, provider: OllamaProvider) -> None:
    """Single questions and packs use the JSON Schema; an unreadable reply is re-asked in the same conversation."""
    server.fail_next(fake.contradiction())
    assert await converse(LLMJudge(provider), QUESTION) == (GOOD,)
    assert [message["role"] for message in server.asked[1].messages] == ["system", "user", "assistant", "user"]
    pack = Pack(tuple(Support(f"Statement {n}.", ("A.", "B.")) for n in range(3)))
    assert not any(isinstance(answer, Failure) for answer in await converse(LLMJudge(provider), pack))
    assert {asked.structured for asked in server.asked} == {"json_schema"}


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


@pytest.mark.parametrize(
    ("refused", "adaptation"), [("think", {"think": "dropped"}), ("format", {"format": "prompted"})]
)
async def test_rejected_parameters_are_omitted(
    server: JudgeServer, provider: OllamaProvider, refused: str, adaptation: dict[str, str]
) -> None:
    """A rejected parameter is reported once and sent no more; a later connection knows it from the start."""
    server.refuse(refused)
    async with provider.connect() as connection:
        replies = await asyncio.gather(*(connection.send(REQUEST) for _ in range(5)))
        found = dict(connection.adaptations())
        assert {name: found[name] for name in adaptation} == adaptation
        assert len(connection.notices()) == len(set(connection.notices()))
        assert all(f"rejected {refused}" in notice for notice in connection.notices())
    assert {json.loads(reply.text)["noncommittal"] for reply in replies} == {False}
    before = server.count
    async with provider.connect(known=found) as connection:
        await connection.send(REQUEST)
        assert connection.notices() == ()
    assert server.count == before + 1
    assert refused not in server.asked[-1].body


async def test_without_a_schema_the_prompt_contains_it(server: JudgeServer, provider: OllamaProvider) -> None:
    """JSON mode comes before the prompt alone, and both have the schema in words."""
    async with provider.connect(known={"format": "json_mode"}) as connection:
        reply = await connection.send(REQUEST)
    assert reply.path is ReplyPath.JSON_MODE
    assert server.asked[0].body["format"] == "json"
    assert json.dumps(schema_for("noncommittal")) in server.asked[0].messages[0]["content"]


# Ollama: server/routes.go and server/sched.go (missing model, full queue), llm/server.go and runner/ollamarunner
# (prompt over the context length; 400, before 0.12 also 500, 413 on a newer server), docs/api/errors.mdx (429, 502).
@pytest.mark.parametrize(
    ("status", "body", "error", "words"),
    [
        (400, {"error": "the input length exceeds the context length"}, Permanent, "OLLAMA_CONTEXT_LENGTH=32768"),
        (413, {"error": "the input length exceeds the context length"}, Permanent, "exceeds 16,384 tokens"),
        (500, {"error": "the input length exceeds the context length"}, Permanent, "exceeds 16,384 tokens"),
        (
            400,
            {
                "error": {
                    "code": 400,
                    "message": "the request exceeds the available context size",
                    "type": "exceed_context_size_error",
                    "n_prompt_tokens": 20_000,
                    "n_ctx": 16_384,
                }
            },
            Permanent,
            "20000 tokens",
        ),
        (400, {"error": "invalid options: temperature"}, Permanent, "invalid options"),
        (401, {"error": "unauthorized"}, ProviderDown, "check the variable OLLAMA_API_KEY"),
        (404, {"error": "model 'test-model' not found"}, ProviderDown, "ollama pull test-model"),
        (404, "404 page not found", ProviderDown, "Check that an Ollama server runs on 127.0.0.1"),
        (429, {"error": "too many requests"}, RateLimited, "too many requests"),
        (500, {"error": "llama runner process has terminated: exit status 2"}, Temporary, "terminated"),
        (502, {"error": "upstream error"}, Temporary, "upstream"),
        (
            503,
            {"error": "server busy, please try again.  maximum pending requests exceeded"},
            Temporary,
            "maximum pending requests",
        ),
    ],
)
async def test_errors_of_the_server(
    server: JudgeServer, provider: OllamaProvider, status: int, body: object, error: type[ProviderError], words: str
) -> None:
    """Each error of the server is retried, fails the question or ends the run, and its message says what to do."""
    server.fail(fake.bare(body if isinstance(body, str) else json.dumps(body), status))
    async with provider.connect() as connection:
        with pytest.raises(ProviderError, match=words) as caught:
            await connection.send(REQUEST)
        assert connection.adaptations().keys() == {"digest", "num_ctx"}
    assert type(caught.value) is error
    assert caught.value.status == status


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


async def test_another_server_is_reported(server: JudgeServer) -> None:
    """A server without Ollama's API is named with what to check."""
    provider = OllamaProvider("m", base_url=f"{server.root_url}/nothing-here")
    async with provider.connect() as connection:
        with pytest.raises(ProviderDown, match="Check that an Ollama server runs on 127"):
            await connection.send(REQUEST)


async def test_a_changed_model_stops_the_run(server: JudgeServer, provider: OllamaProvider) -> None:
    """A run that resumes with another digest of the model stops before it asks anything."""
    async with provider.connect(known={"digest": "0" * 64}) as connection:
        with pytest.raises(ProviderDown, match=r"has changed since this run began \(digest 6488c96fa5fa, before 0{12}"):
            await connection.send(REQUEST)
    assert server.count == 0
    async with provider.connect(known={"digest": server.digest}) as connection:
        await connection.send(REQUEST)


async def test_a_model_that_is_not_listed_has_no_digest(server: JudgeServer) -> None:
    """A cloud model is described but not listed: it is used without a digest."""
    async with OllamaProvider("other", base_url=server.root_url).connect() as connection:
        await connection.send(REQUEST)
        assert connection.adaptations() == {"num_ctx": "16384"}


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


def test_an_empty_free_text_is_a_reply() -> None:
    """A model may have nothing to write; only a verdict cannot be empty."""
    fields: dict[str, object] = {"message": {"content": ""}, "done_reason": "stop", "eval_count": 0}
    assert read(fields, path=ReplyPath.TEXT).text == ""
    with pytest.raises(Temporary):
        read(fields)


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


@pytest.mark.parametrize("body", ["<html>hello</html>", "[]", '{"done": true}', '{"message": {"content": ""}}'])
async def test_bodies_that_are_not_replies(server: JudgeServer, provider: OllamaProvider, body: str) -> None:
    """A page of a gateway, or a reply without a token, is retried."""
    server.fail_next(fake.bare(body))
    async with provider.connect() as connection:
        with pytest.raises(Temporary):
            await connection.send(REQUEST)


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


def test_the_fingerprint_leaves_out_what_changes_no_reply(provider: OllamaProvider) -> None:
    """A run may resume with a longer context; another model or option is another judge."""
    assert provider.fingerprint() == replace(provider, num_ctx=32_768, keep_alive="1m").fingerprint()
    assert provider.fingerprint() != replace(provider, model="other").fingerprint()
    assert provider.fingerprint() != replace(provider, body={"options": {"top_k": 3}}).fingerprint()


async def test_own_options_are_merged(server: JudgeServer, provider: OllamaProvider) -> None:
    """One option of the user's does not remove the context length; other fields replace merilo's."""
    own = replace(provider, body={"options": {"top_k": 3, "temperature": 0.5}, "keep_alive": "1h"})
    async with own.connect() as connection:
        await connection.send(REQUEST)
    body = server.asked[0].body
    assert body["options"] == {"num_ctx": 16_384, "num_predict": 100, "temperature": 0.5, "seed": 3, "top_k": 3}
    assert body["keep_alive"] == "1h"


async def test_a_key_is_sent_and_not_shown(
    server: JudgeServer, provider: OllamaProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gateway's key is a bearer token, and is in no message, adaptation or repr, even if the server repeats it."""
    monkeypatch.setenv("OLLAMA_API_KEY", KEY)
    server.digest = KEY
    server.fail_next(fake.bare(json.dumps({"error": f"{KEY} is not well"}), 500))
    async with provider.connect() as connection:
        with pytest.raises(Temporary) as caught:
            await connection.send(REQUEST)
        shown = [str(caught.value), repr(provider), repr(connection.adaptations()), repr(provider.fingerprint())]
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert not any(KEY in text for text in shown)
