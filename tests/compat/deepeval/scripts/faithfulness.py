# Upstream page: https://deepeval.com/docs/metrics-faithfulness
# Lines: 4.3
"""Faithfulness of one test case, and its reason."""

from deepeval.metrics import FaithfulnessMetric
from deepeval.test_case import LLMTestCase

metric = FaithfulnessMetric(threshold=0.7, model="gpt-4.1", include_reason=True)
test_case = LLMTestCase(
    input="When was the Doran lighthouse lit?",
    actual_output="The Doran lighthouse was lit in 1871. It is painted red. Many ships pass.",
    retrieval_context=["The lamp at Cape Doran first burned in 1871. The tower is white."],
)
metric.measure(test_case)
print(metric.score, metric.reason)
SCORES = {"score": metric.score, "passes": metric.is_successful(), "reasons": len(metric.reason)}
