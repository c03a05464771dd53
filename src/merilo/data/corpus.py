"""Source documents: a file of records with `id` and `text`, or a folder of text files.

`Documents` finds the position of any text in them, whatever its white space (`data/spans.py`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.data import check
from merilo.data.lines import SHOWN_PROBLEMS, RawRecord, encoding_fault, refusal
from merilo.data.sentences import DenseSpan, Span, dense
from merilo.data.source import RecordFile, format_of
from merilo.errors import Problem, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from os import PathLike

_ID_KEYS: Final = ("id", "_id", "doc_id")
_SUFFIXES: Final = frozenset({".txt", ".md"})


class SourceDocument(NamedTuple):
    """One document of a corpus."""

    id: str
    text: str
    title: str
    """Its `title`, or the name of its file without the suffix; empty if a record has none."""


def load_corpus(path: Path) -> tuple[SourceDocument, ...]:
    """Return the documents in a file (JSON Lines, JSON or CSV, .gz accepted) or in a folder of .txt and .md files.

    A file in a folder has its path within the folder as its id. `_id` and `doc_id` are accepted as names of the id.
    Raises UsageError if there is nothing at the path, and DataError, with at most 20 problems, for an invalid document,
    an id that occurs twice and a corpus without documents.
    """
    if path.is_dir():
        return _checked(_files(path), path.name, "file")
    if not path.exists():
        raise UsageError(f"No such file or folder: {path}.")
    file = RecordFile(path, format_of(path))
    return _checked(file.records(), file.name, file.unit)


def _checked(records: Iterator[RawRecord], name: str, unit: str) -> tuple[SourceDocument, ...]:
    documents: dict[str, SourceDocument] = {}
    problems: list[Problem] = []
    for raw in records:
        found = list(raw.problems)
        document = _document(raw.value, found) if raw.value is not None else None
        if document is not None and not found:
            if document.id in documents:
                found.append(Problem("each id once", f"{document.id!r} again", "id"))
            documents.setdefault(document.id, document)
        problems += [replace(each, source=each.source or name, line=raw.place, unit=unit) for each in found]
        if len(problems) >= SHOWN_PROBLEMS:
            break
    if not documents and not problems:
        problems.append(Problem("at least one document", "none", source=name))
    if problems:
        raise refusal(problems)
    return tuple(documents.values())


def _document(record: dict[str, object], problems: list[Problem]) -> SourceDocument | None:
    key = next((each for each in _ID_KEYS if not check.is_missing(record.get(each))), "id")
    name = check.identifier(record.get(key), key, problems)
    text = check.text(record.get("text"), "text", problems)
    title = check.text(record.get("title"), "title", problems)
    if name is None or text is None:
        if not problems:
            problems.append(Problem("an object with 'id' and 'text'", check.shown(record)))
        return None
    return SourceDocument(name, text, " ".join((title or "").split()))


def _files(folder: Path) -> Iterator[RawRecord]:
    """Yield the text files of a folder and its subfolders as records, in the order of their paths."""
    paths = (each for each in folder.rglob("*") if each.suffix.lower() in _SUFFIXES and each.is_file())
    for place, path in enumerate(sorted(paths, key=lambda each: each.relative_to(folder).as_posix()), start=1):
        name = path.relative_to(folder).as_posix()
        try:
            text = path.read_bytes().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            yield RawRecord(place, None, (replace(encoding_fault(error), source=name),))
        except OSError as error:
            yield RawRecord(place, None, (Problem("a readable file", error.strerror or str(error), source=name),))
        else:
            yield RawRecord(place, {"id": name, "text": text, "title": path.stem})


class Document:
    """One source document."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def _places(self) -> list[int]:
        """The offset of each character that is not white space."""
        return [place for place, char in enumerate(self.text) if not char.isspace()]

    def dense_of(self, span: Span) -> Span:
        """Return the dense positions of a span of the text."""
        return Span(bisect_left(self._places, span.start), bisect_left(self._places, span.end))

    def span_of(self, start: int, end: int) -> Span:
        """Return the offsets in the text of a dense span that is not empty; no white space at either end."""
        return Span(self._places[start], self._places[end - 1] + 1)


class Documents:
    """The documents that chunks come from, by id."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._documents = {name: Document(text) for name, text in texts.items()}
        self._names = list(texts)
        self._at = {name: at for at, name in enumerate(self._names)}
        # One search over all documents. A line feed is white space, so no text can match across two of them.
        parts = [dense(text) for text in texts.values()]
        self._joined = "\n".join(parts)
        self._starts = [0, *accumulate(len(part) + 1 for part in parts)][: len(parts)]

    def __contains__(self, name: object) -> bool:
        return name in self._documents

    def __getitem__(self, name: str) -> Document:
        return self._documents[name]

    def whole(self, name: str) -> DenseSpan:
        """Return the span of a whole document."""
        at = self._at[name]
        end = self._starts[at + 1] - 1 if at + 1 < len(self._starts) else len(self._joined)
        return DenseSpan(name, 0, end - self._starts[at])

    def find(self, text: str, document: str | None = None) -> DenseSpan | None:
        """Return the first place of a text, in one document or in all in their order; None if there is none."""
        wanted = dense(text)
        if not wanted:
            return None
        if document is None:
            low, high = 0, len(self._joined)
        else:
            low = self._starts[self._at[document]]
            high = low + self.whole(document).end
        place = self._joined.find(wanted, low, high)
        if place < 0:
            return None
        at = bisect_right(self._starts, place) - 1
        start = place - self._starts[at]
        return DenseSpan(self._names[at], start, start + len(wanted))

    def text_of(self, span: DenseSpan) -> str:
        """Return the text of a span that is not empty, as it is in the document."""
        start, end = self._documents[span.document].span_of(span.start, span.end)
        return self._documents[span.document].text[start:end]


def load_documents(path: str | PathLike[str]) -> Documents:
    """Return the documents of a corpus; see `load_corpus`, also for the errors."""
    return Documents({each.id: each.text for each in load_corpus(Path(path))})
