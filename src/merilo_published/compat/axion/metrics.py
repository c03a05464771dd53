"""axion's items, metric classes and results; each class computes a definition, or a replacement without free text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Final

from merilo.data import check
from merilo.data.sample import JSON, Sample
from merilo.errors import DataError, UsageError
from merilo.judges.spec import judge_from
from merilo.metrics.base import Evidence, EvidenceTarget, Metric, Outcome, Score, Undefined
from merilo.metrics.text import metric_text
from merilo.results.means import counts_text
from merilo_published import axion
from merilo_published.axion import NOTHING_RETRIEVED, Mode, RelevancyMode

from ..scoring import MadeOnce, RunSettings, Wanted, score, usable, why_none

if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike

    from merilo.judges.base import Judge, JudgeLike

FIELD_OF: Final[Mapping[str, str]] = {
    "user_input": "query",
    "retrieved_contexts": "retrieved_content",
    "response": "actual_output",
    "reference": "expected_output",
}
"""axion's name of each field of a sample that a metric may need, in the order of messages."""


@dataclass(frozen=True, kw_only=True)
class DatasetItem:
    """One case under axion's names; unknown values are None.

    Raises DataError for a value that does not fit its field.
    """

    query: str | None = None
    retrieved_content: Sequence[str] | None = None
    expected_output: str | None = None
    actual_output: str | None = None
    id: str | None = None
    """Returned with the results, which are always in data set order."""
    conversation: Sequence[Mapping[str, str]] | None = None
    """Messages with `role` (user or assistant) and `content`, for AnswerRelevancy over all turns."""

    def __post_init__(self) -> None:
        for name in ("query", "expected_output", "actual_output", "id"):
            value: object = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise DataError(f"DatasetItem takes {name} as text, got {value!r}.")
        content: object = self.retrieved_content
        texts = isinstance(content, Sequence) and not isinstance(content, str)
        if content is not None and not (texts and all(isinstance(text, str) for text in self.retrieved_content or ())):
            raise DataError(f"DatasetItem takes retrieved_content as a list of texts, got {content!r}.")

    def lacking(self, needs: frozenset[str]) -> tuple[str, ...]:
        """Return the names, in axion, of the needed fields that are missing; a blank text is missing."""
        return tuple(name for field, name in FIELD_OF.items() if field in needs and self._is_missing(name))

    def sample(self, id: str) -> Sample:
        """Return this item as a sample with this id."""
        talk: JSON = [dict(message) for message in self.conversation or ()]
        return Sample(
            id,
            user_input=self.query,
            retrieved_contexts=self.retrieved_content,
            response=self.actual_output,
            reference=self.expected_output,
            metadata=None if self.conversation is None else {"conversation": talk},
        )

    def _is_missing(self, name: str) -> bool:
        value: str | Sequence[str] | None = getattr(self, name)
        return value is None or (isinstance(value, str) and not value.strip())


def item_from(given: DatasetItem | Mapping[str, object]) -> DatasetItem:
    """Return an item, or make one from a mapping under axion's names; other keys are ignored. Raises DataError."""
    if isinstance(given, DatasetItem):
        return given
    raw: object = given
    if not isinstance(raw, Mapping):
        raise DataError(f"An item must be a DatasetItem or a mapping with its field names, got {given!r}.")
    known = [field.name for field in fields(DatasetItem) if field.name in given]
    if not known:
        names = ", ".join(field.name for field in fields(DatasetItem))
        got = ", ".join(map(str, given)) or "none"
        raise DataError(f"A record of a data set needs some of the fields {names}, got {got}.")
    values = {name: None if check.is_missing(given[name]) else given[name] for name in known}
    return DatasetItem(**values)  # type: ignore[arg-type]  # the constructor checks


Option = bool | float | str | Mapping[str, float]
"""Types of a metric's parameters."""

EvaluationMode = Mode
"""The type of `mode`, under axion's name."""


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


@dataclass(frozen=True)
class RelevantChunk:
    """A retrieved chunk with its verdict."""

    chunk_text: str
    is_relevant: bool


@dataclass(frozen=True, repr=False)
class ContextualRelevancyResult:
    """The signals of ContextualRelevancy; printed as `Name({...})` with numbers of two digits."""

    relevancy_score: float | None
    total_chunks: int
    relevant_chunks: int
    chunk_breakdown: tuple[RelevantChunk, ...]

    def __repr__(self) -> str:
        shown = asdict(self) | {
            "relevancy_score": None if self.relevancy_score is None else round(self.relevancy_score, 2)
        }
        return f"{type(self).__name__}(\n{json.dumps(shown, ensure_ascii=False, indent=4)}\n)"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricResult:
    """A score with the evidence for it; `score` and `passed` are None if there is no number."""

    metric_name: str
    item: DatasetItem
    score: float | None
    """In [0, 1], not rounded."""
    threshold: float
    signals: ContextualRelevancyResult | None
    """For ContextualRelevancy; the verdicts of all metrics are the evidence of `outcome`."""
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

    def pretty(self) -> str:
        """Return the result as text: the score with two digits first, then its meaning and problems."""
        if self.score is None:
            return f"Score: none ({self.explanation})"
        lines = [f"Score: {self.score:.2f} ({self.explanation})"]
        if self.interpretation is not None:
            lines.append(f"{self.interpretation}.")
        return "\n".join([*lines, *(f"Note: {flag}." for flag in self.flags)])

    __str__ = pretty


