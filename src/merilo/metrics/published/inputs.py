"""Steps of published definitions before the first request: joined contexts, blank texts, bounds on requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection

    from merilo.data.sample import Sample

BLANK: Final = "what is to be judged is blank (with ask_blank=false)"
"""The reason of an Undefined outcome."""


def joined(sample: Sample) -> str:
    """Return the retrieved contexts as one text, with a line break between two. Raises MissingField."""
    return "\n".join(context.text for context in sample.contexts)


def is_blank(*texts: str) -> bool:
    """Return True if one of the texts holds only white space."""
    return not all(text.strip() for text in texts)


def bound(sample: Sample, needs: Collection[str], questions: int) -> int:
    """Return this maximum number of questions; 0 for a sample that lacks a needed field."""
    return questions if sample.present.issuperset(needs) else 0


def check_count(metric: str, parameter: str, count: int) -> None:
    """Raise UsageError unless a number of replies is at least 1."""
    if count < 1:
        raise UsageError(f"Metric {metric!r} takes {parameter}=a whole number of at least 1, got {count!r}.")
