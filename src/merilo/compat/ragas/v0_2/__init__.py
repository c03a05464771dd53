"""ragas 0.2: the names of `merilo.compat.ragas`, with the metrics and numbers of that line."""

from __future__ import annotations

from merilo.compat.ragas import EvaluationDataset, EvaluationResult, MultiTurnSample, RunConfig, SingleTurnSample
from merilo.compat.ragas.evaluation import Evaluation, share_modules
from merilo.compat.ragas.table import V0_2
from merilo.compat.ragas.v0_2.metrics import METRICS

__all__ = [
    "EvaluationDataset",
    "EvaluationResult",
    "MultiTurnSample",
    "RunConfig",
    "SingleTurnSample",
    "aevaluate",
    "evaluate",
]

share_modules(__name__)
_evaluation = Evaluation(V0_2, METRICS)
evaluate = _evaluation.evaluate
aevaluate = _evaluation.aevaluate
