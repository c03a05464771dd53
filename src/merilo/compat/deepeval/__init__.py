"""DeepEval's documented names: a script written for its metrics of RAG runs with its import line changed.

`test_case`, `metrics`, `dataset`, `models` and `evaluate` are modules here too. Every number is one of merilo's
published definitions, such as `deepeval-4.3.1:faithfulness`. docs/from-deepeval.md shows all of it.
"""

from __future__ import annotations

from merilo.compat.deepeval.dataset import EvaluationDataset, Golden
from merilo.compat.deepeval.evaluate import EvaluationResult, assert_test, evaluate
from merilo.compat.deepeval.test_case import LLMTestCase

__all__ = ["EvaluationDataset", "EvaluationResult", "Golden", "LLMTestCase", "assert_test", "evaluate"]
