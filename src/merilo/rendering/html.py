"""What a notebook shows of a result, and the writer of pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.errors import RunError
from merilo.rendering.explain import sample_texts, values
from merilo.rendering.markup import el
from merilo.rendering.page import Page, cut
from merilo.rendering.weak import WeakMarks
from merilo.runs.publish import write_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from merilo.data.sample import Sample
    from merilo.metrics.base import Outcome
    from merilo.runs.run import SampleResult

_WIDTH: Final = 100
_TEXT: Final = 500
_CONTEXTS: Final = 10


def write_page(path: Path, text: str) -> None:
    """Write a page atomically, so that a reader sees the old or the new one. Raises RunError if writing fails."""
    try:
        write_file(path, text)
    except OSError as error:
        raise RunError(f"Cannot write {path} ({error.strerror}); choose another file.") from error


def printed_html(result: object) -> str:
    """Return what `print` shows of a result as HTML, everything in it escaped."""
    return el("pre", str(result))


def sample_html(sample: Sample) -> str:
    """Return the texts of a sample and its first contexts."""
    return _sample(sample, {})


def result_html(found: SampleResult) -> str:
    """Return the texts of a sample, its first contexts, and its outcomes."""
    return _sample(found.sample, found.outcomes)


def _sample(sample: Sample, outcomes: Mapping[str, Outcome]) -> str:
    page = Page(_WIDTH)
    sample_texts(page, sample)
    contexts = sample.retrieved_contexts or ()
    if contexts:
        page.heading(f"Retrieved contexts: {len(contexts):,}")
        page.entries([(f"{at}.", cut(each.text, _TEXT)) for at, each in enumerate(contexts[:_CONTEXTS], start=1)])
    if outcomes:
        values(page, outcomes, WeakMarks())
    return printed_html(page)
