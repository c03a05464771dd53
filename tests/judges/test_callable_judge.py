"""Any callable that takes a question is a judge."""

import asyncio
import re
import threading
from typing import Any

import numpy as np
import pytest
from conversing import Talk, converse
from each_case import each_case

from merilo.errors import RateLimited
from merilo.judges.callables import CallableJudge
from merilo.judges.spec import cross_encoder_from
from merilo.judging.kinds.contexts import Relevance, RelevanceVerdict
from merilo.judging.kinds.measured import Embeddings, MatrixVerdict, Similarities
from merilo.judging.kinds.responses import Completion, CompletionVerdict
from merilo.judging.questions import Pack, Question
from merilo.judging.verdicts import Failure, FailureKind

QUESTION = Relevance("Who?", ("One.", "Two."))


async def test_an_async_function_is_awaited() -> None:
    """Its verdict, mapping or failure is the answer, probability included."""

    async def call(question: Question[Any]) -> dict[str, object]:
        await asyncio.sleep(0)
        return {"grade": 1, "evidence": [1], "probability": 0.6, "reason": question.kind}

    expected = RelevanceVerdict(1, evidence=(1,), probability=0.6, reason="relevance")
    assert await converse(CallableJudge(call), QUESTION) == (expected,)


async def test_a_plain_function_may_block() -> None:
    """It runs in another thread, so the event loop goes on."""

    def call(_: Question[Any]) -> RelevanceVerdict:
        return RelevanceVerdict(0, reason=threading.current_thread().name)

    (answer,) = await converse(CallableJudge(call), QUESTION)
    assert isinstance(answer, RelevanceVerdict)
    assert answer.reason != threading.current_thread().name


@pytest.mark.parametrize(
    "verdict", [MatrixVerdict.of([[0.1, 0.2]]), Failure(FailureKind.REFUSED, "No."), CompletionVerdict("failure")]
)
async def test_any_answer_comes_through_unchanged(verdict: Any) -> None:
    """What a callable returns is what the metric gets: matrices to the bit, failures, and free text."""

    async def call(_: Question[Any]) -> Any:
        return verdict

    question = Completion("x", (), ()) if isinstance(verdict, CompletionVerdict) else Embeddings(("a",))
    assert await converse(CallableJudge(call), question) == (verdict,)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (None, "is None: it has no answer"),
        (2, "must be a RelevanceVerdict"),
        ({"grade": 2}, "has the grade 2 but names no evidence sentence"),
    ],
)
async def test_a_wrong_return_is_a_failure(returned: Any, message: str) -> None:
    """What is no sound verdict becomes a permanent failure that names the callable."""

    async def call(_: Question[Any]) -> Any:
        return returned

    (answer,) = await converse(CallableJudge(call), QUESTION)
    assert isinstance(answer, Failure)
    assert answer.kind is FailureKind.PERMANENT
    assert "call for a relevance question" in answer.message
    assert message in answer.message


async def test_an_exception_is_that_questions_failure() -> None:
    """The exception's text is kept; the other questions of a pack keep their verdicts."""

    def call(question: Question[Any]) -> RelevanceVerdict:
        if question == QUESTION:
            raise KeyError("lost")
        return RelevanceVerdict(0)

    first, second = await converse(CallableJudge(call), Pack((QUESTION, Relevance("What?", ()))))
    assert isinstance(first, Failure)
    assert first.kind is FailureKind.PERMANENT
    assert "raised KeyError: 'lost'" in first.message
    assert second == RelevanceVerdict(0)


async def test_our_own_errors_pass() -> None:
    """A callable may say that it is to be asked again."""

    async def call(_: Question[Any]) -> RelevanceVerdict:
        raise RateLimited("Later.", retry_after_s=1.0)

    judge = CallableJudge(call)
    async with Talk() as talk:
        (send,) = next(judge.answer(QUESTION))
        with pytest.raises(RateLimited):
            await (await talk.connection(send.provider)).send(send.request)


async def test_cancelling_passes() -> None:
    """A cancelled call is cancelled, not failed."""

    async def call(_: Question[Any]) -> RelevanceVerdict:
        await asyncio.sleep(60)
        return RelevanceVerdict(0)

    task = asyncio.create_task(converse(CallableJudge(call), QUESTION))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def scores(pairs: Any) -> list[float]:
    """The share of words that two texts share."""
    words = [({*left.split()}, {*right.split()}) for left, right in pairs]
    return [len(one & other) / len(one | other) for one, other in words]


async def later(pairs: Any) -> list[float]:
    await asyncio.sleep(0)
    return scores(pairs)


class Encoder:
    """As a CrossEncoder of sentence-transformers: called for other things, and asked by `predict`."""

    def __call__(self) -> None: ...

    def predict(self, sentences: Any, batch_size: int = 32) -> Any:
        assert isinstance(sentences, list)
        return np.array(scores(sentences)[:batch_size], dtype=np.float32)


@each_case(
    "compare",
    [
        scores,
        lambda left, right: scores(zip(left, right, strict=True)),
        lambda pairs: np.array(scores(pairs)),
        lambda pairs: tuple(np.float32(score) for score in scores(pairs)),
        lambda pairs: np.array(scores(pairs)).reshape(3, 2),
        lambda pairs: MatrixVerdict.of(np.array(scores(pairs)).reshape(3, 2).tolist()),
        later,
        Encoder(),
    ],
)
async def test_a_function_compares_texts(compare: Any) -> None:
    """Pairs, or two lists, in; numbers, arrays or rows out: the same matrix."""
    question = Similarities(("a b", "c d", "a d"), ("a b", "c"))
    (answer,) = await converse(cross_encoder_from(compare), question)
    assert isinstance(answer, MatrixVerdict)
    assert [number for at in range(3) for number in answer.row(at)] == pytest.approx([1, 0, 0, 0.5, 1 / 3, 0])


async def test_numbers_that_do_not_fit_the_pairs() -> None:
    """A number too many, or a text, is a failure that says what was returned."""
    question = Similarities(("a", "b"), ("c",))
    for given, told in ([0.1, 0.2, 0.3], "is a matrix of 3 by 1, not 2 by 1"), ("near", "must be numbers, .* type str"):
        (answer,) = await converse(cross_encoder_from(lambda _, given=given: given), question)  # type: ignore[misc]
        assert isinstance(answer, Failure)
        assert re.search(told, answer.message)
