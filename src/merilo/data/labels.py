"""Records with human labels, as JSON Lines, to measure a judge against.

One JSON object per line, plain or gzipped; docs/judge-check.md describes the fields. If a record has no id,
source or language, they default to its line, its file's name and the language that its texts show.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from merilo.data import check
from merilo.data.lines import refusal
from merilo.data.source import Format, RecordFile, format_of
from merilo.errors import Problem, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from os import PathLike

_MAX_APART: Final = 0.5
"""Largest difference between a label and meta.label01, which may be a mean of several annotators."""
YES_FROM: Final = 0.75
"""The lowest label, on a scale from 0 to 1, that counts as yes."""
_SCALE: Final = re.compile(r"\s*(\d+)\s*-\s*(\d+)")


class Task(StrEnum):
    """The questions that annotators answered."""

    CHUNK_RELEVANCE = "chunk_relevance"
    """Grade of a context for a query: 0 unrelated, 1 on topic, 2 answers."""
    SENTENCE_RELEVANCE = "sentence_relevance"
    """A 0 or 1 for each sentence: does it answer the query?"""
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
"""The fields that a record of each task needs; a query is optional in addition to the others."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """One record with its label."""

    id: str
    task: Task
    source: str
    """The origin of the record: figures over records of different sources always name the sources."""
    language: str | None
    query: str
    texts: tuple[str, ...]
    """The sentences of `sentence_relevance`, otherwise only the context; empty for `answer_relevance`."""
    response: str
    """The response or statement that was judged; empty if there is none."""
    label01: float
    """The label on a scale from 0 to 1; for sentences the fraction of those that answer."""
    grade: int | None
    """0, 1 or 2 of `chunk_relevance`; None for other tasks, and if annotators answered only yes or no."""
    sentence_labels: tuple[bool, ...]
    """The labels of `sentence_relevance`, one per sentence; empty otherwise."""
    constructed: bool
    """True if the label, or the edit that makes it 0, comes from a rule and not from an annotator."""
    same: tuple[str, ...] = ()
    """Keys of dependent records: records that share one of these keys belong to one cluster."""
    origin: str | None = None
    """The data set from which the source took the record (`meta.source`), if known."""

    @property
    def yes(self) -> bool:
        """True if the label counts as yes, by the one rule for all scales."""
        return self.label01 >= YES_FROM


def read_labels(paths: Iterable[str | PathLike[str]]) -> tuple[Labelled, ...]:
    """Return the records of all files, in order.

    Raises DataError for invalid records and for an id that occurs twice in one task (each with its place), UsageError
    for a file name that is not of JSON Lines.
    """
    found: list[Labelled] = []
    problems: list[Problem] = []
    places: dict[tuple[Task, str], str] = {}
    for path in map(Path, paths):
        if format_of(path) is not Format.JSONL:
            raise UsageError(f"Labels must be JSON Lines (labels.jsonl, labels.jsonl.gz), got {path.name!r}.")
        file, stem = RecordFile(path, Format.JSONL), path.name.removesuffix(".gz").rpartition(".")[0]
        before = len(found) + len(problems)
        for raw in file.records():
            own = list(raw.problems)
            each = _Reader(raw.value, own).labelled(raw.place, stem) if raw.value is not None and not own else None
            if each is not None and not own:
                place = f"{file.name}, line {raw.place}"
                first = places.setdefault((each.task, each.id), place)
                needed, got = f"a unique id among records of {each.task}", f"{each.id!r} as in {first}"
                own += [] if first == place else [Problem(needed, got, "id")]
                found.append(each)
            problems += file.placed(raw, own)
        if len(found) + len(problems) == before:
            problems.append(Problem("labelled records", "none", source=path.name))
    if problems:
        raise refusal(problems)
    return tuple(found)


class _Reader:
    """A reader of one record's fields that records problems."""

    def __init__(self, record: Mapping[str, object], problems: list[Problem]) -> None:
        self._record = _without_missing(record)
        self._problems = problems
        meta = self._record.get("meta")
        self._meta: Mapping[str, object] = _without_missing(meta) if check.is_record(meta) else {}
        if meta is not None and not check.is_record(meta):
            self._wrong("an object", meta, "meta")

    def labelled(self, place: int, stem: str) -> Labelled | None:
        """Return the record; None if problems make it unusable."""
        name = self._record.get("task")
        if not isinstance(name, str) or name not in set(Task):
            advice = "; attach labels of merilo label to their run: merilo label RUN --labels FILE"
            self._wrong(f"one of {', '.join(Task)}{advice if 'ticket' in self._record else ''}", name, "task")
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
            same=self._same(query, texts),
            origin=name if isinstance(name := self._meta.get("source"), str) and name else None,
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
        """Return the label from 0 to 1: from `meta.label01`, otherwise by its scale."""
        label, stored = self._record.get("label"), self._meta.get("label01")
        low, high = self._scale(task)
        if stored is None:
            return (self._within(label, "label", low, high) - low) / (high - low)
        label01 = self._within(stored, "meta.label01", 0.0, 1.0)
        if label is not None and (isinstance(label, bool) or not isinstance(label, int | float)):
            self._wrong("a number", label, "label", "leave it out if meta.label01 is enough")
        elif label is not None and low <= label <= high and abs((label - low) / (high - low) - label01) > _MAX_APART:
            self._wrong(f"a label close to meta.label01 ({label01:g} of 1)", label, "label", "fix one of them")
        return label01

    def _scale(self, task: Task) -> tuple[int, int]:
        """Return the ends of the label's scale: from `meta.scale`, otherwise 0 to 2 for relevance and 0 to 1 for
        others.
        """
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
        """Return 0, 1 or 2; None for a yes on a scale of only yes and no, which has no grade."""
        scale = self._meta.get("scale")
        if isinstance(scale, str) and scale.startswith("0-1"):
            return None if label01 >= YES_FROM else 0
        return round(2 * label01)

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
