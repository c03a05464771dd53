# Upstream page: https://deepeval.com/docs/metrics-introduction
# Lines: 4.3
"""In strict mode a score below 1 counts as 0."""

from deepeval.metrics import ContextualRecallMetric
from deepeval.test_case import LLMTestCase

recall_case = LLMTestCase(
    input="What grows in the Orrin valley?",
    actual_output="Barley.",
    expected_output="Barley grows in the Orrin valley. Rye grows there. So do apples.",
    retrieval_context=["Barley and rye grow in the valley of Orrin."],
)
strict = ContextualRecallMetric(model="gpt-4.1", strict_mode=True, include_reason=False)
loose = ContextualRecallMetric(model="gpt-4.1", threshold=0.6, include_reason=False)
SCORES = {
    "strict": strict.measure(recall_case),
    "threshold": strict.threshold,
    "loose": loose.measure(recall_case),
    "passes": loose.is_successful(),
}
