"""The metrics of spring-ai-ragas that hold the response to the contexts and to the question."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.errors import UsageError
from merilo.judging.ask import AskFailed, attempt, together
from merilo.judging.kinds.completion import Completion
from merilo.judging.kinds.embeddings import Embeddings
from merilo.judging.verdicts import Failure
from merilo.metrics.base import EvidenceTarget, Kinds, Score, Undefined
from merilo.metrics.formulas import cosine, mean
from merilo_published.replies import ReplyFault
from merilo_published.spring_ai_ragas.models import (
    NULL,
    JudgedText,
    ModelRequest,
    Panel,
    ScoresEmpty,
    numbered,
    objects_in,
    or_nothing,
    text_or_blank,
    texts_of,
    whole_or_none,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan
    from merilo.judging.matrix import MatrixVerdict
    from merilo_published.asking import ReadReply


_JUDGED: Final[Mapping[str, str]] = MappingProxyType({"nothing to judge": "it scores 0"})
_UNSUPPORTED: Final = frozenset({"HALLUCINATED", "CONTRADICTED"})
_LIKELY_STATEMENTS: Final = '{"statements": ["A statement of the response."]}'


def _statements(value: object) -> tuple[str, ...]:
    return texts_of(value, "statements")


def _verdicts(value: object) -> tuple[JudgedText, ...]:
    return tuple(
        JudgedText(text_or_blank(fields, "statement"), float(whole_or_none(fields, "verdict") == 1))
        for fields in objects_in(or_nothing(value), "verdicts")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Faithfulness(ScoresEmpty):
    """Share of the response's statements that follow from the contexts, by one or several models.

    Formula: Average over models of verdicts that are 1 / verdicts.
    Questions: Two requests for each model.
    Not: Where a response without statements must not look unfaithful. Take faithfulness.
    See: faithfulness | spring-ai-ragas:hallucination | spring-ai-ragas:response_groundedness
    Source: spring-ai-ragas 0.3.3, FaithfulnessMetric.

    Two requests a model: the statements of the response, then verdicts on them against the contexts, joined line by
    line. Each model judges its own statements, and its verdicts are not held to their number (flagged). No verdicts
    score 0, and blank texts are judged like any others. Failed when no model gives verdicts.
    """

    name: ClassVar[str] = "spring-ai-ragas:faithfulness"
    most: ClassVar[int] = 2
    needs = frozenset({"user_input", "response", "retrieved_contexts"})
    breaks: ClassVar[Mapping[str, str]] = _JUDGED

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input, response = sample.require("user_input"), sample.require("response")
        context = "\n".join(each.text for each in sample.contexts)
        panel = self.panel(sample)
        values = {"user_input": user_input, "response": response}
        stated = yield from panel.ask(
            self.names, "faithfulness.statements", values, likely=_LIKELY_STATEMENTS, read=_statements
        )
        asks = [
            ModelRequest(
                role, "faithfulness.verdicts", {"context": context, "statements": numbered(each.value)}, _likely(each)
            )
            for role, each in stated.items()
        ]
        replies = [each for each in (yield from panel.read(asks, _verdicts)) if each is not None]
        if any(len(each.value) != len(stated[each.role].value) for each in replies):
            panel.flags.add("a model gave another number of verdicts than statements")
        by_role = {reply.role: reply for reply in replies}
        return self.shares(panel, by_role, ("statements", "supported"), what="verdict")


def _likely(stated: ReadReply[tuple[str, ...]]) -> str:
    items = ", ".join('{"statement": "A statement.", "reason": "A reason.", "verdict": 1}' for _ in stated.value)
    return f'{{"verdicts": [{items}]}}'


def _claims(value: object) -> tuple[JudgedText, ...]:
    """Return the claims, those that the contexts do not support as 1."""
    return tuple(
        JudgedText(text_or_blank(fields, "claim"), float(text_or_blank(fields, "status").upper() in _UNSUPPORTED))
        for fields in objects_in(value, "claims")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Hallucination(ScoresEmpty):
    """Share of the response's claims that the contexts do not support, by one or several models.

    Formula: Average over models of (HALLUCINATED + CONTRADICTED) / claims.
    Questions: One request for each model.
    Not: Where nothing to judge must not look like the best score. Take faithfulness.
    See: faithfulness | spring-ai-ragas:faithfulness
    Source: spring-ai-ragas 0.3.3, HallucinationMetric.

    One request a model, against the contexts joined line by line; any other status counts as fine. No claims score 0,
    which is the best score here, and blank texts are judged like any others. Failed when no reply can be read.
    """

    name: ClassVar[str] = "spring-ai-ragas:hallucination"
    higher_is_better: ClassVar[bool] = False
    needs = frozenset({"user_input", "response", "retrieved_contexts"})
    breaks: ClassVar[Mapping[str, str]] = _JUDGED

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input, response = sample.require("user_input"), sample.require("response")
        context = "\n".join(each.text for each in sample.contexts)
        panel = self.panel(sample)
        values = {"user_input": user_input, "context": context, "response": response}
        likely = '{"claims": [{"claim": "A claim.", "status": "SUPPORTED", "reason": "A reason."}]}'
        replies = yield from panel.ask(self.names, "hallucination", values, likely=likely, read=_claims)
        return self.shares(panel, replies, ("claims", "unsupported"), what="claim")


@dataclass(frozen=True, slots=True)
class _Questions:
    texts: tuple[str, ...]
    all_noncommittal: bool


def _questions(value: object) -> _Questions:
    found = objects_in(or_nothing(value), "questions")
    marks = [whole_or_none(fields, "noncommittal") for fields in found]
    if next((mark for mark in marks if mark != 1), 1) is None:  # the published code reads them up to the first 0
        raise ReplyFault(NULL)
    texts = tuple(text_or_blank(fields, "question") for fields in found)
    return _Questions(texts, bool(marks) and all(mark == 1 for mark in marks))


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseRelevancy(ScoresEmpty):
    """How like the user input are the questions that the response could answer.

    Formula: Average over models of the mean cosine of its questions with the user input; 0 if all noncommittal.
    Questions: One request for each model, and one for vectors for each model.
    Not: Across embedding models: cosines of different models cannot be compared. Take answer_relevancy.
    See: answer_relevancy
    Source: spring-ai-ragas 0.3.3, ResponseRelevancyMetric.

    One request a model for all questions, then one for the vectors of each model's questions. A model without
    questions drops out, one whose questions are all blank scores 0. A vector without length has cosine 0. Failed when
    no model has a score.

    - `number_of_questions`: how many are asked for; as many as come count.
    """

    name: ClassVar[str] = "spring-ai-ragas:response_relevancy"
    most: ClassVar[int] = 2
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    needs = frozenset({"user_input", "response"})
    asks = Kinds({Completion, Embeddings})

    number_of_questions: int = 3

    def __post_init__(self) -> None:
        ScoresEmpty.__post_init__(self)
        if self.number_of_questions < 1:
            raise UsageError(
                f"Metric {self.name!r} takes number_of_questions of at least 1, got {self.number_of_questions}."
            )

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        if (nothing := self.nothing(sample, ("user_input", "response"))) is not None:
            return nothing
        panel, user_input = self.panel(sample), sample.require("user_input")
        values = {
            "user_input": user_input,
            "response": sample.require("response"),
            "number_of_questions": str(self.number_of_questions),
        }
        likely = '{"questions": [{"question": "A question?", "noncommittal": 0}]}'
        replies = yield from panel.ask(self.names, "response_relevancy", values, likely=likely, read=_questions)
        asked = {role: reply for role, reply in replies.items() if reply.value.texts}
        if len(asked) < len(replies):
            panel.flags.add("a model gave no question and was left out")
        scores = yield from self._scores(panel, user_input, asked)
        evidence = [
            reply.evidence(EvidenceTarget.STATEMENT, index, text=text)
            for reply in asked.values()
            for index, text in enumerate(reply.value.texts)
        ]
        return self.outcome(panel, scores, evidence, {"questions": len(evidence)})

    def _scores(
        self, panel: Panel, user_input: str, asked: Mapping[str, ReadReply[_Questions]]
    ) -> Plan[dict[str, float]]:
        texts = {
            role: tuple(text for text in reply.value.texts if text.strip())
            for role, reply in asked.items()
            if not reply.value.all_noncommittal
        }
        questions = {role: Embeddings((user_input, *own), role=self.names[0]) for role, own in texts.items() if own}
        vectors = yield from together([attempt(question) for question in questions.values()])
        scores: dict[str, float] = {}
        for role in asked:
            if role in texts and not texts[role]:
                scores[role] = self.share(panel, 0, 0, "question that is not blank")
            elif role not in texts:
                scores[role] = 0.0
        for (role, question), matrix in zip(questions.items(), vectors, strict=True):
            if isinstance(matrix, Failure):
                panel.lose(AskFailed(question, matrix))
            else:
                scores[role] = _likeness(matrix)
        return {role: scores[role] for role in asked if role in scores}


def _likeness(matrix: MatrixVerdict) -> float:
    first = matrix.row(0)
    return mean(cosine(first, matrix.row(index)) or 0.0 for index in range(1, matrix.rows))
