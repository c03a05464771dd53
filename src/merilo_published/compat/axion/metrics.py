"""axion's metric classes: the definition that each computes, and its replacement for a judge without free text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

from merilo.errors import DataError, UsageError
from merilo.judges.spec import judge_from
from merilo.judging.ask import ask
from merilo.judging.kinds.contexts import Relevance
from merilo.judging.kinds.responses import Completion
from merilo.metrics.base import Card, Evidence, EvidenceTarget, Kinds, MetricDefaults, Score, Undefined
from merilo.metrics.context_metrics import ContextPrecision, ContextRelevance, RelevanceTarget, Unit
from merilo.metrics.statement_metrics import ContextRecall
from merilo.metrics.text import metric_text
from merilo_published.axion import contexts, response
from merilo_published.axion.contexts import NOTHING_RETRIEVED, Mode, ModeEffect

from ..scoring import MadeOnce, RunSettings, Wanted, score, why_none
from . import signals
from .dataset import FIELD_OF, DatasetItem, item_from
from .signals import Interpretation, MetricResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from os import PathLike

    from merilo.data.sample import Sample
    from merilo.judges.base import Judge, JudgeLike
    from merilo.judging.ask import Plan
    from merilo.metrics.base import Metric, Outcome

    from .signals import Read

Option = bool | float | str | Mapping[str, float]
"""Types of a metric's parameters."""

_WITHOUT_EFFECT = frozenset({"mode", "mode_effect", "force_granular", "allow_fallback"})
"""Parameters that have no effect on the replacement's question."""


EvaluationMode = Mode
"""The type of `mode`, under axion's name."""


class AxionMetric:
    """The common base of axion's metrics.

    `judge` takes precedence over the runner's; `threshold` is the score to reach, in [0, 1]; the other options are
    the parameters of `definition`. Raises UsageError for an unknown or invalid option.
    """

    definition: ClassVar[type[Metric]]
    """The published definition that it computes with a judge that answers in free text."""
    usual_threshold: ClassVar[float] = 0.5
    read: ClassVar[Read]
    """The function that extracts signals from a score."""
    native: ClassVar[Metric | None] = None
    """The metric for a judge without free text, if one has the same formula."""

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
        if Completion in judge.answers:
            return self.published
        instead = self.instead()
        if instead is None or not instead.asks <= judge.answers:
            raise UsageError(
                f"{self.name} needs a judge that answers in free text, and {judge.name} does not; "
                "use one that does, such as judge='openai:MODEL'."
            )
        usual = type(self.published)()
        for field in fields(_dataclass(self.definition)):
            given = getattr(self.published, field.name)
            if field.name not in _WITHOUT_EFFECT and given != getattr(usual, field.name):
                raise UsageError(
                    f"{self.name} takes {field.name}={given} only with a judge that answers in free text, "
                    f"and {judge.name} does not; omit it or use judge='openai:MODEL'."
                )
        return instead

    def instead(self) -> Metric | None:
        """Return the metric for a judge without free text; None if no metric has the same formula."""
        return self.native

    def result(
        self, item: DatasetItem, outcome: Outcome, metric: Metric, *, judge: str, threshold: float
    ) -> MetricResult:
        """Return the result for an outcome; `metric` is the one that was computed."""
        instead = metric is not self.published
        if instead and isinstance(outcome, Undefined) and item.retrieved_content is not None:
            outcome = outcome if item.retrieved_content else NOTHING_RETRIEVED  # as published
        score = outcome if isinstance(outcome, Score) else None
        read = type(self).read
        found, words = (
            read(item, None, {}, ()) if score is None else read(item, score.value, score.counts, score.evidence)
        )
        return MetricResult(
            metric_name=self.name,
            item=item,
            score=None if score is None else score.value,
            threshold=threshold,
            signals=found,
            explanation=why_none(outcome) if score is None else words,
            interpretation=self.interpretation(score) if score is not None else None,
            flags=() if score is None else score.flags,
            metadata={"mode": str(getattr(self.published, "mode", Mode.GRANULAR)), "judge": judge}
            | {"definition": metric_text(metric)},
            outcome=outcome,
        )

    @staticmethod
    def interpretation(score: Score) -> Interpretation | None:
        """Return the score in words, if axion's documentation has some."""
        del score
        return None


