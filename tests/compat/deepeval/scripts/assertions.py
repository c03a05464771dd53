# Upstream page: https://deepeval.com/docs/evaluation-unit-testing-in-ci-cd
# Lines: 4.3
"""A test that fails names the metric."""

from deepeval import assert_test
from deepeval.metrics import AnswerRelevancyMetric
from deepeval.test_case import LLMTestCase


def test_refund():
    test_case = LLMTestCase(input="How long is a refund?", actual_output="Refunds need one week.")
    assert_test(test_case, [AnswerRelevancyMetric(threshold=0.5, model="gpt-4.1")])


def test_cats():
    test_case = LLMTestCase(input="How do I pay?", actual_output="Our cats sleep all day.")
    assert_test(test_case, [AnswerRelevancyMetric(threshold=0.5, model="gpt-4.1")])


test_refund()
try:
    test_cats()
    raised = ""
except AssertionError as error:
    raised = str(error)
SCORES = {"raised": bool(raised), "names": "Answer Relevancy (score: 0" in raised and "threshold: 0.5" in raised}