class AxionMetric:
    """The common base of axion's metrics.

    `judge` takes precedence over the runner's; `threshold` is the score to reach, in [0, 1]; the other options are
    the parameters of `definition`. Raises UsageError for an unknown or invalid option.
    """

    definition: ClassVar[type[Metric]]
    """The published definition that it computes with a judge that answers in free text."""
    usual_threshold: ClassVar[float] = 0.5
    native: ClassVar[str | None] = None
    """The text of the metric for a judge without free text, if one has the same formula."""

    def __init__(self, *, judge: JudgeLike | None = None, threshold: float | None = None, **options: Option) -> None:
        self.judge = judge
        self.threshold = threshold_from(self.usual_threshold if threshold is None else threshold)
        known = [field.name for field in fields(_dataclass(self.definition)) if field.init]
        if unknown := [name for name in options if name not in known]:
            raise UsageError(
                f"{self.name} has no option {unknown[0]!r}; it takes judge, threshold, {', '.join(known)}."
            )
        self.published: Metric = _dataclass(self.definition)(**options)

    @property
    def name(self) -> str:
        """The name of the class, as in axion."""
        return type(self).__name__

    async def execute(self, item: DatasetItem | Mapping[str, object]) -> MetricResult:
        """Return the result on one item, or on a mapping with an item's field names; it is a separate run.

        Raises DataError if a needed field is missing, UsageError if the judge cannot answer.
        """
        found = item_from(item)
        if lacking := self.lacking(found):
            raise DataError(lacking)
        (result,) = await results_of([self], [found], None, {}, RunSettings())
        return result

    def lacking(self, item: DatasetItem) -> str:
        """Return the missing fields of the item as one sentence; empty if there are none."""
        missing = item.lacking(self.published.needs)
        if not missing:
            return ""
        subject = "The item" if item.id is None else f"Item {item.id!r}"
        needed = [name for field, name in FIELD_OF.items() if field in self.published.needs]
        listed = " and ".join([*filter(None, [", ".join(needed[:-1])]), needed[-1]])
        return f"{subject} has no {' and no '.join(missing)}, and {self.name} needs {listed}."

    def metric_for(self, judge: Judge) -> Metric:
        """Return the metric to compute with this judge. Raises UsageError if the judge cannot answer it."""
        metric = usable(metric_text(self.published), self.native, judge, self.name)
        if metric != self.published and getattr(self.published, "relevancy_mode", None) is RelevancyMode.STRICT:
            raise UsageError(
                f"{self.name} takes relevancy_mode=strict only with a judge that writes free text, which {judge.name} "
                "is not; omit it, or name an LLM."
            )
        return metric

    def result(self, item: DatasetItem, outcome: Outcome, metric: Metric, judge: str, threshold: float) -> MetricResult:
        """Return the result for an outcome; `metric` is the one that was computed."""
        if metric != self.published and isinstance(outcome, Undefined) and item.retrieved_content is not None:
            outcome = outcome if item.retrieved_content else NOTHING_RETRIEVED  # as published
        score = outcome if isinstance(outcome, Score) else None
        value = None if score is None else score.value
        signals = _relevancy(item, score) if self.definition is axion.ContextualRelevancy else None
        words = why_none(outcome) if score is None else counts_text(score.counts)
        if score is not None and signals is not None:
            words = f"{signals.relevant_chunks} of {signals.total_chunks} chunks relevant"
        return MetricResult(
            metric_name=self.name,
            item=item,
            score=value,
            threshold=threshold,
            signals=signals,
            explanation=words,
            interpretation=None if value is None or signals is None else Interpretation.of(value),
            flags=() if score is None else score.flags,
            metadata={"mode": str(getattr(self.published, "mode", Mode.GRANULAR)), "judge": judge}
            | {"definition": metric_text(metric)},
            outcome=outcome,
        )


def _relevancy(item: DatasetItem, score: Score | None) -> ContextualRelevancyResult:
    """Return the signals of ContextualRelevancy; fewer chunks than were retrieved if the judge left some out."""
    retrieved = tuple(item.retrieved_content or ())
    if score is None:
        return ContextualRelevancyResult(None, len(retrieved), 0, ())
    judged = score.counts.get("judged", score.counts["contexts"])
    flags = {each.index: _is_relevant(each) for each in score.evidence if each.about is EvidenceTarget.CONTEXT}
    chunks = tuple(RelevantChunk(text, flags.get(index, False)) for index, text in enumerate(retrieved[:judged]))
    return ContextualRelevancyResult(score.value, len(chunks), sum(each.is_relevant for each in chunks), chunks)


