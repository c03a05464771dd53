"""The functions that draw results, by name, so that a result type does not import the code that draws it."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

RENDERERS: Final = {
    ("Estimate", "text"): "merilo.commands.plan.run:plan_text",
    ("JudgeCheck", "text"): "merilo.commands.check.page:check_page",
    ("Run", "frame"): "merilo.rendering.frames:run_frame",
    ("Run", "markdown"): "merilo.commands.show.summary:run_markdown",
    ("Run", "page"): "merilo.commands.show.summary:run_page",
    ("Run", "record"): "merilo.commands.show.summary:run_record",
    ("Run", "text"): "merilo.commands.show.summary:run_text",
    ("RunComparison", "conclusion"): "merilo.commands.compare.wording:conclusion",
    ("RunComparison", "frame"): "merilo.commands.compare.record:comparison_frame",
    ("RunComparison", "text"): "merilo.commands.compare.text:comparison_text",
    ("Run", "corrected"): "merilo.commands.calibrate.correction:corrected_metrics",
    ("Run", "compare"): "merilo.api:run_compared",
    ("Run", "gate"): "merilo.api:gate",
    ("Run", "label"): "merilo.api:label",
    ("Run", "report"): "merilo.api:report",
    ("Run", "faults"): "merilo.commands.calibrate.slices:faults_of",
    ("Run", "slices"): "merilo.commands.calibrate.slices:slices_of",
    ("Slices", "text"): "merilo.rendering.aggregate:slices_text",
    ("Sample", "html"): "merilo.rendering.markup:sample_html",
    ("SampleResult", "html"): "merilo.rendering.markup:result_html",
}
"""Result type and form → module and function, which takes the result."""


def render(result: object, form: str, **options: object) -> Any:  # Any: text or a data frame
    """Return the result drawn in a form: `text`, `html`, `frame` (a data frame), or one that a command writes."""
    module, _, function = RENDERERS[type(result).__name__, form].partition(":")
    return getattr(import_module(module), function)(result, **options)


def notebook_html(result: object) -> str:
    """Return what a notebook shows of a result: the text that `print` shows, as HTML."""
    return str(import_module("merilo.rendering.markup").printed_html(result))
