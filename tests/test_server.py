"""The local judge server that the other tests rely on."""

import asyncio

import server as fake
from conversing import Talk
from server import JudgeServer

from merilo.judges.llm import LLMJudge
from merilo.judging.kinds.contexts import Relevance, RelevanceVerdict
from merilo.judging.verdicts import Failure
from merilo.providers.openai import OpenAIProvider

QUESTIONS = [Relevance(f"Question {n}?", ("One.",)) for n in range(60)]


async def failed(questions: list[Relevance], *, first_attempt_only: bool = False, twice: bool = False) -> set[str]:
    """The inputs of the questions that failed at last, with a fifth of requests answered by a 500."""
    with JudgeServer() as server:
        server.fail(fake.status(500), share=0.2, seed=3, first_attempt_only=first_attempt_only)
        judge = LLMJudge(OpenAIProvider("test-model", base_url=server.base_url))
        async with Talk() as talk:
            for _ in range(1 + twice):
                answers = await asyncio.gather(*(talk.converse(judge, question) for question in questions))
        assert server.count == len(questions) * (1 + twice)
    pairs = zip(questions, answers, strict=True)
    return {question.user_input for question, (answer,) in pairs if isinstance(answer, Failure)}


async def test_chance_does_not_depend_on_the_order() -> None:
    """The same requests fail whatever order they arrive in, and about as many as asked for."""
    forwards, backwards = await failed(QUESTIONS), await failed(QUESTIONS[::-1])
    assert forwards == backwards
    assert 4 <= len(forwards) <= 22


async def test_a_first_attempt_may_fail_alone() -> None:
    """With `first_attempt_only`, the same request sent again is answered."""
    assert await failed(QUESTIONS, first_attempt_only=True)
    assert not await failed(QUESTIONS, first_attempt_only=True, twice=True)


async def test_a_function_answers_by_the_prompt() -> None:
    """A function sees the kind and the rendered text, and None leaves the default."""

    def answer(asked: fake.Asked) -> object:
        return {"reason": asked.kind, "grade": 0, "evidence": []} if "Question 7?" in asked.user else None

    with JudgeServer(answer) as server:
        judge = LLMJudge(OpenAIProvider("test-model", base_url=server.base_url))
        async with Talk() as talk:
            assert await talk.converse(judge, QUESTIONS[7]) == (RelevanceVerdict(0, reason="relevance"),)
            assert await talk.converse(judge, QUESTIONS[8]) != (RelevanceVerdict(0, reason="relevance"),)
