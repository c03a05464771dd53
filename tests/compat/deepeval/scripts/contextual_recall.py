# Upstream page: https://deepeval.com/docs/metrics-contextual-recall
# Lines: 4.3
"""Sentences of the expected output in the context."""

from deepeval.metrics import ContextualRecallMetric
from deepeval.test_case import LLMTestCase

metric = ContextualRecallMetric(threshold=0.7, model="gpt-4.1", include_reason=False)
test_case = LLMTestCase(
    input="What grows in the Orrin valley?",
    actual_output="Barley.",
    expected_output="Barley grows in the Orrin valley. Rye grows there. So do apples.",
    retrieval_context=["Barley and rye grow in the valley of Orrin."],
)
metric.measure(test_case)
SCORES = {"score": metric.score, "passes": metric.is_successful()}
