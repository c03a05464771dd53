"""Scores of the metrics that explain them in their own words (`merilo.metrics.base.InWords`)."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from merilo.metrics.base import InWords, Outcome, Score, ScoreWords
from merilo.metrics.registry import known_metric

if TYPE_CHECKING:
    from merilo.data.sample import Sample
    from merilo.rendering.page import Page
    from merilo.runs.run import Run


def explain(page: Page, metric: str, outcome: Outcome, sample: Sample) -> None:
    """Add a sample's score in the words of its metric; nothing for other metrics or without a score."""
    if (found := _with_words(metric)) is not None and isinstance(outcome, Score):
        words = found.in_words(outcome.value, sample.resolved_language)
        _add(page, metric, words)
        page.entries([(words.user_input, sample.user_input or ""), *found.contexts_in_words(outcome, sample)])


def explained(metric: str, outcome: Score, sample: Sample) -> str:
    """Return a sample's score and those of its contexts as one text; empty for other metrics."""
    if (found := _with_words(metric)) is None:
        return ""
    contexts = [f"{name}: {text}" for name, text in found.contexts_in_words(outcome, sample)]
    return "; ".join([*found.in_words(outcome.value, sample.resolved_language).lines, *contexts]).replace("\n", ", ")


def interpret_means(page: Page, run: Run) -> None:
    """Add the mean of each metric that has words."""
    for metric, words in _means(run):
        _add(page, metric, words)


def mean_rows(run: Run) -> list[tuple[str, str]]:
    """Return the name and the mean in words of each metric that has words."""
    return [(f"{words.title} ({metric})", "; ".join(words.lines)) for metric, words in _means(run)]


def _means(run: Run) -> list[tuple[str, ScoreWords]]:
    means = {text: each.mean for text, each in run.metrics.items() if each.mean is not None}
    found = {text: metric for text in means if (metric := _with_words(text)) is not None}
    if not found:
        return []
    language = run.manifest.language or next((each.sample.resolved_language for each in run.samples), "en")
    return [(text, metric.in_words(means[text], language)) for text, metric in found.items()]


@cache  # looking for a protocol's methods is slow, and a report asks for each outcome
def _with_words(metric: str) -> InWords | None:
    found = known_metric(metric)
    return found if isinstance(found, InWords) else None


def _add(page: Page, metric: str, words: ScoreWords) -> None:
    page.heading(f"{words.title} ({metric})")
    for line in words.lines:
        page.text(line, indent=2)
