# Upstream page: https://deepeval.com/docs/metrics-faithfulness
# Lines: 4.3
"""Ambiguous claims count against the score; the truths are limited."""

from deepeval.metrics import FaithfulnessMetric
from deepeval.test_case import LLMTestCase

test_case = LLMTestCase(
    input="When was the Doran lighthouse lit?",
    actual_output="The Doran lighthouse was lit in 1871. It is painted red. Many ships pass.",
    retrieval_context=["The lamp at Cape Doran first burned in 1871. The tower is white."],
)
penalized = FaithfulnessMetric(model="gpt-4.1", penalize_ambiguous_claims=True)
limited = FaithfulnessMetric(model="gpt-4.1", truths_extraction_limit=2, include_reason=False)
SCORES = {"penalized": penalized.measure(test_case), "limited": limited.measure(test_case)}
