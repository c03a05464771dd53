"""One metric's result on one item, and the evidence for a score, in the form that axion documents."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, make_dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, cast

from merilo.judging.kinds.contexts import RelevanceVerdict, SupportVerdict, UsefulnessVerdict
from merilo.metrics.base import EvidenceTarget

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from _typeshed import DataclassInstance

    from merilo.metrics.base import Evidence, Outcome

    from .dataset import DatasetItem

    Counts = Mapping[str, int | None]
    Read = Callable[[DatasetItem, float | None, Counts, tuple[Evidence, ...]], tuple["Signals", str]]


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

# A reader returns the signals of a metric and a summary of them in a few words, from the item and the value, the counts
# and the evidence of its score; without a score the value is None, and there are no counts and no evidence.


def _of_chunks(result: Any, piece: Any, word: str, *, all_chunks: bool = False) -> Read:
    """Return the reader of a metric that judges chunks; fewer than were retrieved if the judge left some out."""

    def read(
        item: DatasetItem, value: float | None, counts: Counts, evidence: tuple[Evidence, ...]
    ) -> tuple[Signals, str]:
        retrieved = tuple(item.retrieved_content or ())
        judged = len(retrieved) if all_chunks and value is not None else _count(counts, "judged", "contexts")
        flags = {each.index: _is_true(each) for each in evidence if each.about is EvidenceTarget.CONTEXT}
        chunks = tuple(piece(text, flags.get(index, False)) for index, text in enumerate(retrieved[:judged]))
        found = sum(flags.get(index, False) for index in range(len(chunks)))
        total = len(retrieved) if value is None else len(chunks)
        return result(value, total, found, chunks), f"{found} of {len(chunks)} chunks {word}"

    return read


def _of_statements(result: Any, piece: Any, word: str, total: tuple[str, ...], found: str) -> Read:
    """Return the reader of a metric that judges statements. `total`, `found`: names of counts; "": the true ones."""

    def read(
        item: DatasetItem, value: float | None, counts: Counts, evidence: tuple[Evidence, ...]
    ) -> tuple[Signals, str]:
        del item
        flags = [(each.text, _is_true(each)) for each in evidence if each.about is EvidenceTarget.STATEMENT]
        of, good = _count(counts, *total), _count(counts, found) if found else sum(flag for _, flag in flags)
        return result(value, of, good, tuple(piece(*each) for each in flags)), f"{good} of {of} statements {word}"

    return read


def _result(name: str, fields: str) -> Any:  # Any: as `_record`
    return _record(f"{name}Result", fields, Signals)


_each_chunk = _of_chunks(ContextualRelevancyResult, RelevantChunk, "relevant")
ranking = _of_chunks(
    _result("ContextualRanking", "ranking_score total_chunks relevant_chunks chunk_breakdown"),
    RelevantChunk,
    "relevant",
)
precision = _of_chunks(
    _result("ContextualPrecision", "precision_score total_chunks useful_chunks chunk_breakdown"),
    UsefulChunk,
    "useful",
    all_chunks=True,
)
recall = _of_statements(
    _result("ContextualRecall", "recall_score total_statements supported_statements statement_breakdown"),
    SupportedStatement,
    "supported",
    ("judged", "statements"),
    "",
)
answer_relevancy = _of_statements(
    _result("AnswerRelevancy", "relevancy_score total_statements relevant_statements statement_breakdown"),
    RelevantStatement,
    "relevant",
    ("counted",),
    "relevant",
)
factual_accuracy = _of_statements(
    _result("FactualAccuracy", "accuracy_score total_statements supported_statements statement_breakdown"),
    SupportedStatement,
    "supported",
    ("judged",),
    "supported",
)
_Sufficiency = _result("ContextualSufficiency", "sufficiency_score total_chunks is_sufficient")
_Utilization = _result(
    "ContextualUtilization", "utilization_score total_chunks relevant_chunks utilized_chunks chunk_breakdown"
)
_DEGREES: Final = ("fully_supported", "partially_supported", "no_evidence", "contradictory")
_Faithfulness = _result(
    "Faithfulness", f"faithfulness_score total_claims {'_claims '.join(_DEGREES)}_claims claim_breakdown"
)


def relevancy(
    item: DatasetItem, value: float | None, counts: Counts, evidence: tuple[Evidence, ...]
) -> tuple[Signals, str]:
    """Read the signals of ContextualRelevancy."""
    if value is not None and counts.get("relevant", 0) is None:
        total = len(item.retrieved_content or ())
        return ContextualRelevancyResult(value, total, None, ()), f"{total} chunks judged together"
    return _each_chunk(item, value, counts, evidence)


def sufficiency(item: DatasetItem, value: float | None, *_: object) -> tuple[Signals, str]:
    """Read the signals of ContextualSufficiency."""
    total, enough = len(item.retrieved_content or ()), None if value is None else bool(value)
    return _Sufficiency(value, total, enough), f"{total} chunks {'sufficient' if enough else 'not sufficient'}"


def utilization(
    item: DatasetItem, value: float | None, counts: Counts, evidence: tuple[Evidence, ...]
) -> tuple[Signals, str]:
    """Read the signals of ContextualUtilization: the first verdict on a chunk is on relevance, the second on use."""
    first: dict[int, bool] = {}
    second: dict[int, bool] = {}
    for piece in evidence:
        (second if piece.index in first else first)[piece.index] = _is_true(piece)
    texts = item.retrieved_content or ()
    chunks = tuple(
        UtilizedChunk(text, first.get(index, False), second.get(index, False))
        for index, text in enumerate(texts if value is not None else ())
    )
    relevant, used = _count(counts, "relevant"), _count(counts, "utilized")
    return _Utilization(value, len(texts), relevant, used, chunks), f"{used} of {relevant} relevant chunks used"


def faithfulness(
    item: DatasetItem, value: float | None, counts: Counts, evidence: tuple[Evidence, ...]
) -> tuple[Signals, str]:
    """Read the signals of Faithfulness."""
    del item
    claims = tuple(
        JudgedClaim(each.text, each.value or 0.0) for each in evidence if each.about is EvidenceTarget.STATEMENT
    )
    total, degrees = _count(counts, "claims"), [_count(counts, each) for each in _DEGREES]
    return _Faithfulness(value, total, *degrees, claims), f"{degrees[0]} of {total} claims fully supported"


def _count(counts: Counts, *names: str) -> int:
    """Return the first of these counts that is known; 0 if none is."""
    return next((count for name in names if (count := counts.get(name)) is not None), 0)


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
