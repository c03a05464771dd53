# Upstream page: https://deepeval.com/docs/evaluation-datasets
# Lines: 4.3
"""Goldens become test cases, which are evaluated at the end."""

from deepeval import evaluate
from deepeval.dataset import EvaluationDataset, Golden
from deepeval.metrics import AnswerRelevancyMetric
from deepeval.test_case import LLMTestCase


def pipeline(question):
    return {"How long is a refund?": "Refunds need one week."}.get(question, "Our cats sleep all day.")


dataset = EvaluationDataset(goldens=[Golden(input="How long is a refund?"), Golden(input="How do I pay?")])
for golden in dataset.goldens:
    dataset.add_test_case(LLMTestCase(input=golden.input, actual_output=pipeline(golden.input)))
result = evaluate(test_cases=dataset.test_cases, metrics=[AnswerRelevancyMetric(model="gpt-4.1")])
scores = {each.input: each.metrics_data[0].score for each in result.test_results}
SCORES = {"refund": scores["How long is a refund?"], "pay": scores["How do I pay?"]}
