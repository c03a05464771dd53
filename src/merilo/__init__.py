"""merilo measures retrieval-augmented generation.

Did the retriever bring the right text, and did the answer stay with it?

The names below are the public ones; each is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from merilo.api import (
        aevaluate,
        aevaluate_pipeline,
        compare,
        evaluate,
        evaluate_pipeline,
        gate,
        judge_check,
        label,
        plan,
        report,
    )
    from merilo.commands.evaluate.options import Limits, Model, Reading, Storage, Until
    from merilo.commands.evaluate.pipeline_options import Calls
    from merilo.data.load import load
    from merilo.data.sample import Context, Dataset, Sample
    from merilo.errors import DataError, Interrupted, MeriloError, ProviderDown, RunError, UsageError
    from merilo.judges.scripted import ScriptedJudge
    from merilo.judging.verdicts import Failure
    from merilo.metrics.base import Evidence, Failed, Metric, Outcome, Score, Undefined
    from merilo.metrics.contract import check_metric
    from merilo.metrics.registry import parse_metric, register
    from merilo.runs.run import Run

_HOMES = {
    "merilo.api": (
        "aevaluate",
        "aevaluate_pipeline",
        "compare",
        "evaluate",
        "evaluate_pipeline",
        "gate",
        "judge_check",
        "label",
        "plan",
        "report",
    ),
    "merilo.commands.evaluate.options": ("Limits", "Model", "Reading", "Storage", "Until"),
    "merilo.commands.evaluate.pipeline_options": ("Calls",),
    "merilo.data.load": ("load",),
    "merilo.data.sample": ("Context", "Dataset", "Sample"),
    "merilo.errors": ("DataError", "Interrupted", "MeriloError", "ProviderDown", "RunError", "UsageError"),
    "merilo.judges.scripted": ("ScriptedJudge",),
    "merilo.judging.verdicts": ("Failure",),
    "merilo.metrics.base": ("Evidence", "Failed", "Metric", "Outcome", "Score", "Undefined"),
    "merilo.metrics.contract": ("check_metric",),
    "merilo.metrics.registry": ("parse_metric", "register"),
    "merilo.runs.run": ("Run",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

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
    "Until",
    "UsageError",
    "aevaluate",
    "aevaluate_pipeline",
    "check_metric",
    "compare",
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


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'merilo' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
