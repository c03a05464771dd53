"""Anthropic's Messages API, over a real local server that speaks as its documentation says."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import server as fake
from conversing import converse
from server import JudgeServer

from merilo.errors import Permanent, Temporary, UsageError
from merilo.judges.llm import LLMJudge
from merilo.judging.kinds.completion import Completion, CompletionVerdict
from merilo.judging.kinds.relevance import Relevance, RelevanceVerdict
from merilo.judging.kinds.statements import Statements
from merilo.judging.kinds.support import Support
from merilo.judging.questions import Pack
from merilo.judging.registry import KINDS
from merilo.judging.reply_parsing import schema_for
from merilo.judging.verdicts import Failure, FailureKind
from merilo.providers.anthropic import AnthropicProvider, Cached, message_of
from merilo.providers.base import Finish, Message, ReplyPath, Request, Usage
from merilo.providers.problems import Received

KEY = "key-for-tests-0123456789"
REQUEST = Request(
    messages=(Message("system", "You judge."), Message("user", "Judge this.")),
    schema=schema_for("noncommittal"),
    schema_name="noncommittal",
    max_tokens=100,
    temperature=0.0,
)
QUESTION = Relevance("Who?", ("One.", "Two."))
GOOD = RelevanceVerdict(1, evidence=(0,), reason="As the test wants it.")
MARK = {"type": "ephemeral"}


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer() as running:
        yield running


@pytest.fixture
def provider(server: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> AnthropicProvider:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    return AnthropicProvider("claude", base_url=server.root_url)


async def test_a_request_becomes_a_message(server: JudgeServer, provider: AnthropicProvider) -> None:
    """System part, messages, parameters and schema are sent as the API wants them; text, usage and model come back."""
    async with provider.connect() as connection:
        reply = await connection.send(REQUEST)
    assert server.paths == ["/v1/messages"]
    assert server.asked[0].body == {
        "model": "claude",
        "max_tokens": 100,
        "system": [{"type": "text", "text": "You judge.", "cache_control": MARK}],
        "messages": [{"role": "user", "content": "Judge this."}],
        "temperature": 0.0,
        "output_config": {"format": {"type": "json_schema", "schema": schema_for("noncommittal")}},
    }
    assert server.headers[0]["x-api-key"] == KEY
    assert server.headers[0]["anthropic-version"] == "2023-06-01"
    assert "Authorization" not in server.headers[0]
    assert json.loads(reply.text)["noncommittal"] is False
    assert (reply.path, reply.model, reply.finish) == (ReplyPath.JSON_SCHEMA, "test-model", Finish.STOP)
    assert reply.seconds > 0


async def test_a_reply_always_has_a_limit(server: JudgeServer, provider: AnthropicProvider) -> None:
    """The API takes no request without max_tokens, so one stands there; what else is not set is not sent."""
    async with provider.connect() as connection:
        reply = await connection.send(Request(messages=(Message("user", "Hello."),)))
    assert server.asked[0].body == {
        "model": "claude",
        "max_tokens": 4_096,
        "messages": [{"role": "user", "content": "Hello."}],
    }
    assert reply.path is ReplyPath.TEXT


@pytest.mark.parametrize("kind", ["relevance", "support_together", "statements"])
async def test_schemas_keep_to_what_the_api_takes(kind: str) -> None:
    """Every object is closed and names all its fields as required, and no keyword stands there that it refuses."""

    def objects(schema: Any) -> Iterator[dict[str, Any]]:
        if isinstance(schema, dict):
            if schema.get("type") == "object":
                yield schema
            for inner in schema.values():
                yield from objects(inner)

    found = list(objects(schema_for(kind.removesuffix("_together"), together=kind.endswith("_together"))))
    assert found
    for schema in found:
        assert schema["additionalProperties"] is False
        assert set(schema["required"]) == set(schema["properties"])
        for inner in schema["properties"].values():
            assert set(inner) <= {"type", "enum", "items"}


async def test_every_kind_of_judgement_is_answered(server: JudgeServer, provider: AnthropicProvider) -> None:
    """The judge's questions go this way as they do over any wire: by schema, and packs as one request."""
    judge = LLMJudge(provider)
    assert await converse(judge, QUESTION) == (GOOD,)
    pack = Pack(tuple(Support(f"Statement {n}.", ("A.", "B.")) for n in range(3)))
    assert not any(isinstance(answer, Failure) for answer in await converse(judge, pack))
    assert [asked.structured for asked in server.asked] == ["json_schema"] * 2
    assert {KINDS[asked.kind] for asked in server.asked} == {Relevance, Support}


