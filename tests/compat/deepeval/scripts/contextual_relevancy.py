# Upstream page: https://deepeval.com/docs/metrics-contextual-relevancy
# Lines: 4.3
"""Relevant statements of the context."""

from deepeval.metrics import ContextualRelevancyMetric
from deepeval.test_case import LLMTestCase

metric = ContextualRelevancyMetric(threshold=0.7, model="gpt-4.1", include_reason=False)
test_case = LLMTestCase(
    input="Which birds live on the isle?",
    actual_output="Terns do.",
    retrieval_context=["Terns nest on Gann. Gann has a jetty. The jetty is old.", "Gulls avoid Gann."],
)
metric.measure(test_case)
SCORES = {"score": metric.score, "passes": metric.is_successful()}
