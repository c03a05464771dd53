"""Names and configuration of golden cases, in every form that a published system has for them."""

from typing import Any

import pytest
from each_case import each_case
from published.cases import Case, Level
from published.naming import metric_of

from merilo.errors import UsageError

KNOWN: list[tuple[str, str, dict[str, Any], str, dict[str, object]]] = [
    ("0.0.12", "context_ relevancy", {}, "context_relevancy", {"strictness": 2}),
    ("0.0.15", "coherence", {}, "aspect_critique", {"aspect": "coherence"}),
    ("0.1.9", "aspect_critique", {"name": "mine", "definition": "Is it?"}, "aspect_critique", {"definition": "Is it?"}),
    ("0.1.9", "ContextRecall", {"max_retries": 1}, "context_recall", {}),
    ("0.1.9", "context_recall", {"reproducibility": 2}, "context_recall", {"replies": 3}),
    ("0.1.9", "answer_correctness", {"weights": [1, 0]}, "answer_correctness", {"similarity_weight": 0}),
    ("0.1.22", "FaithulnesswithHHEM", {}, "faithfulness_with_hhem", {}),
    ("0.1.22", "summary_score", {"coeff": 0.2}, "summarization_score", {"coeff": 0.2}),
    ("0.3.0", "ResponseRelevancy", {}, "answer_relevancy", {"one_request": False}),
    (
        "0.3.0",
        "NonLLMStringSimilarity",
        {"distance_measure": "jaro"},
        "non_llm_string_similarity",
        {"distance": "jaro"},
    ),
    ("0.4.3", "ContextRelevance", {}, "nv_context_relevance", {"tries": 5}),
    ("0.4.3", "noise_sensitivity(mode=irrelevant)", {}, "noise_sensitivity", {"mode": "irrelevant"}),
    (
        "0.4.3",
        "collections.ContextRelevance",
        {"name": "cr", "max_retries": 2},
        "collections.context_relevance",
        {"tries": 2},
    ),
]
REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("aspect_critique", {"name": " ", "definition": "Is it?"}),
    ("aspect_critique", {"name": "mine", "definition": ""}),
    ("answer_correctness", {"weights": [1.0]}),
    ("answer_correctness", {"weights": [0, 0]}),
]


def ragas(version: str, metric: str, config: dict[str, Any]) -> Case:
    """A case of ragas that says nothing but what it is about."""
    return Case("f", "c", "ragas", metric, version, Level.SAMPLE, {}, [], config, {})


@each_case(("version", "metric", "config", "own", "values"), KNOWN)
def test_a_name_of_ragas_is_known(
    version: str, metric: str, config: dict[str, Any], own: str, values: dict[str, object]
) -> None:
    """Names of classes, of built-in critiques and of private arguments mean the metric and the parameters they name."""
    made = metric_of(ragas(version, metric, config))()
    assert made.name == f"ragas-{version}:{own}"
    assert {name: getattr(made, name) for name in values} == values


@each_case(("metric", "config"), REFUSED)
def test_what_ragas_refuses_is_refused_when_the_metric_is_made(metric: str, config: dict[str, Any]) -> None:
    """A blank name or definition, a list of one weight and weights of 0 are known keys whose value no metric takes."""
    make = metric_of(ragas("0.1.9", metric, config))
    with pytest.raises(UsageError):
        make()


@pytest.mark.parametrize(
    ("version", "metric"),
    [("0.1.22", "context_relevancy"), ("0.3.0", "id_based_context_recall"), ("0.4.3", "coherence")],
)
def test_a_metric_that_a_version_has_not_is_unknown(version: str, metric: str) -> None:
    """A metric is known in the versions that have it, and in no other."""
    with pytest.raises(UsageError, match="No metric"):
        metric_of(ragas(version, metric, {}))
