"""The files and the report of a draw: each question with its unanswerable twin, the documents left, and a summary."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from merilo.errors import UsageError
from merilo.rendering.page import Page, Tone
from merilo.rendering.wording import count, spent_text
from merilo.results.records import picked
from merilo.runs.files import write_file, writing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from merilo.commands.questions.run import KeptQuestion, SampledQuestions
    from merilo.data.corpus import SourceDocument

    Row = dict[str, Any]  # Any: JSON

_NOT_CLOSED_BOOK: Final = (
    "The judge writes no free text, so merilo did not test if a model knows the answers without any text."
)


def rows_of(kept: KeptQuestion) -> Iterator[Row]:
    """Yield the question as a record of a data set, then its twin, whose passage is removed from the documents."""
    common = picked(kept, "document start end")
    twin, contexts = f"{kept.id}:without", [*kept.others]
    own = {"kind": "question", "answerable": True, "twin": twin, "contexts": [kept.passage, *contexts]}
    yield {
        "id": kept.id,
        "user_input": kept.question,
        **({"reference": kept.answer} if kept.answer else {}),
        "reference_contexts": [kept.passage],
        "metadata": {**common, **own},
    }
    without = {"kind": "twin", "answerable": False, "twin": kept.id, "contexts": contexts}
    yield {"id": twin, "user_input": kept.question, "metadata": {**common, **without}}


def document_rows(documents: Iterable[SourceDocument]) -> Iterator[Row]:
    """Yield documents as records; the title only if there is one."""
    for each in documents:
        yield {"id": each.id, "text": each.text} | ({"title": each.title} if each.title else {})


def write_rows(path: Path, rows: Iterable[Row], *, replaces: bool = False) -> None:
    """Write records as JSON Lines.

    Unless it `replaces` any file, an existing file is only replaced if all its lines are written again: those of an
    interrupted command. Questions that were edited are not lost. Raises UsageError for other lines, RunError if the
    file cannot be written.
    """
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    with writing(path):
        if not replaces and path.is_file() and not set(lines).issuperset(_lines(path)):
            raise UsageError(
                f"{path} exists with other lines. Name another file with -o, or remove it; verdicts in the cache are "
                "reused."
            )
        write_file(path, "".join(lines))


def _lines(path: Path) -> list[str]:
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        return list(file)


def questions_page(found: SampledQuestions, output: str, without: str | None, width: int) -> Page:
    """Return the number of questions, the draw, the dropped questions and the cost."""
    page = Page(width)
    page.text(f"{count(len(found.kept), 'question')}, each with an unanswerable twin, in {output}.", tone=Tone.STRONG)
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
    of = f"{count(len(corpus.passages), 'passage')} in {count(len(corpus.documents), 'document')}"
    return f"{found.drawn:,} of {of} were drawn uniformly (seed {settings.seed})"


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
        **picked(found, "dropped failures not_asked"),
        **picked(settings, "sentences seed"),
        **picked(found, "closed_book stopped usage"),
    }
