"""One metric's result on one item, and the evidence for a score, in the form that axion documents."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, make_dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, cast

from merilo.judging.kinds.relevance import RelevanceVerdict
from merilo.judging.kinds.support import SupportVerdict
from merilo.judging.kinds.usefulness import UsefulnessVerdict
from merilo.metrics.base import EvidenceTarget

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from _typeshed import DataclassInstance

    from merilo.metrics.base import Evidence, Outcome, Score

    from .dataset import DatasetItem

    Read = Callable[[DatasetItem, Score | None], "SignalText"]


class Interpretation(StrEnum):
    """Interpretations of a share of relevant chunks, by the unrounded score."""

    ALL = "All retrieved chunks are relevant"
    """1.0."""
    MOST = "Most chunks relevant, some noise"
    """From 0.7."""
    MIXED = "Mixed relevance"
    """From 0.5."""
    FEW = "Mostly irrelevant retrieval"
    """Below 0.5."""

    @classmethod
    def of(cls, score: float) -> Interpretation:
        """Return the words for a score in [0, 1]."""
        if score >= 1.0:
            return cls.ALL
        if score >= 0.7:
            return cls.MOST
        return cls.MIXED if score >= 0.5 else cls.FEW


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricResult:
    """A score with the evidence for it; `score` and `passed` are None if there is no number."""

    metric_name: str
    item: DatasetItem
    score: float | None
    """In [0, 1], not rounded."""
    threshold: float
    signals: Signals
    explanation: str
    """The score in a few words, or the reason why there is none."""
    interpretation: Interpretation | None = None
    """For ContextualRelevancy with a score."""
    flags: tuple[str, ...] = ()
    """Problems that were scored anyway, as axion's code does."""
    metadata: Mapping[str, str]
    """`mode`, the `judge` and the computed `definition`, as merilo writes it."""
    outcome: Outcome
    """merilo's own outcome, with the evidence."""

    @property
    def id(self) -> str | None:
        """The item's id."""
        return self.item.id

    @property
    def passed(self) -> bool | None:
        """True if the score reaches the threshold; None without a score."""
        return None if self.score is None else self.score >= self.threshold

    def __str__(self) -> str:
        return self.pretty()

    def pretty(self) -> str:
        """Return the result as text: the score with two digits first, then its meaning and problems."""
        if self.score is None:
            return f"Score: none ({self.explanation})"
        lines = [f"Score: {self.score:.2f} ({self.explanation})"]
        if self.interpretation is not None:
            lines.append(f"{self.interpretation}.")
        lines += [f"Note: {flag}." for flag in self.flags]
        return "\n".join(lines)


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


def _record(name: str, fields: str, base: type = object) -> Any:  # Any: a class of these fields
    made = make_dataclass(name, fields.split(), bases=(base,), frozen=True, slots=True, repr=base is object)
    made.__doc__ = f"Signals of {name.removesuffix('Result')}." if base is Signals else "A text with its verdict."
    return made


RelevantChunk = _record("RelevantChunk", "chunk_text is_relevant")
UsefulChunk = _record("UsefulChunk", "chunk_text is_useful")
UtilizedChunk = _record("UtilizedChunk", "chunk_text is_relevant is_utilized")
SupportedStatement = _record("SupportedStatement", "statement_text is_supported")
RelevantStatement = _record("RelevantStatement", "statement_text is_relevant")
JudgedClaim = _record("JudgedClaim", "claim_text verdict_score")

