# Upstream page: https://deepeval.com/docs/metrics-contextual-recall
# Lines: 4.3
"""A judge that writes text around its JSON."""

from deepeval.metrics import ContextualRecallMetric
from deepeval.test_case import LLMTestCase

case = LLMTestCase(
    input="What grows in the Orrin valley?",
    actual_output="Barley.",
    expected_output="Barley grows in the Orrin valley. So do apples.",
    retrieval_context=["Barley and rye grow in the valley of Orrin."],
)
metric = ContextualRecallMetric(model="gpt-4.1", include_reason=False)
try:
    score = metric.measure(case)
except Exception as error:
    print(type(error).__name__, error)
    score = float("nan")
SCORES = {"score": score}
