"""DeepEval's documented names: a script written for its metrics of RAG runs with its import line changed.

`test_case`, `metrics`, `dataset`, `models`, `errors` and `evaluate` are modules here too. Every number is one of
merilo's published definitions, such as `deepeval-4.3.1:faithfulness`. docs/from-deepeval.md shows all of it.
"""

from __future__ import annotations

import sys

from .. import missing
from . import metrics as models
from . import test_case as errors
from .evaluate import EvaluationDataset, EvaluationResult, Golden, assert_test, evaluate
from .test_case import LLMTestCase

__all__ = [
    "EvaluationDataset",
    "EvaluationResult",
    "Golden",
    "LLMTestCase",
    "assert_test",
    "errors",
    "evaluate",
    "models",
]

_METRICS = ("answer_relevancy", "contextual_precision", "contextual_recall", "contextual_relevancy", "faithfulness")
_FILES = {
    "metrics": ("base_metric", *_METRICS, *(f"{name}.{name}" for name in _METRICS)),
    "test_case": ("llm_test_case", "conversational_test_case"),
    "dataset": ("dataset", "golden"),
    "evaluate": ("configs", "evaluate"),
    "models": ("base_model", "llms"),
}
"""Module → files of DeepEval whose names it has."""
dataset = sys.modules[f"{__name__}.evaluate"]
sys.modules.update({f"{__name__}.dataset": dataset, f"{__name__}.errors": errors, f"{__name__}.models": models})
for _module, _names in _FILES.items():
    missing.add_files(f"{__name__}.{_module}", *_names)
missing.cover(__name__)