ContextualRelevancyResult = _record(
    "ContextualRelevancyResult", "relevancy_score total_chunks relevant_chunks chunk_breakdown", Signals
)
"""`relevant_chunks` is None if the chunks were judged together."""
ContextualRankingResult = _record(
    "ContextualRankingResult", "ranking_score total_chunks relevant_chunks chunk_breakdown", Signals
)
ContextualPrecisionResult = _record(
    "ContextualPrecisionResult", "precision_score total_chunks useful_chunks chunk_breakdown", Signals
)
ContextualRecallResult = _record(
    "ContextualRecallResult", "recall_score total_statements supported_statements statement_breakdown", Signals
)
ContextualSufficiencyResult = _record(
    "ContextualSufficiencyResult", "sufficiency_score total_chunks is_sufficient", Signals
)
ContextualUtilizationResult = _record(
    "ContextualUtilizationResult",
    "utilization_score total_chunks relevant_chunks utilized_chunks chunk_breakdown",
    Signals,
)
FaithfulnessResult = _record(
    "FaithfulnessResult",
    "faithfulness_score total_claims fully_supported_claims partially_supported_claims no_evidence_claims "
    "contradictory_claims claim_breakdown",
    Signals,
)
AnswerRelevancyResult = _record(
    "AnswerRelevancyResult", "relevancy_score total_statements relevant_statements statement_breakdown", Signals
)
FactualAccuracyResult = _record(
    "FactualAccuracyResult", "accuracy_score total_statements supported_statements statement_breakdown", Signals
)


@dataclass(frozen=True, slots=True)
class SignalText:
    """Signals, with a summary of them in a few words."""

    signals: Signals
    words: str


def _of_chunks(result: Any, piece: Any, word: str, *, all_chunks: bool = False) -> Read:
    """Return the reader of a metric that judges chunks; fewer than were retrieved if the judge left some out."""

    def read(item: DatasetItem, score: Score | None) -> SignalText:
        retrieved = tuple(item.retrieved_content or ())
        judged = len(retrieved) if all_chunks and score is not None else _count(score, "judged", "contexts")
        flags = _by_context(score)
        chunks = tuple(piece(text, flags.get(index, False)) for index, text in enumerate(retrieved[:judged]))
        found = sum(flags.get(index, False) for index in range(len(chunks)))
        total = len(retrieved) if score is None else len(chunks)
        return SignalText(result(_value(score), total, found, chunks), f"{found} of {len(chunks)} chunks {word}")

    return read


def _of_statements(result: Any, piece: Any, word: str, total: tuple[str, ...], found: str) -> Read:
    """Return the reader of a metric that judges statements. `total`, `found`: names of counts; "": the true ones."""

    def read(item: DatasetItem, score: Score | None) -> SignalText:
        del item
        flags = [(each.text, _is_true(each)) for each in _statements(score)]
        of, good = _count(score, *total), _count(score, found) if found else sum(flag for _, flag in flags)
        signals = result(_value(score), of, good, tuple(piece(*each) for each in flags))
        return SignalText(signals, f"{good} of {of} statements {word}")

    return read


_each_chunk = _of_chunks(ContextualRelevancyResult, RelevantChunk, "relevant")
ranking = _of_chunks(ContextualRankingResult, RelevantChunk, "relevant")
precision = _of_chunks(ContextualPrecisionResult, UsefulChunk, "useful", all_chunks=True)
recall = _of_statements(ContextualRecallResult, SupportedStatement, "supported", ("judged", "statements"), "")
answer_relevancy = _of_statements(AnswerRelevancyResult, RelevantStatement, "relevant", ("counted",), "relevant")
factual_accuracy = _of_statements(FactualAccuracyResult, SupportedStatement, "supported", ("judged",), "supported")


def relevancy(item: DatasetItem, score: Score | None) -> SignalText:
    """Return the signals of ContextualRelevancy."""
    if score is not None and score.counts.get("relevant", 0) is None:
        total = len(item.retrieved_content or ())
        return SignalText(ContextualRelevancyResult(score.value, total, None, ()), f"{total} chunks judged together")
    return _each_chunk(item, score)


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


def _value(score: Score | None) -> float | None:
    return None if score is None else score.value


def _count(score: Score | None, *names: str) -> int:
    """Return the first of these counts that the score has; 0 if it has none."""
    if score is None:
        return 0
    return next((count for name in names if (count := score.counts.get(name)) is not None), 0)


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
