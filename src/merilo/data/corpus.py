"""The documents to ask about: a file of records with `id` and `text`, or a folder of text files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.data import check
from merilo.data.lines import RawRecord, encoding_fault
from merilo.data.source import RecordFile, format_of
from merilo.errors import DataError, Problem, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MAX_PROBLEMS: Final = 20
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
        if len(problems) >= _MAX_PROBLEMS:
            break
    if not documents and not problems:
        problems.append(Problem("at least one document", "none", source=name))
    if problems:
        raise DataError.of(*problems[:_MAX_PROBLEMS])
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
