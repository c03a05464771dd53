# Upstream page: https://deepeval.com/docs/evaluation-datasets
# Lines: 4.3
"""Goldens of a JSON file, under other keys."""

import json
import os
import tempfile

from deepeval.dataset import EvaluationDataset
from deepeval.metrics import AnswerRelevancyMetric
from deepeval.test_case import LLMTestCase

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "goldens.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump([{"query": "How long is a refund?", "expected": "One week."}], file)
    dataset = EvaluationDataset()
    dataset.add_goldens_from_json_file(file_path=path, input_key_name="query", expected_output_key_name="expected")
(golden,) = dataset.goldens
metric = AnswerRelevancyMetric(model="gpt-4.1", include_reason=False)
score = metric.measure(LLMTestCase(input=golden.input, actual_output="Refunds need one week."))
SCORES = {"goldens": len(dataset.goldens), "expected": len(golden.expected_output), "score": score}
