# Upstream page: https://deepeval.com/docs/metrics-introduction
# Lines: 4.3
"""Measure in code that runs in an event loop."""

import asyncio

from deepeval.metrics import ContextualPrecisionMetric
from deepeval.test_case import LLMTestCase

case = LLMTestCase(
    input="Where does the ferry to Lund leave?",
    actual_output="From pier two.",
    expected_output="It leaves from pier two.",
    retrieval_context=["The museum of Lund opens at nine.", "The ferry uses pier two.", "Pier two is in the north."],
)


async def main():
    metric = ContextualPrecisionMetric(model="gpt-4.1", include_reason=False)
    await metric.a_measure(case)
    return metric.score


SCORES = {"score": asyncio.run(main())}
