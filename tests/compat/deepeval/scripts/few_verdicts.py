# Upstream page: https://deepeval.com/docs/metrics-contextual-precision
# Lines: 4.3
"""Fewer verdicts than nodes."""

from deepeval.metrics import ContextualPrecisionMetric
from deepeval.test_case import LLMTestCase

case = LLMTestCase(
    input="Who keeps bees?",
    actual_output="Ana.",
    expected_output="Ana keeps bees.",
    retrieval_context=["Ana keeps bees.", "Bo keeps goats.", "Bees like lime trees."],
)
metric = ContextualPrecisionMetric(model="gpt-4.1", include_reason=False)
SCORES = {"score": metric.measure(case)}
