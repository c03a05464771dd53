"""Model objects of other libraries are judges and embedders, known by their methods."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from each_case import each_case
from pydantic import BaseModel

import merilo
from merilo.errors import Permanent, RateLimited, Temporary
from merilo.judges.callables import ModelObjectProvider, text_of, with_temperature
from merilo.judges.spec import embedder_from, judge_from
from merilo.providers.base import Message, Request

REQUEST = Request((Message("system", "You judge."), Message("user", "Is it so?")), temperature=0.3)
ROW = {"id": "a", "user_input": "q?", "response": "It is red.", "retrieved_contexts": ["It is red."]}


@dataclass
class Reply:
    content: Any
    usage_metadata: dict[str, int] = field(default_factory=lambda: {"input_tokens": 3, "output_tokens": 2})


@dataclass
class ChatModel:
    """A chat model as LangChain's: messages in, a message with content out."""

    said: Any = '{"statements": ["It is red."]}'
    model_name: str = "chat"
    asked: list[Any] = field(default_factory=list)

    def invoke(self, messages: list[tuple[str, str]]) -> Any:
        self.asked.append(messages)
        if isinstance(self.said, Exception):
            raise self.said
        return Reply(self.said)


class Failing(Exception):
    def __init__(self, status_code: int) -> None:
        super().__init__("it failed")
        self.status_code = status_code


async def test_messages_have_langchains_roles() -> None:
    """System, user and assistant become system, human and ai, in order; the tokens are reported."""
    model = ChatModel("Yes.")
    async with ModelObjectProvider(model).connect() as connection:
        reply = await connection.send(REQUEST)
    assert model.asked == [[("system", "You judge."), ("human", "Is it so?")]]
    assert (reply.text, reply.usage.input_tokens, reply.usage.output_tokens) == ("Yes.", 3, 2)


def test_a_chat_model_is_a_judge_of_evaluate(tmp_path: Path) -> None:
    """merilo.evaluate asks the object and names its model."""

    class Judge(ChatModel):
        def invoke(self, messages: list[tuple[str, str]]) -> Any:
            text = "\n".join(text for _, text in messages)
            said = '{"statements": [{"statement": "It is red.", "reason": "r", "verdict": 1}]}'
            return Reply(said if "verdict" in text else '{"statements": ["It is red."]}')

    run = merilo.evaluate(
        [ROW], metrics=["ragas-0.4.3:faithfulness"], judge=Judge(), out=tmp_path / "run", storage={"cache": False}
    )
    (outcome,) = run.sample("a").outcomes.values()
    assert isinstance(outcome, merilo.Score)
    assert outcome.value == 1.0


async def test_an_object_with_ainvoke_alone_is_awaited() -> None:
    """A model that has only the async method is called by it."""

    class Async:
        async def ainvoke(self, messages: object) -> str:
            del messages
            return "Yes."

    judge: Any = judge_from(Async())  # type: ignore[arg-type]
    async with judge.provider.connect() as connection:
        assert (await connection.send(REQUEST)).text == "Yes."


@each_case(("status", "kind"), [(429, RateLimited), (503, Temporary), (408, Temporary), (400, Permanent)])
async def test_errors_with_a_status(status: int, kind: type[Exception]) -> None:
    """A rate limit and a server error are retried by the engine; other errors are permanent."""
    async with ModelObjectProvider(ChatModel(Failing(status))).connect() as connection:
        with pytest.raises(kind, match=r"chat raised Failing: it failed"):
            await connection.send(REQUEST)


@each_case(
    ("found", "text"),
    [
        ("a", "a"),
        (Reply("b"), "b"),
        (Reply([{"type": "text", "text": "c"}, "d"]), "cd"),
        (("e", 0.1), "e"),
        (Reply(7), None),
        (7, None),
    ],
)
def test_the_text_of_a_reply(found: object, text: str | None) -> None:
    """A text, a message, its blocks, or a text with its cost."""
    assert text_of(found) == text


async def test_a_schema_is_asked_for_in_words() -> None:
    """The user's message ends with the schema."""
    model = ChatModel("{}")
    request = Request(REQUEST.messages, schema={"type": "object"}, schema_name="verdict")
    async with ModelObjectProvider(model).connect() as connection:
        await connection.send(request)
    assert model.asked[0][1][1].startswith(
        "Is it so?\n\nThe reply is one JSON object that fits this JSON Schema (verdict)"
    )


def test_the_temperature_of_a_definition_is_set_on_a_copy() -> None:
    """A pydantic model with a temperature is copied with the new one; another object is left alone."""

    class Model(BaseModel):
        temperature: float = 1.0

    model = Model()
    assert with_temperature(model, 0.1).temperature == 0.1
    assert model.temperature == 1.0
    assert with_temperature(model, None) is model
    other = ChatModel()
    assert with_temperature(other, 0.1) is other


def test_only_a_named_model_is_cached() -> None:
    """Verdicts of an object that states no model are not used in other runs; no key is in the fingerprint."""
    named, unnamed = judge_from(ChatModel()), judge_from(ChatModel(model_name=""))  # type: ignore[arg-type]
    assert (named.cacheable, unnamed.cacheable) == (True, False)
    assert (named.name, unnamed.name) == ("chat", "ChatModel")


def test_an_embedding_model_is_an_embedder(tmp_path: Path) -> None:
    """An object with embed_documents gives the vectors of metrics that compare them."""

    class Model:
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [[float(len(text)), 1.0] for text in texts]

    assert embedder_from(Model()).name == "Model"  # type: ignore[arg-type]
    run = merilo.evaluate(
        [{"id": "a", "response": "abc", "reference": "xyz"}],
        metrics=["ragas-0.4.3:semantic_similarity"],
        judge={"embeddings": Model(), "rest": "embedded"},
        out=tmp_path / "run",
        storage={"cache": False},
    )
    (outcome,) = run.sample("a").outcomes.values()
    assert isinstance(outcome, merilo.Score)
    assert outcome.value == pytest.approx(1.0)
