# Upstream page: https://deepeval.com/docs/metrics-answer-relevancy
# Lines: 4.3
"""Relevancy of one answer."""

from deepeval.metrics import AnswerRelevancyMetric
from deepeval.test_case import LLMTestCase

metric = AnswerRelevancyMetric(threshold=0.7, model="gpt-4.1", include_reason=True)
test_case = LLMTestCase(input="When do you open?", actual_output="At nine. We also have a garden. Mondays are busy.")
metric.measure(test_case)
print(metric.score, metric.reason)
SCORES = {"score": metric.score, "passes": metric.success}
