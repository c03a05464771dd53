"""Request bodies are written from parts that are kept, and are the bytes that writing them whole would give."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import wires
from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st

from merilo.judging.kinds.responses import Choice
from merilo.judging.reply_parsing import schema_for
from merilo.providers.anthropic import AnthropicBodies, Cached
from merilo.providers.base import Message, Request
from merilo.providers.bedrock import BedrockBodies
from merilo.providers.bodies import Bodies
from merilo.providers.google import GoogleBodies
from merilo.providers.ollama import OllamaBodies
from merilo.providers.openai import OpenAIBodies
from merilo.providers.problems import EndpointProblem

SCHEMA = schema_for("relevance")
MAKERS: dict[str, Callable[[Mapping[str, object]], Bodies]] = {
    "openai": lambda extra: OpenAIBodies("m", extra, {}, newer=False),
    "anthropic": lambda extra: AnthropicBodies("m", extra, {}, cached=Cached.RUBRIC, max_tokens=9),
    "bedrock": lambda extra: BedrockBodies("m", extra, {}),
    "google": lambda extra: GoogleBodies("m", extra, {}, thinking=None),
    "ollama": lambda extra: OllamaBodies("m", extra, {}, num_ctx=512, keep_alive="1m"),
}
TEXTS = st.text() | st.text(alphabet='"\\\x00{}\ud800\u2028é€😀', max_size=20)
REQUESTS = st.builds(
    Request,
    messages=st.tuples(
        st.builds(Message, st.sampled_from(["system", "user"]), TEXTS), st.builds(Message, st.just("user"), TEXTS)
    ),
    schema=st.sampled_from([None, SCHEMA]),
    schema_name=st.just("relevance"),
    max_tokens=st.none() | st.integers(1, 9),
    temperature=st.none() | st.floats(0, 2),
    seed=st.none() | st.integers(0, 9),
    samples=st.integers(1, 3),
)


def whole(request: Request) -> bytes:
    """The body of a chat completion, written whole."""
    body: dict[str, Any] = {"model": "m"}
    body["messages"] = [{"role": message.author, "content": message.text} for message in request.messages]
    if request.schema is not None:
        form = {"name": request.schema_name, "strict": True, "schema": request.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": form}
    samples = request.samples if request.samples > 1 else None
    wanted = {"temperature": request.temperature, "seed": request.seed, "n": samples, "max_tokens": request.max_tokens}
    body |= {name: value for name, value in wanted.items() if value is not None} | {"top_k": 3}
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


@each_case("kind", MAKERS)
@given(requests=st.lists(REQUESTS, min_size=1, max_size=5))
def test_bodies_do_not_depend_on_earlier_ones(kind: str, requests: list[Request]) -> None:
    """A body is the same whatever was sent before, and has every text of its request."""
    bodies = MAKERS[kind]({})
    for request in requests:
        body = bodies.body_for(request)
        assert body == MAKERS[kind]({}).body_for(request)
        sent = [(each["role"], each["content"]) for each in wires.messages_of(json.loads(body))]
        texts = [(each.author, each.text.encode("utf-8", "replace").decode()) for each in request.messages]
        assert [each for each in sent if each[1]] == [each for each in texts if each[1]]


def test_a_schema_is_told_by_itself() -> None:
    """Two questions with other labels have other schemas under one name, and each is sent its own."""
    bodies = OpenAIBodies("m", {}, {}, newer=False)
    request = Request(messages=(Message("system", "s"), Message("user", "u")), schema_name="choice")
    for labels in (("yes", "no"), ("a", "b"), ("yes", "no")):
        schema = Choice("?", labels, ("", ""), ("response",), ("x",)).reply_schema()
        body = json.loads(bodies.body_for(replace(request, schema=schema)))
        assert body["response_format"]["json_schema"]["schema"]["properties"]["label"]["enum"] == list(labels)


def test_what_was_learnt_holds_for_kept_parts() -> None:
    """A body that was written before a refusal is written anew after it."""
    bodies = OpenAIBodies("m", {}, {}, newer=False)
    request = Request(messages=(Message("system", "s"), Message("user", "u")), temperature=0.0)
    assert "temperature" in json.loads(bodies.body_for(request))
    assert bodies.learn(EndpointProblem(400, "", "unsupported_value", "temperature"), request, bodies.body_for(request))
    assert "temperature" not in json.loads(bodies.body_for(request))


@each_case("kind", MAKERS)
def test_messages_of_the_users_own_replace_ours(kind: str) -> None:
    """Even the messages may be given by the user's own body."""
    name = "contents" if kind == "google" else "messages"
    own = {name: [{"role": "user", "content": "mine"}]}
    request = Request(messages=(Message("system", "s"), Message("user", "u")))
    assert json.loads(MAKERS[kind](own).body_for(request))[name] == own[name]


def test_kept_parts_do_not_pile_up() -> None:
    """However many rubrics are sent, a bounded number of them is kept."""
    bodies = OpenAIBodies("m", {}, {}, newer=False)
    for number in range(1_000):
        bodies.body_for(Request(messages=(Message("system", f"s{number}"), Message("user", "u"))))
    assert len(bodies._templates) <= 256