@pytest.mark.parametrize(
    ("refused", "adaptations"),
    [
        ("temperature", {"temperature": "dropped"}),
        ("cache_control", {"cache_control": "dropped"}),
        ("output_config", {"output_config": "prompted"}),
    ],
)
async def test_what_a_model_refuses_is_left_out(
    server: JudgeServer, provider: AnthropicProvider, refused: str, adaptations: dict[str, str]
) -> None:
    """Newer models take no temperature, older ones no schema, some gateways no marks: learnt and told once."""
    server.refuse(refused)
    async with provider.connect() as connection:
        replies = await asyncio.gather(*(connection.send(REQUEST) for _ in range(5)))
        assert connection.adaptations() == adaptations
        assert len(connection.notices()) == 1
    assert {json.loads(reply.text)["noncommittal"] for reply in replies} == {False}
    assert not any(refused in json.dumps(asked.body) for asked in server.asked[-3:])
    before = server.count
    async with provider.connect(known=adaptations) as connection:
        await connection.send(REQUEST)
        assert connection.notices() == ()
    assert server.count == before + 1


async def test_without_a_schema_it_stands_in_words(server: JudgeServer, provider: AnthropicProvider) -> None:
    """A model that takes no schema is told it in the system part, whose mark it keeps."""
    server.refuse("output_config")
    async with provider.connect() as connection:
        reply = await connection.send(REQUEST)
    (part,) = server.asked[-1].body["system"]
    assert reply.path is ReplyPath.PROMPTED
    assert part["text"].startswith("You judge.\n\nThe reply is one JSON object")
    assert json.dumps(schema_for("noncommittal")) in part["text"]
    assert part["cache_control"] == MARK


@pytest.mark.parametrize(
    "message",
    [
        "max_tokens: 32768 > 8192, which is the maximum allowed number of output tokens for claude",
        "temperature: range: 0..1",
        "prompt is too long: 210000 tokens > 200000 maximum",
    ],
)
async def test_a_bad_value_is_not_a_refused_parameter(
    server: JudgeServer, provider: AnthropicProvider, message: str
) -> None:
    """An error that merely mentions a parameter drops nothing once the endpoint has accepted it."""
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    async with provider.connect() as connection:
        await connection.send(REQUEST)
        server.fail(fake.bare(json.dumps(body), 400))
        with pytest.raises(Permanent):
            await connection.send(REQUEST)
        assert connection.adaptations() == {}


async def test_a_limit_that_is_too_large_is_made_smaller(server: JudgeServer, provider: AnthropicProvider) -> None:
    """A cut list is asked for with more room, as much as the model has according to its error."""
    server.fail_next(fake.truncated(), fake.status(400, "max_tokens: 8192 > 4096, the maximum allowed number"))
    (answer,) = await converse(LLMJudge(provider), Statements(("One.", "Two.")))
    assert [asked.body["max_tokens"] for asked in server.asked] == [2_048, 8_192, 4_096]
    assert not isinstance(answer, Failure)


async def test_a_refusal_is_a_failure_at_once(server: JudgeServer, provider: AnthropicProvider) -> None:
    """A model that declines is not argued with."""
    server.fail_next(fake.refusal("I will not judge this."))
    (answer,) = await converse(LLMJudge(provider), QUESTION)
    assert server.count == 1
    assert isinstance(answer, Failure)
    assert (answer.kind, "I will not judge this." in answer.message) == (FailureKind.REFUSED, True)


async def test_a_reask_alternates_turns(server: JudgeServer, provider: AnthropicProvider) -> None:
    """What was said goes back as the assistant's turn, and the rubric stays the system part."""
    server.fail_next(fake.contradiction())
    assert await converse(LLMJudge(provider), QUESTION) == (GOOD,)
    assert [message["role"] for message in server.asked[1].messages] == ["system", "user", "assistant", "user"]
    assert server.asked[1].body["system"] == server.asked[0].body["system"]


async def test_samples_are_asked_for_one_by_one(server: JudgeServer, provider: AnthropicProvider) -> None:
    """The API gives one text at a time; the judge asks for the rest."""
    free = Completion("en/noncommittal.v1", ("user_input", "response"), ("Who?", "Anna."), temperature=0.7)
    answers = await converse(LLMJudge(provider), Pack(tuple(free.at(draw) for draw in range(3))))
    assert answers == (CompletionVerdict("A free reply."),) * 3
    assert server.count == 3
    assert not any("n" in asked.body for asked in server.asked)


async def test_a_seed_is_told_to_be_unknown(server: JudgeServer, provider: AnthropicProvider) -> None:
    """The API has no seed: none is sent, and that is said once and recorded."""
    async with provider.connect() as connection:
        await connection.send(replace(REQUEST, seed=7))
        await connection.send(replace(REQUEST, seed=8))
        assert connection.adaptations() == {"seed": "dropped"}
        assert connection.notices() == ("claude: the Messages API has no seed parameter; none is sent.",)
    assert not any("seed" in asked.body for asked in server.asked)


async def test_the_prompt_cache_is_counted(server: JudgeServer, provider: AnthropicProvider) -> None:
    """All input tokens are counted together, and those written to or read from the provider's cache beside them."""
    rubric = "A rubric. " * 200
    request = replace(REQUEST, messages=(Message("system", rubric), Message("user", "Judge this.")))
    async with provider.connect() as connection:
        first, second = [(await connection.send(request)).usage for _ in range(2)]
    size = len(rubric) // 4
    assert first.input_tokens == second.input_tokens == (len(rubric) + len("Judge this.")) // 4
    assert (first.cached_tokens, first.written_tokens) == (0, size)
    assert (second.cached_tokens, second.written_tokens) == (size, 0)


