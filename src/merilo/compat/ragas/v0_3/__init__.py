"""ragas 0.3: the names of `merilo.compat.ragas`, with the metrics and numbers of that line."""

from __future__ import annotations

import sys

from merilo.compat.ragas import dataset_schema, embeddings, llms, run_config
from merilo.compat.ragas.dataset_schema import EvaluationDataset, MultiTurnSample, SingleTurnSample
from merilo.compat.ragas.evaluation import Evaluation, EvaluationResult
from merilo.compat.ragas.run_config import RunConfig
from merilo.compat.ragas.table import V0_3
from merilo.compat.ragas.v0_3.metrics import METRICS

__all__ = [
    "EvaluationDataset",
    "EvaluationResult",
    "MultiTurnSample",
    "RunConfig",
    "SingleTurnSample",
    "aevaluate",
    "evaluate",
]

for _module in (dataset_schema, embeddings, llms, run_config):  # the same on every line
    sys.modules[f"{__name__}.{_module.__name__.rpartition('.')[2]}"] = _module

_evaluation = Evaluation(V0_3, METRICS)
evaluate = _evaluation.evaluate
aevaluate = _evaluation.aevaluate