def _is_relevant(piece: Evidence) -> bool:
    """Return True for a relevant chunk: by the number read from free text, otherwise by the grade."""
    grade: Any = piece.verdict  # evidence of context_relevance is a grade
    return piece.value > 0 if piece.value is not None else grade.positive


def _metric(definition: type[Metric], native: str | None = None, threshold: float = 0.5) -> Any:
    """Return the class of a metric. Without `native` it needs a judge of free text."""
    members = {"definition": definition, "native": native, "usual_threshold": threshold}
    return type(definition.__name__, (AxionMetric,), {**members, "__doc__": definition.card.summary})


ContextualRelevancy = _metric(axion.ContextualRelevancy, "context_relevance(unit=context)")
ContextualRanking = _metric(axion.ContextualRanking, "context_precision")
ContextualPrecision = _metric(axion.ContextualPrecision, "context_precision(against=reference)")
ContextualRecall = _metric(axion.ContextualRecall, "context_recall")
ContextualSufficiency = _metric(axion.ContextualSufficiency)
ContextualUtilization = _metric(axion.ContextualUtilization)
Faithfulness = _metric(axion.Faithfulness)
AnswerRelevancy = _metric(axion.AnswerRelevancy)
FactualAccuracy = _metric(axion.FactualAccuracy, threshold=0.8)


def threshold_from(given: float) -> float:
    """Return a threshold. Raises UsageError unless it is a number in [0, 1]."""
    number: object = given
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= 1:
        raise UsageError(f"A threshold must be a number from 0 to 1, got {given!r}.")
    return float(number)


def _dataclass(metric: type[Metric]) -> Any:  # Any: a Protocol cannot require dataclasses
    return metric


class MetricRunner:
    """A runner that computes several metrics over a data set.

    Args:
        metrics: of this module.
        judge: for every metric without its own judge: any value that `merilo.evaluate` accepts. None: "embedded".
        max_concurrent: maximum requests in flight.
        thresholds: name of a metric's class → score to reach; takes precedence over the metric's own.
        cache: as in `merilo.evaluate`.
        out: directory in which the run is stored, to resume and show it. None: the run is not stored.

    Raises UsageError for invalid arguments.
    """

    def __init__(
        self,
        metrics: Sequence[AxionMetric],
        *,
        judge: JudgeLike | None = None,
        max_concurrent: int | None = None,
        thresholds: Mapping[str, float] | None = None,
        cache: bool | str | PathLike[str] = True,
        out: str | PathLike[str] | None = None,
    ) -> None:
        self.metrics = tuple(metrics)
        if not self.metrics:
            raise UsageError("A MetricRunner needs at least one metric: MetricRunner(metrics=[ContextualRelevancy()]).")
        for metric in self.metrics:
            given: object = metric
            if not isinstance(given, AxionMetric):
                raise UsageError(f"A MetricRunner takes metrics of merilo.compat.axion, got {given!r}.")
        unknown = [name for name in thresholds or {} if name not in {metric.name for metric in self.metrics}]
        if unknown:
            raise UsageError(f"thresholds names {unknown[0]!r}, which is not a metric of this runner.")
        checked = {name: threshold_from(number) for name, number in (thresholds or {}).items()}
        self._options = judge, checked, RunSettings(out is not None, out, cache, max_concurrent)

    async def run(self, dataset: Iterable[DatasetItem | Mapping[str, object]]) -> list[MetricResult]:
        """Return the results, item by item in the order of the data set; within an item in the order of the metrics.

        The whole data set is one run (one for each judge). An item without a field that a metric needs has a result
        without a score, with the reason. Raises UsageError if a judge cannot answer, DataError for bad records.
        """
        return await results_of(self.metrics, [item_from(item) for item in dataset], *self._options)


async def results_of(
    metrics: Sequence[AxionMetric],
    items: Sequence[DatasetItem],
    judge: JudgeLike | None,
    thresholds: Mapping[str, float],
    settings: RunSettings,
) -> list[MetricResult]:
    """Return the results of all metrics on all items: item by item, metrics in order."""
    made = MadeOnce()
    judges = [made.of(metric.judge or judge or "embedded", judge_from) for metric in metrics]
    wanted = [Wanted(metric.metric_for(judge), judge) for metric, judge in zip(metrics, judges, strict=True)]
    samples = [item.sample(str(number)) for number, item in enumerate(items, start=1)]
    lacking = [[metric.lacking(item) for metric in metrics] for item in items]
    found = await score(samples, wanted, settings, lacking)
    return [
        metric.result(item, outcome, own.metric, judge.name, thresholds.get(metric.name, metric.threshold))
        for item, outcomes in zip(items, found.outcomes, strict=True)
        for metric, outcome, own, judge in zip(metrics, outcomes, wanted, judges, strict=True)
    ]