async def test_what_is_kept_can_be_chosen(server: JudgeServer, provider: AnthropicProvider) -> None:
    """Nothing, the rubric, or also long contexts that questions share; the text sent is the same."""
    contexts = tuple(f"Context {n}. {'It is long. ' * 200}" for n in range(2))
    question = Support("Anna.", contexts)
    for cached in Cached:
        await converse(LLMJudge(replace(provider, cached=cached)), question)
    nothing, rubric, both = (asked.body for asked in server.asked)
    assert "cache_control" not in json.dumps(nothing)
    assert json.dumps(rubric).count('"cache_control"') == 1
    assert json.dumps(both).count('"cache_control"') == 2
    shared, own = both["messages"][0]["content"]
    assert shared["cache_control"] == MARK
    assert "Context 1." in shared["text"]
    assert "Anna." not in shared["text"]
    assert "Anna." in own["text"]
    assert shared["text"] + own["text"] == rubric["messages"][0]["content"] == nothing["messages"][0]["content"]


async def test_short_contexts_are_not_marked(server: JudgeServer, provider: AnthropicProvider) -> None:
    """A short text is not worth a mark: the provider keeps none below a minimum."""
    await converse(LLMJudge(replace(provider, cached=Cached.CONTEXTS)), Support("Anna.", ("Short.",)))
    assert json.dumps(server.asked[0].body).count('"cache_control"') == 1


async def test_extra_body_goes_before_ours(server: JudgeServer, provider: AnthropicProvider) -> None:
    """What the user adds is sent with every request, over our own fields too."""
    async with replace(provider, body={"temperature": 0.5, "top_k": 3}).connect() as connection:
        await connection.send(REQUEST)
    assert (server.asked[0].body["temperature"], server.asked[0].body["top_k"]) == (0.5, 3)


def read(told: dict[str, object]) -> Any:
    """The reply in a body."""
    return message_of(Received(told, json.dumps(told), ReplyPath.TEXT, str, "a"))


def test_only_text_is_the_answer() -> None:
    """Texts are joined; what the model thought is left out; a refusal without text gives its explanation."""
    thinking = {"type": "thinking", "thinking": "hm"}
    blocks = [thinking, {"type": "text", "text": "x"}, {"type": "text", "text": "y"}]
    assert read({"content": blocks, "stop_reason": "end_turn"}).text == "xy"
    refused = read({"content": [], "stop_reason": "refusal", "stop_details": {"explanation": "Not this."}})
    assert (refused.finish, refused.text) == (Finish.REFUSED, "Not this.")
    assert read({"content": [thinking], "stop_reason": "max_tokens"}).finish is Finish.LENGTH


def test_usage_that_is_not_told_is_unknown() -> None:
    """Without counts nothing is made up."""
    assert read({"content": []}).usage == Usage()
    assert read({"content": [], "usage": {"input_tokens": 5, "output_tokens": 2}}).usage == Usage(5, 2)


@pytest.mark.parametrize("body", ["<html>hello</html>", "[]", '{"type": "message"}'])
async def test_a_body_that_is_no_message_is_temporary(
    server: JudgeServer, provider: AnthropicProvider, body: str
) -> None:
    """A page of a gateway with status 200 is no reply."""
    server.fail_next(fake.bare(body))
    async with provider.connect() as connection:
        with pytest.raises(Temporary, match="sent no message but"):
            await connection.send(REQUEST)


def test_the_address_and_the_key_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """ANTHROPIC_BASE_URL is the default, with or without its path; Anthropic's own endpoint needs a key."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://localhost:4000/v1/messages/")
    assert AnthropicProvider("c").base_url == "http://localhost:4000"
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "")
    provider = AnthropicProvider("c")
    assert provider.base_url == "https://api.anthropic.com"

    async def opened() -> None:
        async with provider.connect():
            pass

    with pytest.raises(UsageError, match="environment variable ANTHROPIC_API_KEY has no key"):
        asyncio.run(opened())


def test_the_fingerprint_is_of_what_decides_a_reply(provider: AnthropicProvider) -> None:
    """Model, address and extra body; what the provider keeps in its cache is not part of it."""
    assert replace(provider, cached=Cached.NOTHING).fingerprint() == provider.fingerprint()
    assert replace(provider, body={"top_k": 1}).fingerprint() != provider.fingerprint()
    assert provider.fingerprint()["provider"] == "anthropic"


def test_parameters_out_of_range_are_refused() -> None:
    """A model has a name, a reply at least a token, and what was learnt earlier must be something that can be."""
    with pytest.raises(UsageError, match="anthropic:claude"):
        AnthropicProvider(" ")
    with pytest.raises(UsageError, match="max_tokens must be at least 1"):
        AnthropicProvider("c", max_tokens=0)

    async def opened() -> None:
        async with AnthropicProvider("c", base_url="http://localhost:1").connect(known={"output_config": "x"}):
            pass

    with pytest.raises(UsageError, match="known adaptation of output_config"):
        asyncio.run(opened())
