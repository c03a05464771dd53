"""merilo measures retrieval-augmented generation.

Did the retriever bring the right text, and did the answer stay with it?

The names below are the public ones; each is imported when it is first used.
"""

from typing import TYPE_CHECKING

from merilo.lazy import exports
from merilo.renderers import RENDERERS

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
    from merilo.runs.run import Run

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

RENDERERS.update(
    {
        ("Estimate", "text"): "merilo.commands.plan.run:plan_text",
        ("JudgeCheck", "text"): "merilo.commands.check.page:check_page",
        ("Run", "frame"): "merilo.rendering.frames:run_frame",
        ("Run", "markdown"): "merilo.commands.show.summary:run_markdown",
        ("Run", "page"): "merilo.commands.show.summary:run_page",
        ("Run", "record"): "merilo.commands.show.summary:run_record",
        ("Run", "plot"): "merilo.rendering.interval_plot:run_plot",
        ("Run", "repr"): "merilo.commands.show.summary:run_repr",
        ("Run", "text"): "merilo.commands.show.summary:run_text",
        ("RunComparison", "conclusion"): "merilo.commands.compare.text:conclusion",
        ("RunComparison", "faults"): "merilo.commands.compare.record:compared_faults",
        ("RunComparison", "frame"): "merilo.commands.compare.record:comparison_frame",
        ("RunComparison", "report"): "merilo.commands.report.run_page:write_comparison",
        ("RunComparison", "text"): "merilo.commands.compare.text:comparison_page",
        ("Run", "corrected"): "merilo.commands.calibrate.correction:corrected_metrics",
        ("Run", "compare"): "merilo.api:run_compared",
        ("Run", "gate"): "merilo.api:gate",
        ("Run", "label"): "merilo.api:label",
        ("Run", "report"): "merilo.api:report",
        ("Run", "faults"): "merilo.commands.calibrate.slices:faults_of",
        ("Run", "shown"): "merilo.commands.calibrate.levels:shown_run",
        ("Run", "slices"): "merilo.commands.calibrate.slices:slices_of",
        ("Slices", "text"): "merilo.rendering.aggregate:slices_text",
        ("Sample", "html"): "merilo.rendering.markup:sample_html",
        ("SampleResult", "fault"): "merilo.results.faults:sample_fault",
        ("SampleResult", "text"): "merilo.rendering.explain:result_text",
        ("SampleResult", "html"): "merilo.rendering.markup:result_html",
        ("object", "notebook"): "merilo.rendering.markup:printed_html",
    }
)
