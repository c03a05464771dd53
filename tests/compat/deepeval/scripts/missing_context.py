# Upstream page: https://deepeval.com/docs/metrics-contextual-recall
# Lines: 4.3
"""A metric refuses a test case that lacks a field."""

from deepeval.metrics import ContextualRecallMetric
from deepeval.test_case import LLMTestCase

metric = ContextualRecallMetric(model="gpt-4.1")
try:
    metric.measure(LLMTestCase(input="How long is a refund?", actual_output="One week."))
    raised = ""
except Exception as error:
    raised = type(error).__name__
SCORES = {"raised": raised == "MissingTestCaseParamsError"}
