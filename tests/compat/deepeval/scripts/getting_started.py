# Upstream page: https://deepeval.com/docs/getting-started
# Lines: 4.3
"""Evaluate two test cases with one metric."""

from deepeval import evaluate
from deepeval.metrics import AnswerRelevancyMetric
from deepeval.test_case import LLMTestCase

first = LLMTestCase(name="refund", input="How long is a refund?", actual_output="Refunds need one week.")
second = LLMTestCase(name="cats", input="How do I pay?", actual_output="Our cats sleep all day.")
result = evaluate(test_cases=[first, second], metrics=[AnswerRelevancyMetric(threshold=0.5, model="gpt-4.1")])
by_name = {each.name: each for each in result.test_results}
SCORES = {name: by_name[name].metrics_data[0].score for name in ("refund", "cats")}
SCORES["passing"] = sum(each.success for each in result.test_results)
