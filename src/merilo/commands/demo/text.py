"""The page of `merilo demo`: two retrievers compared, answers compared with human labels, one sample explained."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from merilo.commands.compare.run import ComparisonRequest, compare_runs
from merilo.commands.compare.text import differences
from merilo.metrics.base import Family, Score
from merilo.metrics.registry import families
from merilo.rendering.explain import statements
from merilo.rendering.overview import agreement, command, judge_name
from merilo.rendering.page import Page, Span, Tone, columns
from merilo.rendering.wording import number, span
from merilo.results.sample_detail import SampleDetail

if TYPE_CHECKING:
    from pathlib import Path

    from merilo.data.sample import Sample
    from merilo.runs.run import Run

_FAITHFULNESS = "faithfulness"
_SHOWN_STATEMENTS = 5


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


def demo_page(first: Run, second: Run, answers: Run, width: int) -> Page:
    """Return the whole demonstration as one page; equal runs give equal text."""
    page = Page(width)
    page.text("merilo demo: real data, judged on this machine, no key, no network", tone=Tone.STRONG)
    page.text(
        f"The judge is {judge_name(first)}; {agreement(first) or 'its agreement with human labels is not known'}."
    )
    _retrievers(page, first, second)
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


def _retrievers(page: Page, first: Run, second: Run) -> None:
    found = compare_runs([first, second], ComparisonRequest(samples=0))
    page.heading(f"1. Which retriever is better? {found.common} questions, two retrievers, the same passages")
    page.blank()
    page.text(found.conclusion)
    page.blank()
    differences(page, found, 1)
    page.blank()
    page.text("Ids are compared with those of the passages that annotators chose.")


# -- answers ------------------------------------------------------------------------------------------


def _mean(values: dict[str, float]) -> float | None:
    return sum(values.values()) / len(values) if values else None


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
