"""Records that people have labelled, as JSON Lines: what a judge can be held against.

One JSON object a line, plain or gzipped; docs/how-to/judge-check.md describes the fields. Where a record names no
id, source or language, its line, its file's name and the script of its text stand in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from merilo.data import check
from merilo.data.source import Format, RecordFile, format_of
from merilo.errors import DataError, Problem, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from os import PathLike

    from merilo.data.lines import RawRecord

_MOST_APART: Final = 0.5
"""Between a label and what meta.label01 makes of it, such as the mean of several people's."""
YES_FROM: Final = 0.75
"""A label on a scale from 0 to 1 counts as yes from here."""
_SCALE: Final = re.compile(r"\s*(\d+)\s*-\s*(\d+)")
_MOST_PROBLEMS: Final = 20


class Task(StrEnum):
    """What was asked of people."""

    CHUNK_RELEVANCE = "chunk_relevance"
    """How far does the context answer the query? 0 unrelated, 1 on topic, 2 answers."""
    SENTENCE_RELEVANCE = "sentence_relevance"
    """Which of the sentences answer the query? One 0 or 1 for each."""
    SUFFICIENCY = "sufficiency"
    """Does the context hold enough to answer the query?"""
    GROUNDEDNESS = "groundedness"
    """Does the context support the response?"""
    NLI = "nli"
    """Does the context entail the statement?"""
    ANSWER_RELEVANCE = "answer_relevance"
    """Does the response answer the query?"""


