# Upstream page: https://deepeval.com/guides/guides-rag-evaluation
# Lines: 4.3
"""Metrics of the retriever and of the generator together."""

from deepeval import evaluate
from deepeval.metrics import (
    ContextualPrecisionMetric,
    ContextualRecallMetric,
    FaithfulnessMetric,
)
from deepeval.test_case import LLMTestCase

case = LLMTestCase(
    input="What was lit at Doran?",
    actual_output="The Doran lighthouse was lit in 1871. It is painted red. Many ships pass.",
    expected_output="The lighthouse. Keepers tended its lamp.",
    retrieval_context=["The lamp at Cape Doran first burned in 1871. The tower is white."],
)
metrics = [
    ContextualPrecisionMetric(model="gpt-4.1", include_reason=False),
    ContextualRecallMetric(model="gpt-4.1", include_reason=False),
    FaithfulnessMetric(model="gpt-4.1", include_reason=False),
]
(result,) = evaluate([case], metrics).test_results
SCORES = {data.name: data.score for data in result.metrics_data}
