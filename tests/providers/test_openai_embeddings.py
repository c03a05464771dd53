"""Embeddings over an OpenAI-compatible endpoint: order, shape, tokens, batches and faults."""

from collections.abc import Callable
from typing import Any

import pytest
from conversing import Talk, converse
from each_case import each_case
from embedding_server import Body, EmbeddingServer, Told, embeddings, vector

from merilo.errors import Permanent, ProviderDown, ProviderError, RateLimited, Temporary
from merilo.judges.llm import OpenAIEmbeddingsJudge
from merilo.judging.kinds.measured import Embeddings, MatrixVerdict
from merilo.judging.questions import Pack
from merilo.judging.verdicts import Failure, FailureKind
from merilo.providers.base import Usage
from merilo.providers.openai import EmbeddingsRequest, OpenAIEmbeddingsProvider, OpenAIProvider


def provider(server: EmbeddingServer, **arguments: Any) -> OpenAIEmbeddingsProvider:
    """A provider of this server."""
    return OpenAIEmbeddingsProvider(OpenAIProvider("test-embedder", base_url=server.base_url, **arguments))


def judge(server: EmbeddingServer, **arguments: Any) -> OpenAIEmbeddingsJudge:
    """A judge of this server."""
    return OpenAIEmbeddingsJudge(provider(server), **arguments)


async def fault_of(answer: Callable[[Body], Told]) -> ProviderError:
    """The error of one request for two vectors to a server that answers so."""
    with EmbeddingServer(answer) as server:
        async with provider(server).connect() as connection:
            with pytest.raises(ProviderError) as raised:
                await connection.send(EmbeddingsRequest((), inputs=("a", "b")))
    return raised.value


async def test_rows_come_in_the_order_of_the_texts() -> None:
    """The vectors are put in order by their index, whatever the order of the reply; float32 to the bit."""
    texts = ("one", "twenty two", "", "three")
    with EmbeddingServer() as server:
        (answer,) = await converse(judge(server), Embeddings(texts))
    assert answer == MatrixVerdict.of([vector(text) for text in texts])
    assert server.asked == [{"model": "test-embedder", "input": list(texts)}]


async def test_many_texts_are_split() -> None:
    """More texts than one request takes go in several, and come back as one matrix in order."""
    texts = tuple("x" * n for n in range(10))
    with EmbeddingServer() as server:
        async with Talk() as talk:
            (answer,) = await talk.converse(judge(server, batch=4), Embeddings(texts))
    assert answer == MatrixVerdict.of([vector(text) for text in texts])
    assert sorted(len(body["input"]) for body in server.asked) == [2, 4, 4]
    assert talk.rounds == 1


async def test_a_pack_has_a_matrix_for_each_question() -> None:
    """Each question of a pack is answered by itself."""
    questions = (Embeddings(("a",)), Embeddings(("bb", "c c")))
    with EmbeddingServer() as server:
        answers = await converse(judge(server), Pack(questions))
    assert answers == tuple(MatrixVerdict.of([vector(text) for text in each.texts]) for each in questions)


async def test_tokens_are_told() -> None:
    """Tokens in are those the server says; there are none out; the model is the one that answered."""
    with EmbeddingServer() as server:
        async with provider(server).connect() as connection:
            reply = await connection.send(EmbeddingsRequest((), inputs=("four", "five!")))
    assert reply.usage == Usage(9, 0, None)
    assert reply.model == "test-embedder"


async def test_a_failed_batch_fails_the_question() -> None:
    """Vectors of some of the texts are no answer."""

    def second_fails(body: Body) -> Told:
        return embeddings(body) if "a" in body["input"] else (400, {"error": {"message": "too long"}})

    with EmbeddingServer(second_fails) as server:
        (answer,) = await converse(judge(server, batch=1), Embeddings(("a", "b")))
    assert isinstance(answer, Failure)
    assert answer.kind is FailureKind.PERMANENT
    assert "too long" in answer.message


async def test_batches_of_other_sizes_are_no_matrix() -> None:
    """A server that changes the length of its vectors between two requests is told so."""

    def by_text(body: Body) -> Told:
        return 200, {"data": [{"index": 0, "embedding": [1.0] * len(body["input"][0])}]}

    with EmbeddingServer(by_text) as server:
        (answer,) = await converse(judge(server, batch=1), Embeddings(("a", "bb")))
    assert isinstance(answer, Failure)
    assert "vectors of 1 and 2 numbers" in answer.message


@each_case(
    ("data", "message"),
    [
        ([{"index": 0, "embedding": [1.0]}], "1 vectors for 2 texts"),
        ([{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}], "indices that are not 0 to 1"),
        ([{"index": 0, "embedding": [1.0]}, {"index": [1], "embedding": [1.0]}], "indices that are not 0 to 1"),
        ([{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0, 2.0]}], "vectors of 1 and 2 numbers"),
        ([{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": "AAAA"}], "lists of finite numbers"),
        ([{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [None]}], "lists of finite numbers"),
        ([{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1e39]}], "lists of finite numbers"),
        ([{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [10**400]}], "lists of finite numbers"),
        ([{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": []}], "lists of finite numbers"),
        ([{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [True]}], "lists of finite numbers"),
        ([7, None], "lists of finite numbers"),
    ],
)
async def test_vectors_that_do_not_fit_are_an_error(data: list[Any], message: str) -> None:
    """A missing, doubled or misshapen vector fails for good with what was wrong."""
    error = await fault_of(lambda _: (200, {"data": data}))
    assert isinstance(error, Permanent)
    assert message in str(error)


@each_case(
    ("status", "told", "kind"),
    [
        (429, {"error": {"message": "slow down"}}, RateLimited),
        (500, {"error": {"message": "oops"}}, Temporary),
        (401, {"error": {"message": "bad key"}}, ProviderDown),
        (404, {"error": {"message": "no such model"}}, ProviderDown),
        (400, {"error": {"message": "input too long"}}, Permanent),
        (200, b"<html>", Temporary),
        (200, {"object": "list"}, Temporary),
    ],
)
async def test_errors_are_ours(status: int, told: Any, kind: type[ProviderError]) -> None:
    """Each answer that is none becomes the error of its kind, as for chat completions."""
    assert type(await fault_of(lambda _: (status, told))) is kind


def test_the_fingerprint_names_model_and_address_and_no_secret() -> None:
    """What decides a vector is in it; keys, headers and the size of batches are not."""
    endpoint = OpenAIProvider("m", base_url="http://127.0.0.1:9/v1", headers=(("X-Key", "secret-secret"),))
    found = OpenAIEmbeddingsJudge(OpenAIEmbeddingsProvider(endpoint), batch=3).fingerprint()
    assert found == OpenAIEmbeddingsJudge(OpenAIEmbeddingsProvider(endpoint)).fingerprint()
    assert found["provider"] == {
        "provider": "openai-embeddings",
        "base_url": "http://127.0.0.1:9/v1",
        "model": "m",
        "body": {},
    }
