# Upstream page: https://deepeval.com/docs/metrics-contextual-relevancy
# Lines: 4.3
"""A test case for which nothing was retrieved."""

from deepeval.metrics import ContextualRelevancyMetric, FaithfulnessMetric
from deepeval.test_case import LLMTestCase

case = LLMTestCase(input="Who tends the well?", actual_output="Hm!", retrieval_context=[])
SCORES = {
    "relevancy": ContextualRelevancyMetric(model="gpt-4.1", include_reason=False).measure(case),
    "faithfulness": FaithfulnessMetric(model="gpt-4.1", include_reason=False).measure(case),
}
