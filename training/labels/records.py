"""Labelled records (gzip JSON Lines, one file a task) as examples of what the judge is asked."""

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from merilo.data.sentences import unnumbered

Split = Callable[[str, str], tuple[str, ...]]
"""Sentences of a text in a language."""

NATURAL_SUPPORT = (
    "begin-cmu-dog",
    "begin-topicalchat",
    "begin-wow",
    "clapnq",
    "faithdial-audit-cmu",
    "faithdial-audit-topical",
    "faithdial-audit-wow",
    "mtrag",
    "qa-feedback",
    "q2-wow",
)
"""Sources in which people judged what a model really wrote; the others hold edited or yes/no answers."""

_REFERENCES = frozenset({"xquad", "squad2-halfdev", "clapnq"})
"""Sources whose right answers serve as references of their passages."""

YES = 0.75
"""A label on a 0..1 scale counts as yes from here."""


@dataclass(frozen=True, slots=True)
class Example:
    """One labelled unit: `asked` against `texts` (sentences, or contexts of one text each)."""

    source: str
    group: str
    language: str
    licence: str
    asked: str
    texts: tuple[str, ...]
    label: float
    constructed: bool
    other: str = ""
    labels: tuple[int, ...] = ()
    context: str = ""
    """The text of `texts` before it was split; empty for sentences and answers."""


def read(folder: Path, task: str) -> list[dict[str, Any]]:
    """The records of a task, in file order: those of `TASK.jsonl.gz`, then of `TASK.more.jsonl.gz` if it exists."""
    found: list[dict[str, Any]] = []
    for path in (folder / f"{task}.jsonl.gz", folder / f"{task}.more.jsonl.gz"):
        if path.is_file():
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                found += map(json.loads, lines)
    if not found:
        raise FileNotFoundError(folder / f"{task}.jsonl.gz")
    return found


def sentence_examples(folder: Path) -> list[Example]:
    """Questions with the judged sentences of a passage; `labels` has 0 or 1 for each."""
    return [
        _example(record, record["query"], tuple(record["sentences"]), 0.0, labels=tuple(record["label"]))
        for record in read(folder, "sentence_relevance")
    ]


def relevance_examples(folder: Path, split: Split) -> list[Example]:
    """Questions with a passage's sentences, graded 0 (unrelated), 1 (on topic), 2 (answers)."""
    return [
        _example(record, record["query"], split(record["context"], record["lang"]), float(record["label"]))
        for record in read(folder, "chunk_relevance")
    ]


def sufficiency_examples(folder: Path, split: Split) -> list[Example]:
    """Questions with all that was retrieved: 0, 0.5 (partly) or 1."""
    return [
        _example(record, record["query"], split(record["context"], record["lang"]), record["meta"]["label01"])
        for record in read(folder, "sufficiency")
    ]


def support_examples(folder: Path, split: Split) -> Iterator[tuple[Example, tuple[str, ...]]]:
    """Responses against a context's sentences, with the response's own sentences."""
    for record in read(folder, "groundedness"):
        sentences = split(record["context"], record["lang"])
        example = _example(record, record["query"], sentences, record["meta"]["label01"], other=record["response"])
        yield example, unnumbered(split(record["response"], record["lang"]), record["lang"])


def statement_examples(folder: Path, split: Split) -> list[Example]:
    """Statements against a context's sentences; 1 when it entails them. Those about one context are a group."""
    return [
        replace(
            _example(record, "", split(record["context"], record["lang"]), record["label"], other=record["statement"]),
            group=record["context"],
        )
        for record in read(folder, "nli")
    ]


def answer_examples(folder: Path) -> list[Example]:
    """Questions with a statement given in answer; 1 when it addresses the question."""
    return [
        _example(record, record["query"], (), record["meta"]["label01"], other=record["response"])
        for record in read(folder, "answer_relevance")
    ]


def usefulness_examples(folder: Path, split: Split) -> list[Example]:
    """Passages of relevance records whose question has a right answer: useful when the passage answers.

    No person judged usefulness as such, so every example is marked as constructed.
    """
    answers: dict[tuple[str, str], str] = {}
    for record in read(folder, "groundedness"):
        if record["meta"]["label01"] >= YES and record["source"] in _REFERENCES:
            answers.setdefault((record["source"], record["query"]), record["response"])
    found = []
    for record in read(folder, "chunk_relevance"):
        answer = answers.get((record["source"], record["query"]))
        if answer is not None:
            sentences = split(record["context"], record["lang"])
            found.append(
                _example(record, record["query"], sentences, float(record["label"] == 2), other=answer, made=True)
            )
    return found


def _example(
    record: dict[str, Any], asked: str, texts: tuple[str, ...], label: float, *, other: str = "",
    labels: tuple[int, ...] = (), made: bool = False,
) -> Example:  # fmt: skip
    return Example(
        source=record["source"],
        group=record["meta"].get("article") or record["meta"].get("title") or record["query"] or record["id"],
        language=record["lang"],
        licence=record["licence"],
        asked=asked,
        texts=tuple(texts),
        label=label,
        constructed=made or bool(record["meta"].get("constructed")),
        other=other,
        labels=labels,
        context=record.get("context") or "",
    )
