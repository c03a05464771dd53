"""The evidence for a score, in the form that axion documents: one class for each metric."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final, TypeVar, cast

from merilo.judging.kinds.relevance import RelevanceVerdict
from merilo.judging.kinds.support import SupportVerdict
from merilo.judging.kinds.usefulness import UsefulnessVerdict
from merilo.metrics.base import EvidenceTarget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from _typeshed import DataclassInstance

    from merilo.compat.axion.dataset import DatasetItem
    from merilo.metrics.base import Evidence, Score

T = TypeVar("T")

_DIGITS: Final = 2


class Signals:
    """Evidence fields in a fixed order; printed as `Name({...})` with numbers of two digits."""

    __slots__ = ()

    def __str__(self) -> str:
        shown = {name: _rounded(value) for name, value in asdict(cast("DataclassInstance", self)).items()}
        return f"{type(self).__name__}(\n{json.dumps(shown, ensure_ascii=False, indent=4)}\n)"

    __repr__ = __str__


def _rounded(value: object) -> object:
    return round(value, _DIGITS) if isinstance(value, float) else value


@dataclass(frozen=True, slots=True)
class RelevantChunk:
    """A chunk that was judged for its relevance."""

    chunk_text: str
    is_relevant: bool


@dataclass(frozen=True, slots=True)
class UsefulChunk:
    """A chunk that was judged for its usefulness for the expected output."""

    chunk_text: str
    is_useful: bool


@dataclass(frozen=True, slots=True)
class UtilizedChunk:
    """A chunk that was judged for its relevance and, if relevant, for its use in the output."""

    chunk_text: str
    is_relevant: bool
    is_utilized: bool


@dataclass(frozen=True, slots=True)
class SupportedStatement:
    """A statement that was compared with a text."""

    statement_text: str
    is_supported: bool


@dataclass(frozen=True, slots=True)
class RelevantStatement:
    """A statement of the output that was judged for its relevance."""

    statement_text: str
    is_relevant: bool


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim of the output with the weight of its verdict."""

    claim_text: str
    verdict_score: float


@dataclass(frozen=True, slots=True, repr=False)
class ContextualRelevancyResult(Signals):
    """Signals of ContextualRelevancy. `relevant_chunks` is None if the chunks were judged together."""

    relevancy_score: float | None
    total_chunks: int
    relevant_chunks: int | None
    chunk_breakdown: tuple[RelevantChunk, ...]


@dataclass(frozen=True, slots=True, repr=False)
class ContextualRankingResult(Signals):
    """Signals of ContextualRanking."""

    ranking_score: float | None
    total_chunks: int
    relevant_chunks: int
    chunk_breakdown: tuple[RelevantChunk, ...]


@dataclass(frozen=True, slots=True, repr=False)
class ContextualPrecisionResult(Signals):
    """Signals of ContextualPrecision."""

    precision_score: float | None
    total_chunks: int
    useful_chunks: int
    chunk_breakdown: tuple[UsefulChunk, ...]


@dataclass(frozen=True, slots=True, repr=False)
class ContextualRecallResult(Signals):
    """Signals of ContextualRecall."""

    recall_score: float | None
    total_statements: int
    supported_statements: int
    statement_breakdown: tuple[SupportedStatement, ...]


@dataclass(frozen=True, slots=True, repr=False)
class ContextualSufficiencyResult(Signals):
    """Signals of ContextualSufficiency."""

    sufficiency_score: float | None
    total_chunks: int
    is_sufficient: bool | None


@dataclass(frozen=True, slots=True, repr=False)
class ContextualUtilizationResult(Signals):
    """Signals of ContextualUtilization."""

    utilization_score: float | None
    total_chunks: int
    relevant_chunks: int
    utilized_chunks: int
    chunk_breakdown: tuple[UtilizedChunk, ...]


@dataclass(frozen=True, slots=True, repr=False)
class FaithfulnessResult(Signals):
    """Signals of Faithfulness."""

    faithfulness_score: float | None
    total_claims: int
    fully_supported_claims: int
    partially_supported_claims: int
    no_evidence_claims: int
    contradictory_claims: int
    claim_breakdown: tuple[JudgedClaim, ...]


@dataclass(frozen=True, slots=True, repr=False)
class AnswerRelevancyResult(Signals):
    """Signals of AnswerRelevancy."""

    relevancy_score: float | None
    total_statements: int
    relevant_statements: int
    statement_breakdown: tuple[RelevantStatement, ...]


@dataclass(frozen=True, slots=True, repr=False)
class FactualAccuracyResult(Signals):
    """Signals of FactualAccuracy."""

    accuracy_score: float | None
    total_statements: int
    supported_statements: int
    statement_breakdown: tuple[SupportedStatement, ...]


@dataclass(frozen=True, slots=True)
class SignalText:
    """Signals, with a summary of them in a few words."""

    signals: Signals
    words: str


def relevancy(item: DatasetItem, score: Score | None) -> SignalText:
    """Return the signals of ContextualRelevancy."""
    if score is not None and score.counts.get("relevant", 0) is None:
        total = len(item.retrieved_content or ())
        return SignalText(ContextualRelevancyResult(score.value, total, None, ()), f"{total} chunks judged together")
    chunks = _chunks(item, score)
    relevant = sum(chunk.is_relevant for chunk in chunks)
    signals = ContextualRelevancyResult(_value(score), _total(item, score, chunks), relevant, chunks)
    return SignalText(signals, f"{relevant} of {len(chunks)} chunks relevant")


def ranking(item: DatasetItem, score: Score | None) -> SignalText:
    """Return the signals of ContextualRanking."""
    chunks = _chunks(item, score)
    relevant = sum(chunk.is_relevant for chunk in chunks)
    signals = ContextualRankingResult(_value(score), _total(item, score, chunks), relevant, chunks)
    return SignalText(signals, f"{relevant} of {len(chunks)} chunks relevant")


