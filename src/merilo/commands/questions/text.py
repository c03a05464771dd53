"""What `merilo questions` reports: a page of text, or a JSON object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from merilo.rendering.page import Page, Tone
from merilo.rendering.wording import count, spent_text

if TYPE_CHECKING:
    from merilo.commands.questions.run import SampledQuestions

_NOT_CLOSED_BOOK: Final = (
    "The judge writes no free text, so merilo did not test if a model knows the answers without any text."
)


def questions_page(found: SampledQuestions, output: str, without: str | None, width: int) -> Page:
    """Return the number of questions, the draw, the dropped questions and the cost."""
    page = Page(width)
    page.text(
        f"{count(len(found.kept), 'question')}, each with an unanswerable twin, in {output}.",
        tone=Tone.STRONG,
    )
    if without is not None:
        page.text(f"The documents without the passages of these questions are in {without}.")
    page.text(f"{_drawn(found)}.")
    if found.dropped:
        page.heading("Dropped")
        page.entries([(f"{number:,}", reason) for reason, number in found.dropped.items()])
    if found.failures:
        page.heading("Failed")
        page.entries([(f"{number:,}", message) for message, number in found.failures.items()])
    if found.not_asked:
        page.blank()
        page.text(f"{count(found.not_asked, 'passage')} not asked about: {found.stopped or 'the run was stopped.'}")
    if not found.closed_book:
        page.blank()
        page.text(_NOT_CLOSED_BOOK, tone=Tone.QUIET)
    page.heading("Requests, cost and time")
    page.text(spent_text(found.usage), indent=2)
    return page


def _drawn(found: SampledQuestions) -> str:
    settings, corpus = found.settings, found.corpus
    how = "at random, at least one from each document" if settings.stratify else "uniformly"
    of = f"{count(len(corpus.passages), 'passage')} in {count(len(corpus.documents), 'document')}"
    return f"{found.drawn:,} of {of} were drawn {how} (seed {settings.seed})"


def questions_record(found: SampledQuestions, output: str, without: str | None) -> dict[str, Any]:  # Any: JSON
    """Return the same as a JSON-able object; equal input gives equal bytes, except under `usage`."""
    settings = found.settings
    return {
        "file": output,
        "without": without,
        "judge": found.judge.name,
        "documents": len(found.corpus.documents),
        "passages": len(found.corpus.passages),
        "drawn": found.drawn,
        "kept": len(found.kept),
        "dropped": dict(found.dropped),
        "failures": dict(found.failures),
        "not_asked": found.not_asked,
        "sentences": settings.sentences,
        "seed": settings.seed,
        "stratified": settings.stratify,
        "closed_book": found.closed_book,
        "stopped": found.stopped,
        "usage": dict(found.usage),
    }
