"""What the metrics of ragas 0.0 do with a row of their data set before they ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection

    from merilo.data.sample import Sample

SYSTEM: Final = "ragas-0.0"
"""The folder of the rubrics; the versions differ in how replies are read, not in what is asked."""
SAMPLING_TEMPERATURE: Final = 0.2
"""Sent where a metric asks for several replies and looks at how they differ."""
STEADY_TEMPERATURE: Final = 0.0
"""Sent by all other metrics."""
BLANK: Final = "what is to be judged is blank (with ask_blank=false)"


def joined(sample: Sample) -> str:
    """The retrieved contexts as one text, a line break between two. Raises MissingField."""
    return "\n".join(context.text for context in sample.contexts)


def is_blank(*texts: str) -> bool:
    """Whether one of the texts holds nothing but white space."""
    return not all(text.strip() for text in texts)


def bound(sample: Sample, needs: Collection[str], questions: int) -> int:
    """At most so many questions; none about a sample that lacks a needed field."""
    return questions if sample.present.issuperset(needs) else 0


def check_strictness(metric: str, strictness: int) -> None:
    """Raises UsageError unless the number of replies is at least 1."""
    if strictness < 1:
        raise UsageError(f"Metric {metric!r} takes strictness=a whole number of at least 1, got {strictness!r}.")