def precision(item: DatasetItem, score: Score | None) -> SignalText:
    """Return the signals of ContextualPrecision."""
    flags = _by_context(score)
    texts = () if score is None else item.retrieved_content or ()
    chunks = tuple(UsefulChunk(text, flags.get(index, False)) for index, text in enumerate(texts))
    useful = sum(chunk.is_useful for chunk in chunks)
    signals = ContextualPrecisionResult(_value(score), _total(item, score, chunks), useful, chunks)
    return SignalText(signals, f"{useful} of {len(chunks)} chunks useful")


def recall(item: DatasetItem, score: Score | None) -> SignalText:
    """Return the signals of ContextualRecall."""
    del item
    pieces = _statements(score)
    judged = tuple(SupportedStatement(piece.text, _is_true(piece)) for piece in pieces)
    total, supported = _count(score, "judged", "statements"), sum(each.is_supported for each in judged)
    signals = ContextualRecallResult(_value(score), total, supported, judged)
    return SignalText(signals, f"{supported} of {total} statements supported")


def sufficiency(item: DatasetItem, score: Score | None) -> SignalText:
    """Return the signals of ContextualSufficiency."""
    total = len(item.retrieved_content or ())
    enough = None if score is None else bool(score.value)
    signals = ContextualSufficiencyResult(_value(score), total, enough)
    return SignalText(signals, f"{total} chunks {'sufficient' if enough else 'not sufficient'}")


def utilization(item: DatasetItem, score: Score | None) -> SignalText:
    """Return the signals of ContextualUtilization."""
    first: dict[int, bool] = {}
    second: dict[int, bool] = {}
    for piece in (
        () if score is None else score.evidence
    ):  # the first verdict on a chunk is on relevance, the second on use
        (second if piece.index in first else first)[piece.index] = _is_true(piece)
    texts = () if score is None else item.retrieved_content or ()
    chunks = tuple(
        UtilizedChunk(text, first.get(index, False), second.get(index, False)) for index, text in enumerate(texts)
    )
    relevant, used = _count(score, "relevant"), _count(score, "utilized")
    signals = ContextualUtilizationResult(_value(score), len(item.retrieved_content or ()), relevant, used, chunks)
    return SignalText(signals, f"{used} of {relevant} relevant chunks used")


def faithfulness(item: DatasetItem, score: Score | None) -> SignalText:
    """Return the signals of Faithfulness."""
    del item
    claims = tuple(JudgedClaim(piece.text, piece.value or 0.0) for piece in _statements(score))
    signals = FaithfulnessResult(
        _value(score),
        _count(score, "claims"),
        _count(score, "fully_supported"),
        _count(score, "partially_supported"),
        _count(score, "no_evidence"),
        _count(score, "contradictory"),
        claims,
    )
    return SignalText(signals, f"{signals.fully_supported_claims} of {signals.total_claims} claims fully supported")


def answer_relevancy(item: DatasetItem, score: Score | None) -> SignalText:
    """Return the signals of AnswerRelevancy."""
    del item
    judged = tuple(RelevantStatement(piece.text, _is_true(piece)) for piece in _statements(score))
    total, relevant = _count(score, "counted"), _count(score, "relevant")
    signals = AnswerRelevancyResult(_value(score), total, relevant, judged)
    return SignalText(signals, f"{relevant} of {total} statements relevant")


def factual_accuracy(item: DatasetItem, score: Score | None) -> SignalText:
    """Return the signals of FactualAccuracy."""
    del item
    judged = tuple(SupportedStatement(piece.text, _is_true(piece)) for piece in _statements(score))
    total, supported = _count(score, "judged"), _count(score, "supported")
    signals = FactualAccuracyResult(_value(score), total, supported, judged)
    return SignalText(signals, f"{supported} of {total} statements supported")


def _value(score: Score | None) -> float | None:
    return None if score is None else score.value


def _count(score: Score | None, *names: str) -> int:
    """Return the first of these counts that the score has; 0 if it has none."""
    if score is None:
        return 0
    return next((count for name in names if (count := score.counts.get(name)) is not None), 0)


def _total(item: DatasetItem, score: Score | None, judged: Sequence[object]) -> int:
    """Return the number of judged chunks; all retrieved ones if there is no score."""
    return len(item.retrieved_content or ()) if score is None else len(judged)


def _chunks(item: DatasetItem, score: Score | None) -> tuple[RelevantChunk, ...]:
    """Return the judged chunks: fewer than retrieved if the judge left some out, none without a score."""
    texts = () if score is None else tuple(item.retrieved_content or ())[: _count(score, "judged", "contexts")]
    flags = _by_context(score)
    return tuple(RelevantChunk(text, flags.get(index, False)) for index, text in enumerate(texts))


def _by_context(score: Score | None) -> dict[int, bool]:
    pieces = () if score is None else score.evidence
    return {piece.index: _is_true(piece) for piece in pieces if piece.about is EvidenceTarget.CONTEXT}


def _statements(score: Score | None) -> tuple[Evidence, ...]:
    pieces = () if score is None else score.evidence
    return tuple(piece for piece in pieces if piece.about is EvidenceTarget.STATEMENT)


def _is_true(piece: Evidence) -> bool:
    """Return True for a positive verdict: by the number read from free text, otherwise by the verdict's own field."""
    if piece.value is not None:
        return piece.value > 0
    match piece.verdict:
        case RelevanceVerdict(grade=grade):
            return grade >= 1
        case UsefulnessVerdict(useful=useful):
            return useful
        case SupportVerdict():
            return piece.verdict.supported
        case _:
            return False
