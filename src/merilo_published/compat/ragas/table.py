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
    prefix: str = ""
    """The beginning of the names of all definitions."""
    mean_items: bool = False
    """True if `result["faithfulness"]` is the mean; otherwise the list of the samples' scores."""
    harmonic: str = ""
    """The name of the harmonic mean of the means, if `evaluate` gives it."""
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

_FAITHFULNESS: Final = Row(("Faithfulness",), "faithfulness", native="faithfulness", ready=True)
_CORE: Final = (
    _FAITHFULNESS,
    Row(("ContextPrecision",), "context_precision", native=_BY_REFERENCE, ready=True),
    Row(("ContextUtilization",), "context_utilization", native=_WITHOUT, ready=True),
    Row(("ContextEntityRecall",), "context_entity_recall", native="context_entity_recall", ready=True),
    Row(("AnswerCorrectness",), "answer_correctness", _CORRECTNESS, "answer_correctness", ready=True),
)
_RELEVANCY: Final = {"strictness": "strictness"}
_ANSWERS: Final = Row(("AnswerRelevancy",), "answer_relevancy", _RELEVANCY, "answer_relevancy", ready=True)
_RECALL: Final = Row(("ContextRecall",), "context_recall", native="context_recall", ready=True)
_SENTENCES: Final = "context_relevance(unit=sentence)"
_CRITIQUE: Final = Row(
    ("AspectCritique",), "aspect_critique", {name: name for name in ("aspect", "definition", "strictness")}
)

_KWARGS: Final = {"kwargs": "options"}
_ROUGE: Final = {"rouge_type": "rouge_type", "mode": "mode"}
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
    Row(("BleuScore",), "bleu_score", _KWARGS),
    Row(("RougeScore",), "rouge_score", _ROUGE),
    Row(("ChrfScore",), "chrf_score", _KWARGS, of="0.4.3"),
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
    Row(("BleuScore",), "bleu_score", _KWARGS),
    Row(("RougeScore",), "rouge_score", _ROUGE),
    Row(("CHRFScore",), "chrf_score", _KWARGS),
    Row(("ExactMatch",), "exact_match"),
    Row(("StringPresence",), "string_presence", results="string_present"),
)

_FIRST: Final = (
    *_CORE,
    _ANSWERS,
    _RECALL,
    Row(("ContextRelevancy",), "context_relevancy", native=_SENTENCES, ready=True, of="0.1.9"),
    Row(("AnswerSimilarity",), "answer_similarity", ready=True),
    Row(("FaithulnesswithHHEM", "FaithfulnesswithHHEM"), "faithfulness_with_hhem"),  # spelt as in ragas 0.1
    Row(("NoiseSensitivityRelevant",), "noise_sensitivity_relevant", ready=True),
    Row(("NoiseSensitivityIrrelevant",), "noise_sensitivity_irrelevant", ready=True),
    Row(("SummarizationScore",), "summarization_score", ready=True, results="summary_score"),
    _CRITIQUE,
)

_AGREEMENT: Final = {"strictness": "strictness", "agreement_metric": "agreement_metric"}
_ZEROTH: Final = (
    _FAITHFULNESS,
    _ANSWERS,
    _RECALL,
    Row(("ContextRelevancy",), "context_relevancy", _AGREEMENT, _SENTENCES, ready=True),
    _CRITIQUE,
)

NEWEST: Final = Line("0.4", "0.4.3", _CLASSES)
COLLECTIONS: Final = Line("0.4", "0.4.3", _COLLECTIONS, prefix="collections.")
V0_3: Final = Line("0.3", "0.4.3", _CLASSES)
V0_2: Final = Line("0.2", "0.3.0", _CLASSES)
V0_1: Final = Line("0.1", "0.1.22", _FIRST, mean_items=True)
V0_0: Final = Line(
    "0.0",
    "0.0.15",
    _ZEROTH,
    mean_items=True,
    harmonic="ragas_score",
    usual=("answer_relevancy", "context_relevancy", "faithfulness", "context_recall"),
    judge="gpt-3.5-turbo-16k",
)
