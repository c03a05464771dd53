"""What a judge does about bad replies, and what that costs: faults are drawn for each attempt by itself."""

import asyncio
import json

import pytest
import server as fake
from conversing import Talk
from each_case import each_case
from server import Fault, JudgeServer

from merilo.judges.llm import LLMJudge
from merilo.judging.ask import Answer
from merilo.judging.kinds.relevance import Relevance
from merilo.judging.kinds.support import Support
from merilo.judging.questions import Pack
from merilo.judging.verdicts import Failure, FailureKind
from merilo.providers.anthropic import AnthropicProvider
from merilo.providers.base import Provider
from merilo.providers.openai import AzureProvider, OpenAIProvider

ONES = [Relevance(f"How long is river {n}?", (f"River {n} is long.", "So it is.")) for n in range(400)]
PACKS = [Pack(tuple(Support(f"Statement {i} of {n}.", (f"Text {n}.",)) for i in range(4))) for n in range(400)]
MANY = [Relevance(f"How deep is lake {n}?", (f"Lake {n} is deep.",)) for n in range(700)]


def many_verdicts() -> Fault:
    """Two verdicts of one pack that differ for one statement."""

    def doubled(text: str) -> str:
        verdicts = json.loads(text)["verdicts"]
        other = {**verdicts[0], "label": "not_stated", "sentences": []}
        return json.dumps({"verdicts": [*verdicts, other]})

    return fake.says(doubled, name="two verdicts")


def provider_of(kind: str, server: JudgeServer) -> Provider:
    """A provider of the kind at the server."""
    if kind == "anthropic":
        return AnthropicProvider("m", base_url=server.root_url)
    if kind == "azure":
        return AzureProvider("m", base_url=server.root_url)
    return OpenAIProvider("m", base_url=server.base_url)


async def answered(provider: Provider, questions: list[Relevance] | list[Pack]) -> list[tuple[Answer, ...]]:
    """The answers to all questions, some at a time."""
    judge, turns = LLMJudge(provider), asyncio.Semaphore(32)

    async with Talk() as talk:

        async def ask(question: Relevance | Pack) -> tuple[Answer, ...]:
            async with turns:
                return await talk.converse(judge, question)

        return await asyncio.gather(*map(ask, questions))


BAD = [
    ("malformed", fake.malformed(), ONES),
    ("truncated", fake.truncated(), ONES),
    ("wrong schema", fake.wrong_schema(), ONES),
    ("missing verdicts", fake.drop_verdicts(2), PACKS),
    ("two verdicts", many_verdicts(), PACKS),
    ("contradiction", fake.contradiction(), ONES),
    ("contradiction in a pack", fake.contradiction(), PACKS),
]


@each_case(("fault", "questions"), [case[1:] for case in BAD])
async def test_bad_replies_at_first_lose_nothing(fault: Fault, questions: list[Relevance] | list[Pack]) -> None:
    """With a fault on first attempts alone every question has its verdict, for one request more than bad replies."""
    with JudgeServer() as server:
        server.fail(fault, share=0.05, seed=5, first_attempt_only=True)
        answers = await answered(provider_of("openai", server), questions)
        bad = server.given[fault.name]
    assert bad > 5
    assert not any(isinstance(answer, Failure) for given in answers for answer in given)
    assert server.count == len(questions) + bad
    assert server.count <= 1.10 * len(questions)


@each_case("kind", ["openai", "anthropic", "azure"])
@each_case(
    ("fault", "failed"), [(fake.wrong_schema(), FailureKind.UNREADABLE), (fake.truncated(), FailureKind.TRUNCATED)]
)
async def test_what_stays_bad_fails_by_chance_alone(kind: str, fault: Fault, failed: FailureKind) -> None:
    """Three attempts that each have luck of their own all fail with the chance cubed, and the failure says why.

    At a share of one in five, 5.6 of 700 are expected; 1 to 15 come by chance in all but one of 200 runs (and the
    draws here are the same each time).
    """
    with JudgeServer() as server:
        server.fail(fault, share=0.2, seed=2)
        answers = await answered(provider_of(kind, server), MANY)
    failures = [given[0] for given in answers if isinstance(given[0], Failure)]
    assert 1 <= len(failures) <= 15
    assert {failure.kind for failure in failures} == {failed}
    assert len(MANY) * 1.15 < server.count < len(MANY) * 1.33  # 1 + 0.2 + 0.04 = 1.24


@pytest.mark.parametrize("kind", ["openai", "anthropic", "azure"])
async def test_a_refusal_is_not_asked_again(kind: str) -> None:
    """Each refused question fails with that reason, and costs no request more."""
    with JudgeServer() as server:
        server.fail(fake.refusal("I would rather not."), share=0.05, seed=1)
        answers = await answered(provider_of(kind, server), ONES)
        refused = server.given["refusal"]
    failures = [given[0] for given in answers if isinstance(given[0], Failure)]
    assert len(failures) == refused > 5
    assert {(failure.kind, failure.message) for failure in failures} == {
        (FailureKind.REFUSED, "The model declined to answer: I would rather not.")
    }
    assert server.count == len(ONES)
