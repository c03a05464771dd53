"""The page of `merilo demo`: two retrievers compared, answers compared with human labels, one sample explained."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from merilo.metrics.base import Family, Score
from merilo.metrics.registry import families, known_metric
from merilo.rendering.explain import statements
from merilo.rendering.overview import agreement, command, judge_name
from merilo.rendering.page import Page, Span, Tone, columns
from merilo.rendering.wording import NONE, number, span
from merilo.results.sample_detail import SampleDetail
from merilo.stats.intervals import Moments, t_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from merilo.data.sample import Sample
    from merilo.runs.run import Run

_FAITHFULNESS = "faithfulness"
_DEPTH = 5
_DIFFERENCES = (-1.0, 1.0)
_SHOWN_STATEMENTS = 5
_FROM_REFERENCE = ("context_precision(against=reference)", "context_recall")
"""Metrics that here nearly look up the chosen passage, as the references were written from it."""


@dataclass(frozen=True)
class Table:
    """The values of a run (metric → sample id → value, for scored samples) and its samples in order."""

    run: Run

    @cached_property
    def samples(self) -> dict[str, Sample]:
        """Every sample by its id."""
        return {found.sample.id: found.sample for found in self.run.samples}

    @cached_property
    def values(self) -> dict[str, dict[str, float]]:
        """By metric, the value of each scored sample."""
        table: dict[str, dict[str, float]] = {metric: {} for metric in self.run.metrics}
        for found in self.run.samples:
            for metric, outcome in found.outcomes.items():
                if isinstance(outcome, Score):
                    table[metric][found.sample.id] = outcome.value
        return table

    def of(self, score: Callable[[Sample], float]) -> dict[str, float]:
        """Return a score that needs no judge, by sample id."""
        return {name: score(sample) for name, sample in self.samples.items()}


def demo_page(first: Run, second: Run, answers: Run, width: int) -> Page:
    """Return the whole demonstration as one page; equal runs give equal text."""
    page = Page(width)
    page.text("merilo demo: real data, judged on this machine, no key, no network", tone=Tone.STRONG)
    page.text(
        f"The judge is {judge_name(first)}; {agreement(first) or 'its agreement with human labels is not known'}."
    )
    _retrievers(page, Table(first), Table(second))
    table = Table(answers)
    _answers(page, table)
    sample = _worst(table)
    _explained(page, answers, sample)
    page.heading("Next")
    page.line("  " + command("show", str(answers.path), "--sample", sample))
    page.line("  " + command("show", str(second.path), "--worst", "5", "--metric", "context_relevance"))
    page.line("  " + command("run", str(_data_of(answers)), "--metrics", _FAITHFULNESS))
    return page


# -- retrieval ----------------------------------------------------------------------------------------


def _retrievers(page: Page, first: Table, second: Table) -> None:
    page.heading(f"1. Which retriever is better? {len(first.samples)} questions, two retrievers, the same passages")
    page.blank()
    names = (first.run.path.name, second.run.path.name.removeprefix("opening_"))
    both = [metric for metric in first.values if metric in second.values and _asks(metric)]
    judged = [(metric, first.values[metric], second.values[metric]) for metric in both]
    gold = [(name, first.of(score), second.of(score)) for name, score in _GOLD.items()]
    head = ("mean over questions", *names, "difference, 95 % interval")
    rows = columns([head, *(_compared(*row) for row in (*judged, *gold))], left=frozenset({0}))
    for place, row in enumerate(rows):
        if place == 1 + len(judged):
            page.line(Span("by the id of the passage that annotators chose (no judge)", Tone.QUIET))
        if place == 1:
            page.line(Span("by the judge", Tone.QUIET))
        page.line(Span(row, Tone.STRONG if not place else Tone.PLAIN))
    page.blank()
    page.text(f"{_verdict(names, judged, gold)} Intervals cover sampling of questions, not judge error.")


def _asks(metric: str) -> bool:
    """Return True if the metric needs a judge."""
    known = known_metric(metric)
    return known is not None and bool(known.asks)


_Row = tuple[str, dict[str, float], dict[str, float]]


def _compared(name: str, first: dict[str, float], second: dict[str, float]) -> tuple[str, ...]:
    moments = _differences(first, second)
    if not moments.count:
        return (name, number(_mean(first)), number(_mean(second)), NONE)
    ends = t_interval(moments, _DIFFERENCES).ends
    interval = "no interval" if ends is None else f"{ends[0]:+.3f} to {ends[1]:+.3f}"
    both = first.keys() & second.keys()
    means = (number(_mean({sample: side[sample] for sample in side if sample in both})) for side in (first, second))
    return (name, *means, f"{moments.mean:+.3f}, {interval}")


def _verdict(names: tuple[str, str], judged: Sequence[_Row], gold: Sequence[_Row]) -> str:
    own = [row for row in judged if row[0] not in _FROM_REFERENCE]
    by_judge, by_labels = _ahead(own, names), _ahead(gold, names)
    agree = "They agree." if by_judge == by_labels else "They disagree; inspect single samples before you decide."
    return (
        f"By the judge, {by_judge} is ahead; by the passages that annotators chose, {by_labels}. {agree} "
        f"{' and '.join(_FROM_REFERENCE)} do not count here: they use the reference, which annotators wrote from the "
        "passage they chose. Means and differences are over the questions with a value for both retrievers."
    )


def _ahead(rows: Sequence[_Row], names: tuple[str, str]) -> str:
    """Return the retriever that is ahead, or "neither".

    A retriever is ahead if every interval that excludes zero is in its favour, and there is one.
    """
    sides = set[str]()
    for _, first, second in rows:
        ends = t_interval(_differences(first, second), _DIFFERENCES).ends
        if ends is not None and (ends[0] > 0 or ends[1] < 0):
            sides.add(names[0] if ends[0] > 0 else names[1])
    return sides.pop() if len(sides) == 1 else "neither"


def _differences(first: dict[str, float], second: dict[str, float]) -> Moments:
    moments = Moments()
    for sample, value in first.items():
        if sample in second:
            moments.add(value - second[sample])
    return moments


def _mean(values: dict[str, float]) -> float | None:
    return sum(values.values()) / len(values) if values else None


def _rank(sample: Sample) -> int | None:
    """Return the rank, from 1, of the first retrieved context that annotators chose; None if not in the first 5."""
    chosen = set(sample.require("reference_context_ids"))
    retrieved = sample.require("retrieved_context_ids")[:_DEPTH]
    return next((rank for rank, name in enumerate(retrieved, start=1) if name in chosen), None)


_GOLD: dict[str, Callable[[Sample], float]] = {
    "hit rate@1": lambda sample: float(_rank(sample) == 1),
    "hit rate@5": lambda sample: float(_rank(sample) is not None),
    "MRR@5": lambda sample: 1 / (_rank(sample) or float("inf")),
}


# -- answers ------------------------------------------------------------------------------------------


def _answers(page: Page, table: Table) -> None:
    good = [name for name, sample in table.samples.items() if sample.metadata.get("label") == 1]
    bad = [name for name in table.samples if name not in set(good)]
    page.heading(f"2. Are the answers supported by their passages? {len(table.samples)} answers of a small model")
    page.blank()
    head = ("mean over answers", "all", "95 % interval", f"good ({len(good)})", f"bad ({len(bad)})")
    rows: list[tuple[str, ...]] = [head]
    for metric, aggregate in table.run.metrics.items():
        if aggregate.scored and metric in families()[Family.RESPONSE]:
            values = table.values[metric]
            halves = (_mean({name: values[name] for name in half if name in values}) for half in (good, bad))
            rows.append((metric, number(aggregate.mean), span(aggregate.interval), *map(number, halves)))
    for place, row in enumerate(columns(rows, left=frozenset({0}))):
        page.line(Span(row, Tone.PLAIN if place else Tone.STRONG))
    page.blank()
    page.text(
        "Good: an annotator found every sentence supported by the passages; bad: at least one was not. Faithfulness "
        "should separate them. answer_relevancy is left out, because it is weak with this judge."
    )


def _worst(table: Table) -> str:
    """Return the id of the least faithful answer among those that annotators found bad."""
    values = table.values[_FAITHFULNESS]
    bad = [name for name in values if table.samples[name].metadata.get("label") == 0] or list(values)
    return min(bad, key=lambda name: values[name])


def _explained(page: Page, run: Run, sample_id: str) -> None:
    case = SampleDetail.of(run, sample_id)
    sample = case.result.sample
    page.heading(f"3. Why is this answer bad? {sample_id}")
    page.blank()
    page.entry("user input", sample.user_input or "", column=14)
    page.entry("response", sample.response or "", column=14)
    outcome = case.result.outcomes[_FAITHFULNESS]
    if isinstance(outcome, Score):
        page.entry(_FAITHFULNESS, number(outcome.value), column=14)
    for view in case.contexts:
        for index in sorted(view.evidence):
            page.entry("evidence", view.sentences[index], column=14)
    page.blank()
    for metrics, views in case.statements.items():
        if _FAITHFULNESS in metrics:
            statements(page, views[:_SHOWN_STATEMENTS])
    marked = [each["text"] for each in _sentences(sample) if not each["supported"]]
    page.blank()
    for text in marked[:_SHOWN_STATEMENTS]:
        page.entry("labelled unsupported", text, column=22)


def _sentences(sample: Sample) -> list[dict[str, Any]]:  # Any: JSON of the example data
    return cast("list[dict[str, Any]]", sample.metadata.get("sentences", []))


def _data_of(run: Run) -> Path:
    return run.path.parent / "data" / f"{run.path.name}.jsonl"
