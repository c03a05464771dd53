"""The metrics of spring-ai-ragas that hold the response to the contexts, to the question and to a reference."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.judging.ask import AskFailed, Plan, attempt, together
from merilo.judging.kinds.measured import Embeddings, MatrixVerdict
from merilo.judging.kinds.responses import Completion
from merilo.judging.verdicts import Failure
from merilo.metrics.base import Evidence, EvidenceTarget, Kinds, Score, Undefined
from merilo.metrics.formulas import cosine, f_measure, mean
from merilo_published.asking import Fields, ReadReply, ReplyFault, numbered
from merilo_published.definition import FactualMode, cosines
from merilo_published.spring_ai_ragas.models import (
    DISAGREE,
    NULL,
    JudgedTexts,
    Panel,
    ScoresEmpty,
    fields_of,
    json_template,
    judged_evidence,
    judged_texts,
    objects_in,
    or_nothing,
    text_or_blank,
    texts_of,
    whole_or_none,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.data.sample import Sample


_JUDGED: Final[Mapping[str, str]] = MappingProxyType({"nothing to judge": "it scores 0"})
_UNSUPPORTED: Final = frozenset({"HALLUCINATED", "CONTRADICTED"})
_STATED: Final = json_template(
    "faithfulness.statements",
    '{"statements": ["A statement of the response."]}',
    lambda value: texts_of(value, "statements"),
)
_VERDICTS: Final = json_template(
    "faithfulness.verdicts",
    '{"verdicts": [{"statement": "A statement.", "reason": "A reason.", "verdict": 1}]}',
    lambda value: judged_texts(
        value, "verdicts", "statement", lambda fields: float(whole_or_none(fields, "verdict") == 1)
    ),
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
    needs = frozenset({"user_input", "response", "retrieved_contexts"})
    breaks: ClassVar[Mapping[str, str]] = _JUDGED

    def judged(self, sample: Sample, panel: Panel) -> Plan[Score | Undefined]:
        user_input, response = sample.require("user_input"), sample.require("response")
        context = "\n".join(each.text for each in sample.contexts)
        values = {"user_input": user_input, "response": response}
        stated = yield from panel.ask(_STATED, self.names, values)
        asked = [(role, {"context": context, "statements": numbered(each.value)}) for role, each in stated.items()]
        replies = [each for each in (yield from panel.read(_VERDICTS, asked)) if each is not None]
        if any(len(each.value) != len(stated[each.role].value) for each in replies):
            panel.flags["a model gave another number of verdicts than statements"] = None
        by_role = {reply.role: reply for reply in replies}
        return self.shares(panel, by_role, ("statements", "supported"), what="verdict")


def _unsupported(fields: Fields) -> float:
    return float(text_or_blank(fields, "status").upper() in _UNSUPPORTED)


_CLAIMS: Final = json_template(
    "hallucination",
    '{"claims": [{"claim": "A claim.", "status": "SUPPORTED", "reason": "A reason."}]}',
    lambda value: judged_texts(fields_of(value), "claims", "claim", _unsupported),
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

    def judged(self, sample: Sample, panel: Panel) -> Plan[Score | Undefined]:
        user_input, response = sample.require("user_input"), sample.require("response")
        context = "\n".join(each.text for each in sample.contexts)
        values = {"user_input": user_input, "context": context, "response": response}
        replies = yield from panel.ask(_CLAIMS, self.names, values)
        return self.shares(panel, replies, ("claims", "unsupported"), what="claim")


_Questions = tuple[tuple[str, ...], bool]
"""The questions of a reply, and whether all are noncommittal."""


def _questions(value: object) -> _Questions:
    found = objects_in(or_nothing(value), "questions")
    marks = [whole_or_none(fields, "noncommittal") for fields in found]
    if next((mark for mark in marks if mark != 1), 1) is None:  # the published code reads them up to the first 0
        raise ReplyFault(NULL)
    texts = tuple(text_or_blank(fields, "question") for fields in found)
    return texts, bool(marks) and all(mark == 1 for mark in marks)


_QUESTIONS: Final = json_template(
    "response_relevancy", '{"questions": [{"question": "A question?", "noncommittal": 0}]}', _questions
)


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
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    needs = frozenset({"user_input", "response"})
    required = ("user_input", "response")
    asks = Kinds({Completion, Embeddings})

    number_of_questions: int = 3

    def judged(self, sample: Sample, panel: Panel) -> Plan[Score | Undefined]:
        user_input = sample.require("user_input")
        values = {
            "user_input": user_input,
            "response": sample.require("response"),
            "number_of_questions": str(self.number_of_questions),
        }
        replies = yield from panel.ask(_QUESTIONS, self.names, values)
        asked = {role: reply for role, reply in replies.items() if reply.value[0]}
        if len(asked) < len(replies):
            panel.flags["a model gave no question and was left out"] = None
        scores = yield from self._scores(panel, user_input, asked)
        evidence = [
            reply.evidence(EvidenceTarget.STATEMENT, index, text=text)
            for reply in asked.values()
            for index, text in enumerate(reply.value[0])
        ]
        return self.outcome(panel, scores, evidence, {"questions": len(evidence)})

    def _scores(
        self, panel: Panel, user_input: str, asked: Mapping[str, ReadReply[_Questions]]
    ) -> Plan[dict[str, float]]:
        texts = {
            role: tuple(text for text in reply.value[0] if text.strip())
            for role, reply in asked.items()
            if not reply.value[1]
        }
        questions = {role: Embeddings((user_input, *own), role=self.names[0]) for role, own in texts.items() if own}
        vectors = yield from together([attempt(question) for question in questions.values()])
        scores = dict.fromkeys(asked.keys() - questions.keys(), 0.0)
        if not all(texts.values()):
            self.share(panel, 0, 0, "question that is not blank")
        for (role, question), matrix in zip(questions.items(), vectors, strict=True):
            if isinstance(matrix, Failure):
                panel.lose(AskFailed(question, matrix))
            else:
                scores[role] = _mean_cosine(matrix)
        return {role: scores[role] for role in asked if role in scores}


def _mean_cosine(matrix: MatrixVerdict) -> float:
    first = matrix.row(0)
    return mean(cosine(first, matrix.row(index)) or 0.0 for index in range(1, matrix.rows))


_NEEDS: Final = ("response", "reference")


Claims = tuple[str, ...]


def _facts(value: object) -> Claims:
    if fields_of(or_nothing(value)).get("claims") is None:
        raise ReplyFault('The reply has no "claims".')
    return texts_of(value, "claims")


def _is_supported(fields: Fields) -> float:
    return float(text_or_blank(fields, "verdict").upper() == "SUPPORTED")


_FACTS: Final = json_template("factual_correctness.claims", '{"claims": ["A claim."]}', _facts)
_CHECKS: Final = json_template(
    "factual_correctness.verdicts",
    '{"verdicts": [{"claim": "A claim.", "verdict": "SUPPORTED", "reason": "A reason."}]}',
    lambda value: judged_texts(value, "verdicts", "claim", _is_supported),
)


Compared = dict[str, tuple[ReadReply[JudgedTexts], ReadReply[JudgedTexts]]]
"""Role → the verdicts of the model on the claims of the response, for precision, and of the reference, for recall."""


def _compared(panel: Panel, names: tuple[str, ...], response: str, reference: str) -> Plan[Compared]:
    """Return the claims of both texts, checked against each other; a model that fails at a step drops out."""
    mine = yield from panel.ask(_FACTS, names, {"text": response})
    theirs = yield from panel.ask(_FACTS, mine, {"text": reference})
    asked = [
        (role, {"context": against, "claims": numbered(side[role].value)})
        for role in theirs
        for side, against in ((mine, reference), (theirs, response))
    ]
    replies = yield from panel.read(_CHECKS, asked)
    pairs = zip(theirs, replies[::2], replies[1::2], strict=True)
    return {role: (own, other) for role, own, other in pairs if own is not None and other is not None}


def _shown(found: Compared) -> tuple[list[Evidence], dict[str, int | None]]:
    """Return every claim with its verdict, those of the response first, and the numbers over all models."""
    sides = {"response": [own for own, _ in found.values()], "reference": [other for _, other in found.values()]}
    counts: dict[str, int | None] = {}
    for name, replies in sides.items():
        checks = [value for reply in replies for value, _ in reply.value]
        counts |= {f"{name}_claims": len(checks), f"{name}_supported": int(sum(checks))}
    return judged_evidence([reply for replies in sides.values() for reply in replies]), counts


def _supported(reply: ReadReply[JudgedTexts]) -> float | None:
    return sum(value for value, _ in reply.value) / len(reply.value) if reply.value else None


@dataclass(frozen=True, slots=True, kw_only=True)
class FactualCorrectness(ScoresEmpty):
    """How far response and reference state the same facts, by one or several models.

    Formula: Average over models of F1 of supported claims (or precision, or recall).
    Questions: Four requests for each model.
    Not: Without a reference that says all that a good response says.
    See: spring-ai-ragas:answer_correctness | spring-ai-ragas:answer_accuracy
    Source: spring-ai-ragas 0.3.3, FactualCorrectnessMetric.

    Precision: SUPPORTED / verdicts on the response's claims against the reference; recall the other way round; F1 is 0
    if both are 0. Four requests a model: claims of the response, claims of the reference, and verdicts on both. A
    model that fails at one of them drops out; failed when all do.

    - `mode`: f1, precision or recall; all four requests are made in any case.
    """

    name: ClassVar[str] = "spring-ai-ragas:factual_correctness"
    needs = frozenset(_NEEDS)
    required = _NEEDS

    mode: FactualMode = FactualMode.F1

    def judged(self, sample: Sample, panel: Panel) -> Plan[Score | Undefined]:
        found = yield from _compared(panel, self.names, sample.require("response"), sample.require("reference"))
        scores = {role: self._score(panel, *pair) for role, pair in found.items()}
        return self.outcome(panel, scores, *_shown(found))

    def _score(self, panel: Panel, own: ReadReply[JudgedTexts], other: ReadReply[JudgedTexts]) -> float:
        parts = {FactualMode.PRECISION: _supported(own), FactualMode.RECALL: _supported(other)}
        wanted = parts if self.mode is FactualMode.F1 else {self.mode: parts[self.mode]}
        if None in wanted.values():
            self.share(panel, 0, 0, "claim")
        values = [value or 0.0 for value in wanted.values()]
        return f_measure(*values) if len(values) > 1 else values[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticSimilarity(ScoresEmpty):
    """The cosine between the vectors of response and reference.

    Formula: Cosine of the two vectors; with a threshold 1 or 0.
    Questions: One request for vectors.
    Undefined: none
    Not: To tell right from wrong: a text and its denial are alike.
    See: spring-ai-ragas:factual_correctness | spring-ai-ragas:answer_correctness
    Source: spring-ai-ragas 0.3.3, SemanticSimilarityMetric.

    One request for both vectors, to the embedder of the run; `models` and `aggregator` have nothing to choose from.

    - `threshold`: above 0, the score is 1 from this cosine on and 0 below it.
    """

    name: ClassVar[str] = "spring-ai-ragas:semantic_similarity"
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    needs = frozenset(_NEEDS)
    required = _NEEDS
    asks = Kinds({Embeddings})

    threshold: float | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """One role: the run sends vectors to its embedder, whatever other roles it has."""
        return (self._bound or self._named or ("judge",))[:1]

    def judged(self, sample: Sample, panel: Panel) -> Plan[Score | Undefined]:
        del panel
        texts = (sample.require("response"), sample.require("reference"))
        likeness = yield from _likeness(*texts, self.names[0])
        return Score(float(likeness >= self.threshold) if self.threshold and self.threshold > 0 else likeness)


def _likeness(response: str, reference: str, role: str) -> Plan[float]:
    found, _ = yield from cosines(response, [reference], role=role)
    return found[0] if found else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCorrectness(ScoresEmpty):
    """Weighted mean of factual correctness and semantic similarity.

    Formula: (0.75 factual F1 + 0.25 cosine) / (0.75 + 0.25).
    Questions: Four requests for each model, and one for vectors.
    Not: To know what is wrong: the two parts say more than their mean.
    See: spring-ai-ragas:factual_correctness | spring-ai-ragas:semantic_similarity
    Source: spring-ai-ragas 0.3.3, AnswerCorrectnessMetric.

    In spring-ai-ragas all models are asked, whatever `models` says. The requests are those of factual_correctness and
    of semantic_similarity, one after the other. A part that fails counts as 0, flagged.

    - `factual_weight`, `semantic_weight`: at least 0, not both 0.
    """

    name: ClassVar[str] = "spring-ai-ragas:answer_correctness"
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    needs = frozenset(_NEEDS)
    required = _NEEDS
    asks = Kinds({Completion, Embeddings})
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({**ScoresEmpty.breaks, "failures": "a lost part scores 0"})

    factual_weight: float = 0.75
    semantic_weight: float = 0.25

    def judged(self, sample: Sample, panel: Panel) -> Plan[Score | Undefined]:
        texts = (sample.require("response"), sample.require("reference"))
        found = yield from _compared(panel, self.names, *texts)
        scores = [f_measure(_supported(own) or 0.0, _supported(other) or 0.0) for own, other in found.values()]
        factual = self.combined(scores) if scores else self._zero(panel, "factual correctness")
        if factual is None:
            return Undefined(DISAGREE)
        try:
            likeness = yield from _likeness(*texts, self.names[0])
        except AskFailed:
            likeness = self._zero(panel, "semantic similarity")
        total = self.factual_weight + self.semantic_weight
        value = self.factual_weight / total * factual + self.semantic_weight / total * likeness
        evidence, counts = _shown(found)
        return Score(min(1.0, max(-1.0, value)), tuple(evidence), counts, tuple(panel.flags))

    @staticmethod
    def _zero(panel: Panel, part: str) -> float:
        panel.flags[f"{part} could not be found out and was scored 0"] = None
        return 0.0
