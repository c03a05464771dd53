"""A sample in a notebook: its outcomes and its texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.data.history import shown_history
from merilo.metrics.base import Failed, Score
from merilo.rendering.html import rendered
from merilo.rendering.wording import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.data.sample import Sample
    from merilo.metrics.base import Outcome
    from merilo.runs.run import SampleResult

_TEXT_CHARS: Final = 2_000
_CONTEXTS: Final = 10


def sample_html(sample: Sample) -> str:
    """Return the texts of a sample as HTML, long ones truncated, everything escaped."""
    return _html(sample, ())


def result_html(found: SampleResult) -> str:
    """Return the outcomes and the texts of a sample as HTML, long texts truncated, everything escaped."""
    return _html(found.sample, [_row(metric, outcome) for metric, outcome in found.outcomes.items()])


def _html(sample: Sample, rows: Sequence[tuple[str, ...]]) -> str:
    texts = (
        ("Earlier turns", shown_history(sample.history)),
        ("User input", sample.user_input),
        ("Response", sample.response),
        ("Reference", sample.reference),
    )
    contexts = sample.retrieved_contexts
    return rendered(
        "sample",
        title=f"Sample {sample.id}",
        rows=rows,
        texts=[(name, _cut(text)) for name, text in texts if text is not None],
        contexts=None if contexts is None else [_cut(each.text) for each in contexts[:_CONTEXTS]],
        count=len(contexts or ()),
    )


def _row(metric: str, outcome: Outcome) -> tuple[str, ...]:
    if isinstance(outcome, Score):
        return metric, number(outcome.value), "scored", ""
    if isinstance(outcome, Failed):
        return metric, number(None), "failed", outcome.error.message
    return metric, number(None), "undefined", outcome.reason


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT_CHARS else f"{text[:_TEXT_CHARS]} ... ({len(text):,} characters)"
