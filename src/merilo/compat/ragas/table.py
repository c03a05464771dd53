"""The metrics of ragas by version line: which definition each class computes, under which name, with which options.

A line of ragas is a minor version. Its newest release counts, and differences within a line are in the table of
docs/from-ragas.md. Everything in this package that depends on the line is made from these rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

NO_OPTIONS: Final[Mapping[str, str]] = {}


@dataclass(frozen=True)
class Row:
    """A metric class of ragas."""

    classes: tuple[str, ...]
    """The names of the class."""
    metric: str
    """The name of the definition after the colon, and of the results."""
    options: Mapping[str, str] = field(default_factory=lambda: NO_OPTIONS)
    """Parameter in ragas → parameter of the definition."""
    native: str | None = None
    """merilo's own metric, for judges that do not write free text."""
    ready: bool = False
    """True if there is a ready object of the class too, named like the definition."""
    results: str = ""
    """The name of the results, if it is another one."""
    of: str = ""
    """The release whose definition it is, if it is not that of the line."""
    moded: bool = False
    """True if the name of the results ends with the mode in `evaluate`."""


@dataclass(frozen=True)
class Line:
    """A version line of ragas."""

    name: str
    release: str
    """The release whose definitions the line computes."""
    rows: tuple[Row, ...]
    missing: Mapping[str, str]
    """A name of ragas that merilo does not have → what to use."""
    prefix: str = ""
    """The beginning of the names of all definitions."""
    mean_items: bool = False
    """True if `result["faithfulness"]` is the mean; otherwise the list of the samples' scores."""
    usual: tuple[str, ...] = ("answer_relevancy", "context_precision", "faithfulness", "context_recall")
    """The metrics that `evaluate` computes if none is named."""
    judge: str = "gpt-4o-mini"
    embedder: str = "text-embedding-ada-002"

    def definition(self, row: Row) -> str:
        """Return the name of the definition that a row computes on this line."""
        return f"ragas-{row.of or self.release}:{self.prefix}{row.metric}"


_DISTANCE: Final = {"distance_measure": "distance"}
_MODE: Final = {"mode": "mode"}
_THRESHOLD: Final = {"threshold": "threshold"}
_FACTUAL: Final = {name: name for name in ("mode", "beta", "atomicity", "coverage")}
_CORRECTNESS: Final = {"weights": "factual_weight,similarity_weight", "beta": "beta"}
_BY_REFERENCE: Final = "context_precision(against=reference)"
_WITHOUT: Final = "context_precision"

_CORE: Final = (
    Row(("Faithfulness",), "faithfulness", native="faithfulness", ready=True),
    Row(("ContextPrecision",), "context_precision", native=_BY_REFERENCE, ready=True),
    Row(("ContextUtilization",), "context_utilization", native=_WITHOUT, ready=True),
    Row(("ContextEntityRecall",), "context_entity_recall", native="context_entity_recall", ready=True),
    Row(("AnswerCorrectness",), "answer_correctness", _CORRECTNESS, "answer_correctness", ready=True),
)
_RELEVANCY: Final = {"strictness": "strictness"}

_CLASSES: Final = (
    *_CORE,
    Row(("AnswerRelevancy", "ResponseRelevancy"), "answer_relevancy", _RELEVANCY, "answer_relevancy", ready=True),
    Row(("LLMContextPrecisionWithReference",), "llm_context_precision_with_reference", native=_BY_REFERENCE),
    Row(("LLMContextPrecisionWithoutReference",), "llm_context_precision_without_reference", native=_WITHOUT),
    Row(("NonLLMContextPrecisionWithReference",), "non_llm_context_precision_with_reference", _THRESHOLD),
    Row(("IDBasedContextPrecision",), "id_based_context_precision", of="0.4.3"),
    Row(("LLMContextRecall", "ContextRecall"), "context_recall", native="context_recall", ready=True),
    Row(("NonLLMContextRecall",), "non_llm_context_recall", _THRESHOLD),
    Row(("IDBasedContextRecall",), "id_based_context_recall", of="0.4.3"),
    Row(("FaithfulnesswithHHEM",), "faithfulness_with_hhem"),
    Row(("NoiseSensitivity",), "noise_sensitivity", _MODE, "noise_sensitivity", moded=True),
    Row(("FactualCorrectness",), "factual_correctness", _FACTUAL, moded=True),
    Row(("SemanticSimilarity",), "semantic_similarity", _THRESHOLD),
    Row(("AnswerSimilarity",), "answer_similarity", _THRESHOLD, ready=True),
    Row(("NonLLMStringSimilarity",), "non_llm_string_similarity", _DISTANCE),
    Row(("ExactMatch",), "exact_match"),
    Row(("StringPresence",), "string_present"),
    Row(("AspectCritic",), "aspect_critic", {"definition": "definition", "strictness": "strictness"}),
    Row(("ContextRelevance",), "nv_context_relevance", native="context_relevance"),
    Row(("ResponseGroundedness",), "nv_response_groundedness", native="faithfulness"),
    Row(("AnswerAccuracy",), "nv_accuracy", native="answer_correctness"),
)

