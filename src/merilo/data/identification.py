"""Samples that name no language, with the language that their texts show."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from merilo.data.language import identify_language
from merilo.data.sample import first_text

if TYPE_CHECKING:
    from merilo.data.context import Context
    from merilo.data.sample import Sample


def with_identified_language(sample: Sample) -> Sample:
    """Return the sample with the language of its first text, unless it names one or the script shows it."""
    if sample.language is not None:
        return sample
    language = identify_language(first_text(sample))
    if language in {None, sample.resolved_language}:
        return sample
    return replace(
        sample,
        language=language,
        retrieved_contexts=_identified(sample.retrieved_contexts),
        reference_contexts=_identified(sample.reference_contexts),
    )


def _identified(contexts: tuple[Context, ...] | None) -> tuple[Context, ...] | None:
    # Their own languages: a context without one would have that of the sample.
    if contexts is None:
        return None
    return tuple(each if each.language else replace(each, language=identify_language(each.text)) for each in contexts)
