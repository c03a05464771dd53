"""Who answers in a golden case: scripted replies of a model, stated vectors, a word overlap; pysbd as it is."""

import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
from published.cases import Case

from merilo.errors import Permanent
from merilo.judges.base import Conversation, Judge, JudgeDefaults
from merilo.judges.splitter import SplitterJudge
from merilo.judging.kinds.measured import Embeddings, MatrixVerdict, Similarities
from merilo.judging.questions import Pack, Question
from merilo.judging.verdicts import Verdict
from merilo.providers.base import Connection, Reply, Request, Usage

ONE_JUDGE: Final = "judge"


@dataclass(frozen=True)
class Fails:
    """A request that itself fails."""


@dataclass(frozen=True)
class Replies:
    """A provider that gives the stated replies in the order asked, and keeps the requests it was sent."""

    case: str
    model: str
    items: list[str | Fails]
    requests: list[Request] = field(default_factory=list)

    def fingerprint(self) -> Mapping[str, object]:
        return {"provider": "golden", "model": self.model}

    @asynccontextmanager
    async def connect(self, *, known: Mapping[str, str] | None = None) -> AsyncGenerator[Connection, None]:
        del known
        yield self

    def price_usd(self, usage: Usage) -> float | None:
        del usage
        return 0.0

    async def send(self, request: Request) -> Reply:
        self.requests.append(request)
        if len(self.items) < request.samples:
            asked = "\n".join(message.text for message in request.messages)
            pytest.fail(f"{self.case}: {self.model} has no reply left for request {len(self.requests)}:\n{asked}")
        taken = [self.items.pop(0) for _ in range(request.samples)]
        texts = tuple(item for item in taken if isinstance(item, str))
        if len(texts) < len(taken):
            raise Permanent("The request fails, as the case says.")
        return Reply(texts=texts, model=self.model)

    def adaptations(self) -> Mapping[str, str]:
        return {}

    def notices(self) -> Sequence[str]:
        return ()


@dataclass(frozen=True)
class LocalJudge(JudgeDefaults):
    """Answers one kind of question at once, by a function."""

    kind: type[Question[Any]]
    call: Callable[[Any], Verdict]
    marks: str = ""

    @property
    def name(self) -> str:
        return f"golden {self.kind.kind}"

    @property
    def answers(self) -> frozenset[type[Question[Any]]]:
        return frozenset({self.kind})

    def fingerprint(self) -> Mapping[str, object]:
        return {"judge": self.name, "marks": self.marks}

    def answer(self, question: Question[Any] | Pack) -> Conversation:
        yield from ()
        questions = question.questions if isinstance(question, Pack) else (question,)
        return tuple(self.call(each) for each in questions)


def queues(case: Case) -> dict[str, Replies]:
    """The replies of each model, by role. One judge, but where the items of the case are keyed by model."""
    if not isinstance(case.outputs, list):
        pytest.fail(f"{case.id}: judge_outputs must be a list, got {case.outputs!r}.")
    if case.system != "spring-ai-ragas":
        items = [_item(item, _failing_word(case)) for item in case.outputs]
        return {ONE_JUDGE: Replies(case.id, ONE_JUDGE, items)}
    models: dict[str, list[str | Fails]] = {}
    for step in case.outputs:
        for model, said in step.items():
            drawn = said if isinstance(said, list) else [said]
            models.setdefault(model, []).extend(_item(item, "ERROR") for item in drawn)
    return {model: Replies(case.id, model, items) for model, items in models.items()} or {
        ONE_JUDGE: Replies(case.id, ONE_JUDGE, [])
    }


def _failing_word(case: Case) -> str | None:
    return "RAISE" if case.system == "axion" or case.metric.startswith("collections.") else None


def _item(item: object, failing_word: str | None) -> str | Fails:
    if not isinstance(item, str):
        return json.dumps(item, ensure_ascii=False)
    return Fails() if item == failing_word else item


def local_judges(case: Case) -> dict[str, Judge]:
    """The judges of vectors, similarities and sentences, by the role that the engine gives them."""
    vectors, encoder = case.config.get("embeddings", {}), case.config.get("cross_encoder")
    if encoder not in {None, "stub-word-jaccard"}:
        pytest.fail(f"{case.id}: there is no cross-encoder {encoder!r}.")

    def embed(question: Embeddings) -> Verdict:
        missing = [text for text in question.texts if text not in vectors]
        if missing:
            pytest.fail(f"{case.id}: {missing} was embedded, but the case states no vector for it.")
        return MatrixVerdict.of([[float(number) for number in vectors[text]] for text in question.texts])

    def compare(question: Similarities) -> Verdict:
        if encoder is None:
            pytest.fail(f"{case.id}: {question.left} were compared, but the case states no cross-encoder.")
        return MatrixVerdict.of([[_overlap(left, right) for right in question.right] for left in question.left])

    return {
        "embedder": LocalJudge(Embeddings, embed, json.dumps(vectors)),
        "similarity": LocalJudge(Similarities, compare),
        "splitter": SplitterJudge(),
    }


def _overlap(left: str, right: str) -> float:
    """Shared words by all words, lower-cased and without periods."""
    words = [set(text.lower().replace(".", "").split()) for text in (left, right)]
    union = words[0] | words[1]
    return len(words[0] & words[1]) / len(union) if union else 0.0
