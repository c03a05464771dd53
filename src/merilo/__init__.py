"""merilo measures retrieval-augmented generation.

Did the retriever bring the right text, and did the answer stay with it?

The names below are the public ones; each is imported when it is first used.
"""

from typing import TYPE_CHECKING

from merilo.lazy import exports

if TYPE_CHECKING:
    from merilo.api import aevaluate, aevaluate_pipeline, diagnose, evaluate, evaluate_pipeline, judge_check, plan
    from merilo.commands.evaluate.options import Calls, Limits, Model, Reading, Storage
    from merilo.data.context import Context
    from merilo.data.load import load
    from merilo.data.sample import Dataset, Sample
    from merilo.errors import DataError, Interrupted, MeriloError, ProviderDown, RunError, UsageError
    from merilo.judges.scripted import ScriptedJudge
    from merilo.judging.verdicts import Failure
    from merilo.metrics.base import Evidence, Failed, Metric, Outcome, Score, Undefined
    from merilo.metrics.contract import check_metric
    from merilo.metrics.registry import parse_metric, register
    from merilo.shown import Run, compare, gate, label, report

__all__ = [
    "Calls",
    "Context",
    "DataError",
    "Dataset",
    "Evidence",
    "Failed",
    "Failure",
    "Interrupted",
    "Limits",
    "MeriloError",
    "Metric",
    "Model",
    "Outcome",
    "ProviderDown",
    "Reading",
    "Run",
    "RunError",
    "Sample",
    "Score",
    "ScriptedJudge",
    "Storage",
    "Undefined",
    "UsageError",
    "aevaluate",
    "aevaluate_pipeline",
    "check_metric",
    "compare",
    "diagnose",
    "evaluate",
    "evaluate_pipeline",
    "gate",
    "judge_check",
    "label",
    "load",
    "parse_metric",
    "plan",
    "register",
    "report",
]

__getattr__, __dir__ = exports(__name__, modules=("judges", "metrics", "providers", "stats", "testing"))