_COLLECTIONS: Final = (
    Row(("Faithfulness",), "faithfulness", native="faithfulness"),
    Row(("AnswerRelevancy",), "answer_relevancy", _RELEVANCY, "answer_relevancy"),
    Row(("AnswerCorrectness",), "answer_correctness", _CORRECTNESS, "answer_correctness"),
    Row(("AnswerAccuracy",), "answer_accuracy", {"max_retries": "tries"}, "answer_correctness"),
    Row(("ContextRelevance",), "context_relevance", {"max_retries": "tries"}, "context_relevance"),
    Row(("ResponseGroundedness",), "response_groundedness", {"max_retries": "tries"}, "faithfulness"),
    Row(("ContextPrecision",), "context_precision", native=_BY_REFERENCE),
    Row(("ContextPrecisionWithReference",), "context_precision_with_reference", native=_BY_REFERENCE),
    Row(("ContextPrecisionWithoutReference",), "context_precision_without_reference", native=_WITHOUT),
    Row(("ContextUtilization",), "context_utilization", native=_WITHOUT),
    Row(("ContextRecall",), "context_recall", native="context_recall"),
    Row(("ContextEntityRecall",), "context_entity_recall", native="context_entity_recall"),
    Row(("NoiseSensitivity",), "noise_sensitivity", _MODE, "noise_sensitivity"),
    Row(("FactualCorrectness",), "factual_correctness", _FACTUAL),
    Row(("SemanticSimilarity",), "semantic_similarity", _THRESHOLD),
    Row(("NonLLMStringSimilarity",), "non_llm_string_similarity", _DISTANCE),
    Row(("ExactMatch",), "exact_match"),
    Row(("StringPresence",), "string_presence", results="string_present"),
)

_FIRST: Final = (
    *_CORE,
    Row(("AnswerRelevancy",), "answer_relevancy", _RELEVANCY, "answer_relevancy", ready=True),
    Row(("ContextRecall",), "context_recall", native="context_recall", ready=True),
    Row(("ContextRelevancy",), "context_relevancy", native="context_relevance(unit=sentence)", ready=True, of="0.1.9"),
    Row(("AnswerSimilarity",), "answer_similarity", ready=True),
    Row(("FaithulnesswithHHEM", "FaithfulnesswithHHEM"), "faithfulness_with_hhem"),  # spelt as in ragas 0.1
    Row(("NoiseSensitivityRelevant",), "noise_sensitivity_relevant", ready=True),
    Row(("NoiseSensitivityIrrelevant",), "noise_sensitivity_irrelevant", ready=True),
    Row(("SummarizationScore",), "summarization_score", ready=True, results="summary_score"),
    Row(("AspectCritique",), "aspect_critique", {name: name for name in ("aspect", "definition", "strictness")}),
)

_RUBRIC: Final = "write a rubric, see docs/extend.md"
_METRIC: Final = "write a metric, see docs/extend.md"
_AGENTS: Final = "merilo evaluates RAG and has no metrics of agents"
_MISSING: Final[Mapping[str, str]] = {
    **dict.fromkeys(("SimpleCriteriaScore", "RubricsScore", "InstanceRubrics", "DomainSpecificRubrics"), _RUBRIC),
    **dict.fromkeys(("InstanceSpecificRubrics", "RubricsScoreWithReference", "RubricsScoreWithoutReference"), _RUBRIC),
    **dict.fromkeys(("LabelledRubricsScore", "ReferenceFreeRubricsScore"), _RUBRIC),
    **dict.fromkeys(("labelled_rubrics_score", "reference_free_rubrics_score"), _RUBRIC),
    **dict.fromkeys(("DiscreteMetric", "NumericMetric", "RankingMetric"), _RUBRIC),
    **dict.fromkeys(("discrete_metric", "numeric_metric", "ranking_metric"), _METRIC),
    **dict.fromkeys(("BleuScore", "RougeScore", "ChrfScore", "CHRFScore"), f"use NonLLMStringSimilarity, or {_METRIC}"),
    **dict.fromkeys(("SummarizationScore", "summarization_score", "SummaryScore"), "use merilo.compat.ragas.v0_1"),
    **dict.fromkeys(("ToolCallAccuracy", "ToolCallF1", "TopicAdherenceScore", "TopicAdherence"), _AGENTS),
    **dict.fromkeys(
        ("AgentGoalAccuracyWithReference", "AgentGoalAccuracyWithoutReference", "AgentGoalAccuracy"), _AGENTS
    ),
    **dict.fromkeys(("DataCompyScore", "LLMSQLEquivalence", "SQLSemanticEquivalence"), _METRIC),
    **dict.fromkeys(("MultiModalFaithfulness", "MultiModalRelevance"), "merilo reads text only"),
    **dict.fromkeys(("multimodal_faithness", "multimodal_relevance"), "merilo reads text only"),
    "QuotedSpansAlignment": _METRIC,
    "context_relevancy": "use ContextRelevance, or merilo.compat.ragas.v0_1, which has it",
    "ContextRelevancy": "use ContextRelevance, or merilo.compat.ragas.v0_1, which has it",
}

NEWEST: Final = Line("0.4", "0.4.3", _CLASSES, _MISSING)
COLLECTIONS: Final = Line("0.4", "0.4.3", _COLLECTIONS, _MISSING, prefix="collections.")
V0_3: Final = Line("0.3", "0.4.3", _CLASSES, _MISSING)
V0_2: Final = Line("0.2", "0.3.0", _CLASSES, _MISSING)
V0_1: Final = Line(
    "0.1",
    "0.1.22",
    _FIRST,
    {
        name: advice
        for name, advice in _MISSING.items()
        if not any(name in row.classes or (row.ready and name == row.metric) for row in _FIRST)
    },
    mean_items=True,
)
