"""ragas' documented names: a script written for ragas runs with its import line changed.

This module and its `metrics` are the newest line, 0.4. `v0_0` to `v0_3` have the same modules for scripts and numbers
of those lines. Every number is one of merilo's published definitions, such as `ragas-0.4.3:faithfulness`.
docs/from-ragas.md shows all of it.

::

    evaluation.py       evaluate(): data set, metrics, models → a run of merilo → EvaluationResult
    lines.py            the modules of metrics and of version lines, made from the table
    scorers.py          the metric classes, made from the table; scores of one sample
    table.py            class and options in ragas → definition and parameters in merilo, by line
    dataset_schema.py   samples and data sets
    models.py           wrappers, factories → judges and embedders (merilo.compat.scoring), RunConfig
"""

from __future__ import annotations

from . import lines
from .dataset_schema import EvaluationDataset, MultiTurnSample, SingleTurnSample
from .evaluation import EvaluationResult
from .models import RunConfig

__all__ = [
    "EvaluationDataset",
    "EvaluationResult",
    "MultiTurnSample",
    "RunConfig",
    "SingleTurnSample",
    "aevaluate",
    "evaluate",
]

_evaluation = lines.install()
evaluate = _evaluation.evaluate
aevaluate = _evaluation.aevaluate
