# Upstream page: https://deepeval.com/docs/evaluation-flags-and-configs
# Lines: 4.3
"""A metric whose field is missing is skipped."""

from deepeval import evaluate
from deepeval.evaluate import AsyncConfig, DisplayConfig, ErrorConfig
from deepeval.metrics import AnswerRelevancyMetric, ContextualRecallMetric
from deepeval.test_case import LLMTestCase

case = LLMTestCase(input="How long is a refund?", actual_output="Refunds need one week.")
metrics = [
    AnswerRelevancyMetric(model="gpt-4.1", include_reason=False),
    ContextualRecallMetric(model="gpt-4.1", include_reason=False),
]
(result,) = evaluate(
    [case],
    metrics,
    async_config=AsyncConfig(max_concurrent=2),
    display_config=DisplayConfig(print_results=False),
    error_config=ErrorConfig(skip_on_missing_params=True),
).test_results
SCORES = {data.name: data.score for data in result.metrics_data}
