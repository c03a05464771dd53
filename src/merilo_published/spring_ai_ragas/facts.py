"""The metrics of spring-ai-ragas that hold the response to a reference: facts, likeness, and both together."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.errors import UsageError
from merilo.judging.ask import AskFailed, ask
from merilo.judging.kinds.completion import Completion
from merilo.judging.kinds.embeddings import Embeddings
from merilo.metrics.base import Evidence, Kinds, Score, Undefined
from merilo.metrics.formulas import cosine, f_measure
from merilo_published.replies import ReplyFault
from merilo_published.spring_ai_ragas.models import (
    DISAGREE,
    JudgedText,
    ModelRequest,
    NoConsensus,
    Panel,
    ScoresEmpty,
    fields_of,
    judged_evidence,
    numbered,
    objects_in,
    or_nothing,
    text_or_blank,
    texts_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan
    from merilo.judging.matrix import MatrixVerdict
    from merilo_published.asking import ReadReply


_NEEDS: Final = ("response", "reference")


class Mode(StrEnum):
    """The number to report."""

    F1 = "f1"
    PRECISION = "precision"
    RECALL = "recall"


Claims = tuple[str, ...]
_Checks = tuple[JudgedText, ...]


def _claims(value: object) -> Claims:
    if fields_of(or_nothing(value)).get("claims") is None:
        raise ReplyFault('The reply has no "claims".')
    return texts_of(value, "claims")


def _checks(value: object) -> _Checks:
    return tuple(
        JudgedText(text_or_blank(fields, "claim"), float(text_or_blank(fields, "verdict").upper() == "SUPPORTED"))
        for fields in objects_in(or_nothing(value), "verdicts")
    )


def _likely(claims: Claims) -> str:
    items = ", ".join('{"claim": "A claim.", "verdict": "SUPPORTED", "reason": "A reason."}' for _ in claims)
    return f'{{"verdicts": [{items}]}}'


@dataclass(frozen=True, slots=True)
class Compared:
    """The verdicts of the models on the claims of response and reference, by role."""

    response: Mapping[str, ReadReply[_Checks]]
    """Claims of the response against the reference: precision."""
    reference: Mapping[str, ReadReply[_Checks]]
    """Claims of the reference against the response: recall."""

    @property
    def evidence(self) -> list[Evidence]:
        """Every claim with its verdict, those of the response first."""
        return judged_evidence([*self.response.values(), *self.reference.values()])

    @property
    def counts(self) -> dict[str, int | None]:
        """The numbers of claims and of supported claims, over all models."""
        found: dict[str, int | None] = {}
        for name, side in (("response", self.response), ("reference", self.reference)):
            checks = [judged.value for reply in side.values() for judged in reply.value]
            found |= {f"{name}_claims": len(checks), f"{name}_supported": int(sum(checks))}
        return found


def _compared(panel: Panel, names: tuple[str, ...], response: str, reference: str) -> Plan[Compared]:
    """Return the claims of both texts, checked against each other; a model that fails at a step drops out."""
    likely = '{"claims": ["A claim."]}'
    rubric = "factual_correctness.claims"
    mine = yield from panel.ask(names, rubric, {"text": response}, likely=likely, read=_claims)
    theirs = yield from panel.ask(tuple(mine), rubric, {"text": reference}, likely=likely, read=_claims)
    checked = tuple(theirs)
    asks = [
        ModelRequest(
            role,
            "factual_correctness.verdicts",
            {"context": against, "claims": numbered(side[role].value)},
            _likely(side[role].value),
        )
        for role in checked
        for side, against in ((mine, reference), (theirs, response))
    ]
    replies = yield from panel.read(asks, _checks)
    pairs = zip(checked, replies[::2], replies[1::2], strict=True)
    whole = {role: (own, other) for role, own, other in pairs if own is not None and other is not None}
    return Compared(
        {role: own for role, (own, _) in whole.items()}, {role: other for role, (_, other) in whole.items()}
    )


def _supported(reply: ReadReply[_Checks]) -> float | None:
    return sum(judged.value for judged in reply.value) / len(reply.value) if reply.value else None


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
    most: ClassVar[int] = 4
    needs = frozenset(_NEEDS)

    mode: Mode = Mode.F1

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        if (nothing := self.nothing(sample, _NEEDS)) is not None:
            return nothing
        panel = self.panel(sample)
        found = yield from _compared(panel, self.names, sample.require("response"), sample.require("reference"))
        scores = {role: self._score(panel, found, role) for role in found.response}
        return self.outcome(panel, scores, found.evidence, found.counts)

    def _score(self, panel: Panel, found: Compared, role: str) -> float:
        parts = {Mode.PRECISION: _supported(found.response[role]), Mode.RECALL: _supported(found.reference[role])}
        wanted = parts if self.mode is Mode.F1 else {self.mode: parts[self.mode]}
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
    asks = Kinds({Embeddings})

    threshold: float | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """One role: the run sends vectors to its embedder, whatever other roles it has."""
        return (self._bound or self._named or ("judge",))[:1]

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        if (nothing := self.nothing(sample, _NEEDS)) is not None:
            return nothing
        texts = (sample.require("response"), sample.require("reference"))
        likeness = _likeness((yield from ask(Embeddings(texts, role=self.names[0]))))
        return Score(float(likeness >= self.threshold) if self.threshold and self.threshold > 0 else likeness)


def _likeness(matrix: MatrixVerdict) -> float:
    return cosine(matrix.row(0), matrix.row(1)) or 0.0


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
    asks = Kinds({Completion, Embeddings})
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({**ScoresEmpty.breaks, "failures": "a lost part scores 0"})

    factual_weight: float = 0.75
    semantic_weight: float = 0.25

    def __post_init__(self) -> None:
        ScoresEmpty.__post_init__(self)
        if min(self.factual_weight, self.semantic_weight) < 0 or not self.factual_weight + self.semantic_weight > 0:
            raise UsageError(
                f"Metric {self.name!r} takes weights of at least 0 that are not both 0, "
                f"got factual_weight={self.factual_weight} and semantic_weight={self.semantic_weight}."
            )

    def max_questions(self, sample: Sample) -> int:
        return 4 * len(self.names) + 1 if self.needs <= sample.present else 0

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        if (nothing := self.nothing(sample, _NEEDS)) is not None:
            return nothing
        panel, texts = self.panel(sample), (sample.require("response"), sample.require("reference"))
        found = yield from _compared(panel, self.names, *texts)
        scores = [_f1(found, role) for role in found.response]
        try:
            factual = self.combined(scores) if scores else self._zero(panel, "factual correctness")
        except NoConsensus:
            return Undefined(DISAGREE)
        try:
            likeness = _likeness((yield from ask(Embeddings(texts, role=self.names[0]))))
        except AskFailed:
            likeness = self._zero(panel, "semantic similarity")
        total = self.factual_weight + self.semantic_weight
        value = self.factual_weight / total * factual + self.semantic_weight / total * likeness
        return Score(min(1.0, max(-1.0, value)), tuple(found.evidence), found.counts, panel.flags.phrases)

    @staticmethod
    def _zero(panel: Panel, part: str) -> float:
        panel.flags.add(f"{part} could not be found out and was scored 0")
        return 0.0


def _f1(found: Compared, role: str) -> float:
    return f_measure(_supported(found.response[role]) or 0.0, _supported(found.reference[role]) or 0.0)