class ContextualRelevancy(AxionMetric):
    """Share of the retrieved chunks that are relevant to the query.

    A judge that grades is asked for each chunk's Relevance, and a grade of at least 1 is relevant. With
    `mode=EvaluationMode.HOLISTIC` and `mode_effect="documented"` all chunks are judged together, 1 or 0.
    """

    definition = contexts.ContextualRelevancy
    read = signals.relevancy

    def instead(self) -> Metric | None:
        """Return relevance by grade, of each chunk or of all."""
        mine = self.published
        together = (
            isinstance(mine, contexts.ContextualRelevancy)
            and mine.mode is Mode.HOLISTIC
            and mine.mode_effect is ModeEffect.DOCUMENTED
        )
        return JoinedRelevance() if together else ContextRelevance(unit=Unit.CONTEXT)

    @staticmethod
    def interpretation(score: Score) -> Interpretation | None:
        """Return the words of the documentation; None if the chunks were judged together."""
        return None if score.counts.get("relevant", 0) is None else Interpretation.of(score.value)


def _metric(definition: type[Metric], read: Read, native: Metric | None = None, threshold: float = 0.5) -> Any:
    """Return the class of a metric. Without `native` it needs a judge of free text."""
    members = {"definition": definition, "read": read, "native": native, "usual_threshold": threshold}
    return type(definition.__name__, (AxionMetric,), {**members, "__doc__": definition.card.summary})


ContextualRanking = _metric(
    contexts.ContextualRanking, signals.ranking, ContextPrecision(against=RelevanceTarget.QUESTION)
)
ContextualPrecision = _metric(
    contexts.ContextualPrecision, signals.precision, ContextPrecision(against=RelevanceTarget.REFERENCE)
)
ContextualRecall = _metric(response.ContextualRecall, signals.recall, ContextRecall())
ContextualSufficiency = _metric(contexts.ContextualSufficiency, signals.sufficiency)
ContextualUtilization = _metric(contexts.ContextualUtilization, signals.utilization)
Faithfulness = _metric(response.Faithfulness, signals.faithfulness)
AnswerRelevancy = _metric(response.AnswerRelevancy, signals.answer_relevancy)
FactualAccuracy = _metric(response.FactualAccuracy, signals.factual_accuracy, threshold=0.8)


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
    computed = [metric.metric_for(judge) for metric, judge in zip(metrics, judges, strict=True)]
    asked = [at for at, metric in enumerate(metrics) if any(not metric.lacking(item) for item in items)]
    outcomes: dict[int, Sequence[Outcome]] = {}
    if asked:
        samples = [item.sample(str(number)) for number, item in enumerate(items, start=1)]
        found = await score(samples, [Wanted(computed[at], judges[at]) for at in asked], settings)
        outcomes = dict(zip(asked, zip(*found.outcomes, strict=True), strict=True))
    results: list[MetricResult] = []
    for place, item in enumerate(items):
        for at, metric in enumerate(metrics):
            sentence = metric.lacking(item)
            outcome = Undefined(sentence) if sentence else outcomes[at][place]
            threshold = thresholds.get(metric.name, metric.threshold)
            results.append(metric.result(item, outcome, computed[at], judge=judges[at].name, threshold=threshold))
    return results


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedRelevance(MetricDefaults):
    """Relevance of the retrieved contexts, read as one text: 1 if they contain a part of the answer, otherwise 0.

    Formula: 1 for a Relevance grade of at least 1 on the sentences of all contexts, in order. Undefined if there is
    no sentence to judge. Source: the holistic mode in axion's documentation, asked as a grade.
    """

    name: ClassVar[str] = "joined_relevance"
    version: ClassVar[int] = 1
    needs = frozenset({"user_input", "retrieved_contexts"})
    asks = Kinds({Relevance})
    card: ClassVar[Card] = Card(
        summary="1 if the retrieved contexts together contain a part of the answer, otherwise 0.",
        formula="1 for a grade of at least 1, otherwise 0.",
        questions="One Relevance question.",
        relatives=("context_relevance", "axion:contextual_relevancy"),
        family="axion",
    )

    def max_questions(self, sample: Sample) -> int:
        """Return 1, or 0 if nothing was retrieved."""
        return 1 if sample.retrieved_contexts else 0

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        """See `Metric.plan`."""
        user_input, contexts = sample.require("user_input"), sample.contexts
        sentences = tuple(sentence for context in contexts for sentence in context.sentences)
        if not sentences:
            return Undefined("nothing was retrieved")
        verdict = yield from ask(Relevance(user_input, sentences, language=sample.resolved_language))
        value = float(verdict.grade >= 1)
        counts = {"contexts": len(contexts), "relevant": None}
        return Score(value, (Evidence(EvidenceTarget.TEXT, 0, verdict),), counts)
