# Upstream page: https://deepeval.com/docs/metrics-contextual-precision
# Lines: 4.3
"""Ranking of the retrieval context."""

from deepeval.metrics import ContextualPrecisionMetric
from deepeval.test_case import LLMTestCase

metric = ContextualPrecisionMetric(threshold=0.5, model="gpt-4.1", include_reason=False)
test_case = LLMTestCase(
    input="Where does the ferry to Lund leave?",
    actual_output="From pier two.",
    expected_output="It leaves from pier two.",
    retrieval_context=["The museum of Lund opens at nine.", "The ferry uses pier two.", "Pier two is in the north."],
)
metric.measure(test_case)
SCORES = {"score": metric.score, "passes": metric.is_successful()}
