"""The files and the report of a draw: each question with its unanswerable twin, the documents left, and a summary."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from merilo.errors import UsageError
from merilo.numbers import count, spent_text
from merilo.rendering.page import Page, Tone
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
        there = path.read_bytes().decode(errors="replace") if path.is_file() and not replaces else ""
        if not {*"".join(lines).split("\n")}.issuperset(there.split("\n")):
            raise UsageError(
                f"{path} exists with other lines. Name another file with -o, or remove it; verdicts in the cache are "
                "reused."
            )
        write_file(path, "".join(lines))


def questions_page(found: SampledQuestions, output: str, without: str | None, width: int) -> Page:
    """Return the number of questions, the draw, the dropped questions and the cost."""
    page = Page(width)
    page.text(f"{count(len(found.kept), 'question')}, each with an unanswerable twin, in {output}.", tone=Tone.STRONG)
    if without is not None:
        page.text(f"The documents without the passages of these questions are in {without}.")
    passages, documents = len(found.draw.corpus.passages), len(found.draw.corpus.documents)
    of = f"{count(passages, 'passage')} in {count(documents, 'document')}"
    page.text(f"{len(found.draw.drawn):,} of {of} were drawn uniformly (seed {found.draw.settings.seed}).")
    if found.dropped:
        page.heading("Dropped")
        page.entries([(f"{number:,}", reason) for reason, number in found.dropped.items()])
    if found.failures:
        page.heading("Failed")
        page.entries([(f"{number:,}", message) for message, number in found.failures.items()])
    if found.not_asked:
        page.blank()
        page.text(f"{count(found.not_asked, 'passage')} not asked about: {found.stopped or 'the run was stopped.'}")
    if not found.draw.metric.closed_book:
        page.blank()
        page.text(_NOT_CLOSED_BOOK, tone=Tone.QUIET)
    page.heading("Requests, cost and time")
    page.text(spent_text(found.usage), indent=2)
    return page


def questions_record(found: SampledQuestions, output: str, without: str | None) -> dict[str, Any]:  # Any: JSON
    """Return the same as a JSON-able object; equal input gives equal bytes, except under `usage`."""
    draw = found.draw
    return {
        "file": output,
        "without": without,
        "judge": draw.judge.name,
        "documents": len(draw.corpus.documents),
        "passages": len(draw.corpus.passages),
        "drawn": len(draw.drawn),
        "kept": len(found.kept),
        **picked(found, "dropped failures not_asked"),
        **picked(draw.settings, "sentences seed"),
        "closed_book": draw.metric.closed_book,
        **picked(found, "stopped usage"),
    }
