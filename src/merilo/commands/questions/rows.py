"""The written records: an answerable question and its unanswerable twin."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from merilo.errors import UsageError
from merilo.runs.publish import write_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from merilo.data.corpus import SourceDocument

    Row = dict[str, Any]  # Any: JSON


class KeptQuestion(NamedTuple):
    """A question that passed all checks."""

    id: str
    question: str
    answer: str
    """Empty for a question from a template."""
    passage: str
    others: tuple[str, ...]
    """Texts of the corpus that do not answer it; the contexts of its twin."""
    document: str
    start: int
    end: int
    probability: float


def rows_of(kept: KeptQuestion) -> Iterator[Row]:
    """Yield the question as a record of a data set, then its twin, whose passage is removed from the documents."""
    twin = f"{kept.id}:without"
    place = {"document": kept.document, "start": kept.start, "end": kept.end}
    weights = {"probability": kept.probability, "weight": 1 / kept.probability}
    expected = {"reference": kept.answer} if kept.answer else {}
    yield {
        "id": kept.id,
        "user_input": kept.question,
        **expected,
        "reference_contexts": [kept.passage],
        "metadata": {
            **place,
            **weights,
            "kind": "question",
            "answerable": True,
            "twin": twin,
            "contexts": [kept.passage, *kept.others],
        },
    }
    yield {
        "id": twin,
        "user_input": kept.question,
        "metadata": {
            **place,
            **weights,
            "kind": "twin",
            "answerable": False,
            "twin": kept.id,
            "contexts": [*kept.others],
        },
    }


def document_rows(documents: Iterable[SourceDocument]) -> Iterator[Row]:
    """Yield documents as records; the title only if there is one."""
    for each in documents:
        yield {"id": each.id, "text": each.text} | ({"title": each.title} if each.title else {})


def write_rows(path: Path, rows: Iterable[Row], *, replaces: bool = False) -> None:
    """Write records as JSON Lines.

    Unless it `replaces` any file, an existing file is only replaced if all its lines are written again: those of an
    interrupted command. Questions that were edited are not lost. Raises UsageError.
    """
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    try:
        if not replaces and path.is_file() and not set(lines).issuperset(_lines(path)):
            raise UsageError(
                f"{path} exists with other lines. Name another file with -o, or remove it; verdicts in the cache are "
                "reused."
            )
        write_file(path, "".join(lines))
    except OSError as error:
        raise UsageError(f"Cannot write {path} ({error.strerror or error}).") from error


def _lines(path: Path) -> list[str]:
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        return list(file)