_TEXTS: Final[Mapping[Task, tuple[str, ...]]] = {
    Task.CHUNK_RELEVANCE: ("query", "context"),
    Task.SENTENCE_RELEVANCE: ("query", "sentences"),
    Task.SUFFICIENCY: ("query", "context"),
    Task.GROUNDEDNESS: ("context", "response"),
    Task.NLI: ("context", "statement"),
    Task.ANSWER_RELEVANCE: ("query", "response"),
}
"""The fields that a record of each task needs; a query may stand beside the others."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """One record with its label."""

    id: str
    task: Task
    source: str
    """Where it is from: records of different sources are never mixed into one figure without saying so."""
    language: str | None
    query: str
    texts: tuple[str, ...]
    """The sentences of `sentence_relevance`, else the context alone; empty for `answer_relevance`."""
    response: str
    """The response or statement that was judged; empty where there is none."""
    label01: float
    """The label brought to 0..1; for sentences the share of those that answer."""
    grade: int | None
    """0, 1 or 2 of `chunk_relevance`; None elsewhere, and where people said only yes or no."""
    sentence_labels: tuple[bool, ...]
    """Of `sentence_relevance`, one for each sentence; empty elsewhere."""
    constructed: bool
    """The label, or what makes it 0, was made by a rule and not by a person."""
    votes: tuple[float, ...] = ()
    """What each annotator said, on their own scale, where it is known."""
    system: str | None = None
    """Which model wrote the response, where it is known."""
    same: tuple[str, ...] = ()
    """What makes it no independent case beside others: records that share one of these belong together."""

    @property
    def yes(self) -> bool:
        """Whether people said yes, by the one rule for scales."""
        return self.label01 >= YES_FROM


def read_labels(paths: Iterable[str | PathLike[str]]) -> tuple[Labelled, ...]:
    """The records of all files, in order.

    Raises DataError for records that are not as described and for an id that stands twice in one task (each with its
    place), UsageError for a name that is not of JSON Lines.
    """
    found: list[Labelled] = []
    problems: list[Problem] = []
    places: dict[tuple[Task, str], str] = {}
    for path in map(Path, paths):
        if format_of(path) is not Format.JSONL:
            raise UsageError(
                f"Labels are JSON Lines, perhaps gzipped (labels.jsonl, labels.jsonl.gz); got {path.name!r}."
            )
        before = len(found) + len(problems)
        for place, each in _read(path):
            if isinstance(each, Labelled):
                problems += _repeated(each, places, path.name, place)
                found.append(each)
            else:
                problems += each
        if len(found) + len(problems) == before:
            problems.append(Problem("labelled records", "none", source=path.name))
    if problems:
        shown = problems[:_MOST_PROBLEMS]
        more = f" And {len(problems) - len(shown)} more." if len(problems) > len(shown) else ""
        raise DataError(" ".join(each.message for each in shown) + more, problems=tuple(problems))
    return tuple(found)


def _read(path: Path) -> Iterator[tuple[int, Labelled | list[Problem]]]:
    file = RecordFile(path, Format.JSONL)
    stem = path.name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".ndjson")
    for raw in file.records():
        yield raw.place, _labelled(raw, path.name, stem)


def _repeated(each: Labelled, places: dict[tuple[Task, str], str], name: str, line: int) -> Iterator[Problem]:
    first = places.setdefault((each.task, each.id), f"{name}, line {line}")
    if first != f"{name}, line {line}":
        got = f"{each.id!r}, which is labelled in {first} too"
        yield Problem(f"an id that no other record of {each.task} has", got, "id", name, line)


def _labelled(raw: RawRecord, name: str, stem: str) -> Labelled | list[Problem]:
    """The record of one line, or everything that is wrong with it."""
    problems = list(raw.problems)
    if raw.value is not None and not problems:
        reader = _Reader(raw.value, problems)
        found = reader.labelled(raw.place, stem)
        if found is not None and not problems:
            return found
    return [Problem(each.expected, each.got, each.field, name, raw.place, each.unit, each.advice) for each in problems]


class _Reader:
    """Reads the fields of one record and notes what is wrong with them."""

    def __init__(self, record: Mapping[str, object], problems: list[Problem]) -> None:
        self._record = _without_missing(record)
        self._problems = problems
        meta = self._record.get("meta")
        self._meta: Mapping[str, object] = _without_missing(meta) if check.is_record(meta) else {}
        if meta is not None and not check.is_record(meta):
            self._wrong("an object", meta, "meta")

    def labelled(self, place: int, stem: str) -> Labelled | None:
        """The record; None where something is wrong that leaves nothing to go on with."""
        name = self._record.get("task")
        if not isinstance(name, str) or name not in set(Task):
            self._wrong(f"one of {', '.join(Task)}", name, "task")
            return None
        task = Task(name)
        for needed in _TEXTS[task]:
            if self._record.get(needed) is None:
                self._wrong("a text" if needed != "sentences" else "a list of texts", None, needed)
        texts = self._texts(task)
        labels = self._sentence_labels(texts) if task is Task.SENTENCE_RELEVANCE else ()
        label01 = sum(labels) / len(labels) if labels else self._label01(task)
        if self._problems:
            return None
        query = self._text("query")
        given = self._record.get("id")
        return Labelled(
            id=check.identifier(given, "id", self._problems) or "" if given is not None else f"{stem}:{place}",
            task=task,
            source=self._text("source") or stem,
            language=check.language(self._record.get("lang"), "lang", self._problems),
            query=query,
            texts=texts,
            response=self._text("statement" if task is Task.NLI else "response"),
            label01=label01,
            grade=self._grade(label01) if task is Task.CHUNK_RELEVANCE else None,
            sentence_labels=labels,
            constructed=bool(self._meta.get("constructed")),
            votes=self._votes(),
            system=self._system(),
            same=self._same(query, texts),
        )

    def _wrong(self, expected: str, got: object, field: str, advice: str = "") -> None:
        self._problems.append(Problem(expected, check.shown(got), field, advice=advice))

    def _text(self, field: str) -> str:
        return check.text(self._record.get(field), field, self._problems) or ""

    def _texts(self, task: Task) -> tuple[str, ...]:
        if task is Task.ANSWER_RELEVANCE:
            return ()
        if task is not Task.SENTENCE_RELEVANCE:
            return (self._text("context"),)
        sentences = self._record.get("sentences")
        if not check.is_list(sentences):
            self._wrong("a list of texts", sentences, "sentences")
            return ()
        for place, each in enumerate(sentences):
            if check.is_missing(each):
                self._wrong("a text", each, f"sentences[{place}]")
        return tuple(check.text(each, "sentences", self._problems) or "" for each in sentences)

    def _sentence_labels(self, sentences: tuple[str, ...]) -> tuple[bool, ...]:
        labels = self._record.get("label")
        fits = check.is_list(labels) and len(labels) == len(sentences) and all(each in {0, 1} for each in labels)
        if not fits or not sentences:
            self._wrong(f"a list of {len(sentences)} times 0 or 1, at least one", labels, "label")
            return ()
        return tuple(bool(each) for each in cast("list[object]", labels))

    def _label01(self, task: Task) -> float:
        """The label from 0 to 1: as the record says, else by its scale, else as it stands."""
        label, said = self._record.get("label"), self._meta.get("label01")
        low, high = self._scale(task)
        if said is None:
            return (self._within(label, "label", low, high) - low) / (high - low)
        told = self._within(said, "meta.label01", 0.0, 1.0)
        if label is not None and (isinstance(label, bool) or not isinstance(label, int | float)):
            self._wrong("a number", label, "label", "leave it out where meta.label01 says all")
        elif label is not None and low <= label <= high and abs((label - low) / (high - low) - told) > _MOST_APART:
            self._wrong(f"a label that says what meta.label01 says ({told:g} of 1)", label, "label", "mend one of them")
        return told

    def _scale(self, task: Task) -> tuple[int, int]:
        """The ends of the label's scale, as far as it is told."""
        scale = self._meta.get("scale")
        ends = _SCALE.match(scale) if isinstance(scale, str) else None
        if ends is not None and int(ends[1]) < int(ends[2]):
            return int(ends[1]), int(ends[2])
        return 0, 2 if task is Task.CHUNK_RELEVANCE else 1

    def _within(self, value: object, field: str, low: float, high: float) -> float:
        number = None if isinstance(value, bool) or not isinstance(value, int | float) else float(value)
        if number is not None and low <= number <= high:
            return number
        unnamed = number is not None and field == "label" and "scale" not in self._meta
        advice = 'name another scale in meta, as "scale": "1-5"' if unnamed else ""
        self._wrong(f"a number from {low:g} to {high:g}", value, field, advice)
        return 0.0

    def _grade(self, label01: float) -> int | None:
        """0, 1 or 2; where people said only yes or no, a yes has no grade."""
        scale = self._meta.get("scale")
        if isinstance(scale, str) and scale.startswith("0-1"):
            return None if label01 >= YES_FROM else 0
        return round(2 * label01)

    def _votes(self) -> tuple[float, ...]:
        votes = self._meta.get("votes")
        if not check.is_list(votes):
            return ()
        numbers = (each for each in votes if isinstance(each, int | float) and not isinstance(each, bool))
        return tuple(float(each) for each in numbers if not check.is_missing(each))

    def _system(self) -> str | None:
        model = self._meta.get("model")
        return model if isinstance(model, str) and model else None

    def _same(self, query: str, texts: tuple[str, ...]) -> tuple[str, ...]:
        group, asked = self._meta.get("cluster"), self._meta.get("qid")
        if isinstance(group, str | int):
            return (f"cluster {group}",)
        marks = [f"query {query.strip()}"] if query.strip() else []
        marks += [f"text {' '.join(texts).strip()}"] if texts else []
        return (*marks, f"qid {asked}") if isinstance(asked, str | int) else tuple(marks)


def _without_missing(record: Mapping[str, object]) -> dict[str, object]:
    """Return the keys that have a value: null and NaN are missing."""
    return {name: value for name, value in record.items() if not check.is_missing(value)}
